#include "planner/program/program.h"

#include <algorithm>
#include <numeric>

#include "planner/graph/fuse.h"
#include "planner/program/micro_builder.h"

namespace stw {

Instruction op_alone(const Graph& graph, const Instruction& instruction, int k) {
  Instruction one = instruction;
  one.ops = 1;
  for (; one.op < instruction.op + k; ++one.op) {
    one.first_operand += one.inputs + one.outputs;
    const Op& next = graph.op(one.op + 1);
    if (!next.fused) continue;  // joined ops of one kind have equally many operands
    one.kind = next.kind;
    one.inputs = static_cast<int>(next.inputs.size()), one.outputs = static_cast<int>(next.outputs.size());
  }
  return one;
}

// The cost that a fused op adds to its run, whose first op is `first`.
static Cost cost_of_fused(const Graph& graph, int first, int op, const Extent& extent) {
  const Op& fused = graph.op(op);
  Cost cost = op_row(fused.kind).cost(graph, fused, extent);
  const int summed = fused.inputs[in(OpKind::linear_bias_gradient, "dy")];
  if (graph.op(first).kind == OpKind::norm_gradient && reads(graph.op(first), summed))
    cost.bytes -= operand_bytes(graph, summed, extent);
  for (int before = first; before < op; ++before)
    for (int t : graph.op(before).outputs)
      if (std::find(fused.inputs.begin(), fused.inputs.end(), t) != fused.inputs.end()) {
        cost.bytes -= operand_bytes(graph, t, extent);  // it is not read again
        // The op before did not store it either.
        if (fused.kind == OpKind::activation_gradient) cost.bytes -= operand_bytes(graph, t, extent);
      }
  return cost;
}

Extent extent_of(const Graph& graph, const Instruction& instruction, int threads) {
  return extent_of(graph, graph.op(instruction.op), instruction.samples, instruction.rows, threads,
                   instruction.elements);
}

Cost cost_of(const Graph& graph, const Instruction& instruction, int threads) {
  const Extent extent = extent_of(graph, instruction, threads);
  Cost sum;
  for (int op = instruction.op; op < instruction.op + instruction.ops; ++op) {
    const bool is_fused = op > instruction.op && graph.op(op).fused;
    const Cost one = is_fused ? cost_of_fused(graph, instruction.op, op, extent)
                              : op_row(instruction.kind).cost(graph, graph.op(op), extent);
    sum = {size_add(sum.flops, one.flops), size_add(sum.bytes, one.bytes),
           size_add(sum.bytes_before, one.bytes_before), sum.launches_before + one.launches_before,
           std::max(sum.head, one.head)};
  }
  return sum;
}

int64_t chunk_unit(const Graph& graph) {
  const Segment& head = graph.segments.back();
  if (graph.head.row().target == Target::span) return graph.rows_of(graph.ops[head.first_op]);
  const auto first = graph.gradient_ops.begin() + head.first_gradient_op;
  return std::any_of(first, first + head.gradient_op_count, is_sum_of_chains) ? kernels::chain_terms
                                                                              : frozen_chunk_unit;
}

int64_t chunk_rows(int64_t rows, int64_t chunks, int64_t unit) {
  const int64_t n = (rows + chunks - 1) / chunks;
  return std::min(rows, (n + unit - 1) / unit * unit);
}

std::vector<Tile> loss_chunks(int64_t rows, int64_t rows_per_sample, int64_t chunks, int64_t unit) {
  const int64_t most = chunk_rows(rows, chunks, unit);
  std::vector<Tile> list;
  for (int64_t begin = 0, end; begin < rows; begin = end) {
    end = begin + std::min(most, rows - begin);
    end -= end % rows_per_sample % unit;
    list.push_back({begin, end - begin});
  }
  return list;
}

std::vector<Tile> loss_chunks(const Graph& graph, int64_t samples, int64_t chunks) {
  const int64_t rows = graph.rows_of(graph.ops[graph.segments.back().first_op]);
  return loss_chunks(samples * rows, rows, chunks, chunk_unit(graph));
}

Program build_micro(const Graph& graph, const Arena& arena, const Decisions& decisions, int64_t samples,
                    int threads, bool accumulate) {
  Emitter e(graph, arena, threads, samples);
  e.inputs();
  MicroBuilder(graph, e, accumulate, arena.offload.overlap).micro_step(decisions);
  for (int t : graph.body_inputs()) e.hold(e.buffer_of(t));  // alive to the end, even if no later op reads it
  Program p = e.finish(arena.gradients_end);
  p.name = samples != decisions.micro_batch ? "micro_short" : accumulate ? "micro_next" : "micro_first";
  return p;
}

Program build_evaluate(const Graph& graph, const Arena& arena, const Decisions& decisions, int threads) {
  Emitter e(graph, arena, threads, decisions.micro_batch);
  e.inputs();
  // The last ops belong to the head: logits, hits (if counted), losses, and the sum of losses.
  const int first = graph.first_evaluate_op(), sum = graph.first_generate_op() - 1,
            head = sum - static_cast<int>(graph.loss_ops());
  for (int i = first; i < head;) {
    const auto segment = static_cast<size_t>(graph.op(i).segment);
    const FeedForward& part = graph.segments[segment].feed_forward;
    const int64_t tile_rows = decisions.tile_rows_of(segment);
    const bool in_tiles = tile_rows > 0 && part.exists() && graph.op(i).outputs[0] == part.inner[0];
    const int run = in_tiles ? part.op_count : fused_run(graph, i);
    if (in_tiles)
      e.emit_tiles(i, part.op_count, part.inner,
                   tiles_of(e.all_rows(graph.op(i)), graph.rows_of(graph.op(i)), tile_rows));
    else e.emit_fused(i, run, Phase::forward, false);
    i += run;
  }
  std::vector<int> of_chunks(graph.loss_ops());
  std::iota(of_chunks.begin(), of_chunks.end(), head);
  e.emit_chunks(of_chunks, loss_chunks(graph, e.samples(), decisions.loss_chunks), Phase::forward, false);
  e.emit(sum, Phase::forward);
  static_assert(in(OpKind::loss_sum, "loss") == in(OpKind::preference, "loss"));
  e.result_of_tokens(graph.op(sum).inputs[in(OpKind::loss_sum, "loss")]);
  Program p = e.finish(arena.gradients_begin);
  p.name = "evaluate";
  return p;
}

std::vector<Stage> stages_of(const Program& program) {
  const std::vector<Instruction>& list = program.instructions;
  const bool staged = in_stages(program);
  std::vector<Stage> stages;
  for (Stage stage; stage.end < list.size(); stages.push_back(stage)) {
    stage.first = stage.ops = stage.end;
    while (stage.end < list.size() && list[stage.end].stage == list[stage.first].stage) ++stage.end;
    while (staged && stage.ops < stage.end && is_transfer(list[stage.ops].kind)) ++stage.ops;
  }
  return stages;
}

uint64_t live_bound(const Program& program, uint64_t alignment) {
  std::vector<__int128> change(program.instructions.size() + 1);
  for (const Buffer& b : program.buffers) {
    const __int128 bytes = round_up(b.bytes, alignment);
    change[b.first] += bytes;
    change[static_cast<size_t>(b.last) + 1] -= bytes;
  }
  __int128 live = 0, most = 0;
  for (__int128 c : change) most = std::max(most, live += c);
  return size_add(program.base, static_cast<uint64_t>(std::min<__int128>(most, size_limit)));
}

}  // namespace stw
