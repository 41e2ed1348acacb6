// The program of the update. If parameters or their states lie in host memory, it processes them slice by
// slice. If copies run while ops compute, the next slice is fetched before the current one is computed.
// Slices of a gradient that is formed from kept rows are formed right before the op that reads them.
#include <algorithm>

#include "planner/graph/kept_rows.h"
#include "planner/graph/optimizer.h"
#include "planner/program/emitter.h"

namespace stw {

namespace {

constexpr int64_t most_slices = 4096;  // of one tensor; large tensors get larger slices

struct Piece {
  UpdateRun run;
  int64_t sum = -1;                         // for square_sum: the element of the sums that the first op fills
  int64_t first_element = 0, elements = 0;  // part of the parameter; 0 elements: all
  bool forms = false;                       // whether a slice of the gradient is formed before
};

std::vector<Piece> pieces(const Graph& graph, const Arena& arena) {
  auto has_copies = [&](const Op& op) {
    for (const auto* operands : {&op.inputs, &op.outputs})
      for (int t : *operands)
        if (t >= 0 && arena.on_host(t)) return true;
    return false;
  };
  std::vector<Piece> list;
  const int first_sum = graph.first_square_sum();
  for (const UpdateRun& run : update_runs(graph, has_copies)) {
    const Op& op = graph.op(run.op);
    const int64_t sum = op.kind == OpKind::square_sum ? run.op - first_sum : -1;
    const bool in_slices = is_update(op.kind) && update_rule(op.kind).is_elementwise && has_copies(op);
    const bool forms = reads_formed(graph, op);
    if (!in_slices && !forms) {
      list.push_back({run, sum});
      continue;
    }
    // Gradient and parameter have the same shape.
    const int64_t count = static_cast<int64_t>(graph.at(op.inputs[0]).shape.elements());
    const int64_t copied =
        in_slices ? std::max(arena.offload.slice, (count / most_slices + kernels::quantile_block) /
                                                      kernels::quantile_block * kernels::quantile_block)
                  : INT64_MAX;
    const int64_t slice = forms ? formed_slice(graph, copied) : copied;
    for (int64_t first = 0; first < count; first += slice)
      list.push_back({run, sum, first, std::min(slice, count - first), forms});
  }
  return list;
}

struct Window {
  int tensor, buffer;
};

}  // namespace

std::vector<UpdateRun> update_runs(const Graph& graph, const std::function<bool(const Op&)>& alone) {
  // Whether the op belongs to no run: the micro-step runs it (an update inside the backward pass, or
  // begin_update), or it forms slices for others.
  std::vector<bool> is_left_out(graph.update_ops.size());
  auto mark = [&](int op) { is_left_out[op - graph.first_update_op()] = true; };
  for (const std::vector<FusedUpdate>& updates : graph.updates_after)
    for (const FusedUpdate& u : updates) mark(u.square_sum), mark(u.update);
  if (graph.fuses_updates()) mark(graph.begin_update);
  if (graph.kept.forming_op >= 0) mark(graph.kept.forming_op);
  std::vector<UpdateRun> runs;
  bool last_may_share = false;  // whether the last run may take another op
  for (size_t i = 0; i < graph.update_ops.size(); ++i) {
    if (is_left_out[i]) continue;
    const Op& op = graph.update_ops[i];
    const int index = graph.first_update_op() + static_cast<int>(i);
    const bool may_share =
        op_row(op.kind).is_multi_tensor && !reads_formed(graph, op) && !(alone && alone(op));
    if (last_may_share && may_share && runs.back().op + runs.back().ops == index &&
        runs.back().ops < kernels::most_together && graph.op(runs.back().op).kind == op.kind)
      runs.back().ops += 1;
    else runs.push_back({index, 1});
    last_may_share = may_share;
  }
  return runs;
}

Program build_update(const Graph& graph, const Arena& arena, int threads) {
  const std::vector<Piece> list = pieces(graph, arena);
  Emitter e(graph, arena, threads, 1, 0, arena.offload.any() ? 6 * list.size() : 0);
  auto fetch = [&](const Piece& piece) {
    std::vector<Window> windows;
    e.set_slice(piece.first_element, piece.elements);
    for (int t : e.host_operands(piece.run.op, Phase::update, false)) {
      e.fetch(t, Phase::update);
      windows.push_back({t, e.buffer_of(t)});
      e.drop(t);
    }
    return windows;
  };
  const bool overlap = arena.offload.overlap;
  // The last piece that was computed, and the host tensors that it changed, with the buffers of their slices.
  struct Changed {
    Piece piece;
    std::vector<Window> windows;
  } changed;
  auto store = [&] {
    e.set_slice(changed.piece.first_element, changed.piece.elements);
    for (const Window& w : changed.windows) {
      e.attach(w.tensor, w.buffer);
      e.store(w.tensor, Phase::update);
      e.drop(w.tensor);
    }
    changed.windows.clear();
  };
  std::vector<Window> next;
  if (overlap) {
    next = fetch(list[0]);
    e.end_stage();
  }
  for (size_t k = 0; k < list.size(); ++k) {
    const Piece& piece = list[k];
    std::vector<Window> now = overlap ? std::move(next) : fetch(piece);
    if (overlap) {
      store();
      next = k + 1 < list.size() ? fetch(list[k + 1]) : std::vector<Window>{};
    }
    for (const Window& w : now) e.attach(w.tensor, w.buffer);
    e.set_slice(piece.first_element, piece.elements);
    if (piece.forms) e.emit(graph.kept.forming_op, Phase::update);
    e.emit_update(piece.run.op, piece.sum, piece.run.ops);
    if (piece.forms) e.drop(graph.kept.formed);
    for (const Window& w : now) e.drop(w.tensor);
    const std::vector<int>& outputs = graph.op(piece.run.op).outputs;
    std::erase_if(now, [&](const Window& w) {
      return std::find(outputs.begin(), outputs.end(), w.tensor) == outputs.end();
    });
    changed = {piece, std::move(now)};
    if (overlap) e.end_stage();
    else store();
  }
  store();
  Program p = e.finish(arena.gradients_end);
  p.name = "update";
  return p;
}

}  // namespace stw
