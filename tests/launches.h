// The number of kernels that a GPU launches for an instruction of a training program, for our own kernels on
// tensor cores. It must agree with the launchers in kernels/cuda: tests/simt/launches_test.cpp compares it
// with the counter of the emulated device.
#pragma once
#include <algorithm>

#include "planner/program/program.h"

namespace stw::testing_tools {

inline int64_t launches_of(const Graph& graph, const Instruction& i, int64_t multiprocessors) {
  const Op& op = graph.op(i.op);
  const auto wants = [&](size_t first) {
    for (size_t k = first; k < op.outputs.size(); ++k)
      if (op.outputs[k] >= 0) return true;
    return false;
  };
  // Whether the instruction also sums tiles of a bias's gradient.
  const auto has_tiles = [&](const Instruction& run) {
    for (int k = run.op + 1; k < run.op + run.ops; ++k)
      if (!graph.at(graph.op(k).inputs[0]).tile_sums) return 1;
    return 0;
  };
  switch (i.kind) {
    // Statistics and dx, sums of tiles, and a kernel that adds up these sums. If there are many tiles, one
    // launch does the first two, and sums tiles of biases too.
    case OpKind::norm_gradient: {
      if (!wants(1)) return 1;
      const int64_t whole = i.rows / graph.sequence, rest = i.rows % graph.sequence;
      const int64_t tiles = whole * ((graph.sequence + 63) / 64) + (rest + 63) / 64;
      return tiles >= multiprocessors && graph.features(op.inputs[0]) <= 2048 ? 2 : 3 + has_tiles(i);
    }
    case OpKind::qk_norm_gradient: return wants(1) ? 2 : 1;
    case OpKind::linear_input_gradient:
      // The gradient of a bias needs a launch that adds up its sums, and maybe one that makes them.
      return i.ops < 3 ? 1 : graph.sequence % 64 == 0 ? 2 : 3;
    case OpKind::linear_bias_gradient: return 2;  // for all biases
    case OpKind::attention_gradient:              // one for queries, one for keys and values, and one that
                                                  // adds up the gradient of a trained table
      return wants(1) ? 3 : 2;
    // A pass of the sort for each byte of a token id, and the sum. If kept rows are added to a gradient, one
    // kernel adds +0.
    case OpKind::embedding_gradient:
    case OpKind::kept_rows_gradient: {
      int64_t digits = 0;
      for (int64_t left = graph.at(op.outputs[0]).shape[0] - 1; left > 0; left >>= 8) ++digits;
      return 1 + (i.kind == OpKind::kept_rows_gradient && op.accumulates) + std::max<int64_t>(digits, 1);
    }
    default: return 1;
  }
}
inline int64_t launches_of(const Graph& graph, const Program& program, int64_t multiprocessors) {
  int64_t sum = 0;
  for (const Instruction& i : program.instructions) sum += launches_of(graph, i, multiprocessors);
  return sum;
}

}  // namespace stw::testing_tools
