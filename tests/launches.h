// How many kernels a GPU launches for an instruction of a training program, as the launchers in kernels/cuda
// do: declared here, and held against the emulated device's counter by tests/simt/launches_test.cpp. For our
// own kernels on tensor cores.
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
  const auto has_tiles = [&](const Instruction& run) {  // whether biases' tiles are summed up
    for (int k = run.op + 1; k < run.op + run.ops; ++k)
      if (!graph.at(graph.op(k).inputs[0]).tile_sums) return 1;
    return 0;
  };
  switch (i.kind) {
    case OpKind::norm_gradient: {  // statistics and dx, sums of tiles, their fold; the first two at once
                                   // where there are many tiles, with biases' sums
      if (!wants(1)) return 1;
      const int64_t whole = i.rows / graph.sequence, rest = i.rows % graph.sequence;
      const int64_t tiles = whole * ((graph.sequence + 63) / 64) + (rest + 63) / 64;
      return tiles >= multiprocessors && graph.features(op.inputs[0]) <= 2048 ? 2 : 3 + has_tiles(i);
    }
    case OpKind::qk_norm_gradient: return wants(1) ? 2 : 1;
    case OpKind::linear_input_gradient:
      return i.ops < 3                  ? 1
             : graph.sequence % 64 == 0 ? 2
                                        : 3;      // with a bias's gradient its fold, or its sums too
    case OpKind::linear_bias_gradient: return 2;  // of all
    case OpKind::attention_gradient: return 2;    // gradients of queries, of keys and values
    case OpKind::embedding_gradient: {            // a pass of the sort for each digit of a token, the fold
      int64_t digits = 0;
      for (int64_t left = graph.at(op.outputs[0]).shape[0] - 1; left > 0; left >>= 8) ++digits;
      return 1 + std::max<int64_t>(digits, 1);
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
