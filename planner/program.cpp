#include "planner/program.h"

#include <algorithm>

#include "planner/emitter.h"

namespace stw {

namespace {

// Emits the ops of the head chunk by chunk. `ops` run for every chunk in this order.
void emit_head(Emitter& e, const std::vector<int>& ops, int64_t chunks, Phase phase, bool accumulate) {
  const int64_t rows = e.all_rows(), step = chunk_rows(rows, chunks);
  for (int64_t begin = 0; begin < rows; begin += step)
    for (int op : ops) e.emit(op, phase, accumulate || begin > 0, begin, std::min(step, rows - begin));
}

class MicroBuilder {
 public:
  MicroBuilder(const Graph& graph, const Arena& arena, const Decisions& decisions, int64_t samples, int threads,
               bool accumulate)
      : graph_(graph), decisions_(decisions), accumulate_(accumulate), base_(arena.gradients_end),
        e_(graph, arena, threads, samples) {}

  Program run() {
    e_.input(graph_.tokens);
    e_.input(graph_.targets);
    const size_t last = graph_.segments.size() - 1;
    for (size_t s = 0; s < last; ++s) forward(s);
    head(graph_.segments[last]);
    for (size_t s = last; s-- > 0;) backward(s);
    return e_.finish(base_);
  }

 private:
  void forward(size_t s) {
    const Segment& segment = graph_.segments[s];
    for (int i = 0; i < segment.op_count; ++i) e_.emit(segment.first_op + i, Phase::forward);
    for (int i = 0; i < segment.op_count; ++i)
      for (int t : graph_.ops[static_cast<size_t>(segment.first_op + i)].outputs)
        if (t != segment.output && !kept(s, segment.first_op + i)) e_.drop(t);
  }

  bool kept(size_t s, int op) const {
    const std::vector<int>& saveable = graph_.segments[s].saveable;
    for (size_t bit = 0; bit < saveable.size(); ++bit)
      if (saveable[bit] == op) return decisions_.saved[s] >> bit & 1;
    return false;
  }

  // The loss's forward is part of its backward; the token losses are summed when all chunks are through.
  void head(const Segment& segment) {
    std::vector<int> ops{segment.first_op};
    for (int i = 0; i < segment.gradient_op_count; ++i)
      ops.push_back(static_cast<int>(graph_.ops.size()) + segment.first_gradient_op + i);
    emit_head(e_, ops, decisions_.loss_chunks, Phase::backward, accumulate_);
    e_.emit(segment.first_op + segment.op_count - 1, Phase::backward);
  }

  void backward(size_t s) {
    const Segment& segment = graph_.segments[s];
    for (int i = 0; i < segment.gradient_op_count; ++i) {
      const int index = static_cast<int>(graph_.ops.size()) + segment.first_gradient_op + i;
      for (int t : graph_.op(index).inputs) recompute(t);
      e_.emit(index, Phase::backward, accumulate_);
    }
    for (int i = 0; i < segment.op_count; ++i)
      for (int t : graph_.ops[static_cast<size_t>(segment.first_op + i)].outputs) e_.drop(t);
  }

  // Just in time: an op runs again right before the first one that needs its output.
  void recompute(int tensor) {
    if (tensor < 0 || e_.has(tensor)) return;
    const int op = graph_.producer[static_cast<size_t>(tensor)];
    if (op < 0) return;  // persistent
    for (int t : graph_.ops[static_cast<size_t>(op)].inputs) recompute(t);
    e_.emit(op, Phase::recompute);
  }

  const Graph& graph_;
  const Decisions& decisions_;
  bool accumulate_;
  uint64_t base_;
  Emitter e_;
};

}  // namespace

int64_t chunk_rows(int64_t rows, int64_t chunks) {
  const int64_t n = (rows + chunks - 1) / chunks;
  return std::min(rows, (n + 15) / 16 * 16);
}

Program build_micro(const Graph& graph, const Arena& arena, const Decisions& decisions, int64_t samples, int threads,
                    bool accumulate) {
  Program p = MicroBuilder(graph, arena, decisions, samples, threads, accumulate).run();
  p.name = samples != decisions.micro_batch ? "micro_short" : accumulate ? "micro_next" : "micro_first";
  return p;
}

Program build_evaluate(const Graph& graph, const Arena& arena, const Decisions& decisions, int threads) {
  Emitter e(graph, arena, threads, decisions.micro_batch);
  e.input(graph.tokens);
  e.input(graph.targets);
  // The last three ops are the head's: logits, loss, sum.
  const int first = graph.first_evaluate_op(), head = first + static_cast<int>(graph.evaluate_ops.size()) - 3;
  for (int i = first; i < head; ++i) e.emit(i, Phase::forward);
  emit_head(e, {head, head + 1}, decisions.loss_chunks, Phase::forward, false);
  e.emit(head + 2, Phase::forward);
  Program p = e.finish(arena.gradients_begin);
  p.name = "evaluate";
  return p;
}

Program build_update(const Graph& graph, const Arena& arena, int threads) {
  Emitter e(graph, arena, threads, 1);
  const int first = graph.first_update_op();
  // Every square_sum fills one element of the sums.
  int64_t sums = 0;
  for (size_t i = 0; i < graph.update_ops.size(); ++i) {
    const bool sum = graph.update_ops[i].kind == OpKind::square_sum;
    e.emit_update(first + static_cast<int>(i), sum ? sums++ : -1);
  }
  Program p = e.finish(arena.gradients_end);
  p.name = "update";
  return p;
}

uint64_t live_bound(const Program& program, uint64_t alignment) {
  std::vector<__int128> change(program.instructions.size() + 1);
  for (const Buffer& b : program.buffers) {
    const __int128 bytes = round_up(b.bytes, alignment);
    change[static_cast<size_t>(b.first)] += bytes;
    change[static_cast<size_t>(b.last) + 1] -= bytes;
  }
  __int128 live = 0, most = 0;
  for (__int128 c : change) most = std::max(most, live += c);
  return size_add(program.base, static_cast<uint64_t>(std::min<__int128>(most, size_limit)));
}

}  // namespace stw
