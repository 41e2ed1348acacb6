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

// Pieces that are computed one after the other, without copies between them.
using Group = std::vector<Piece>;

// Cuts the ops of the update into pieces, and groups these.
//
// If copies run while ops compute, the next group is fetched and the previous one is stored at the same time.
// The longer of these copies decides how long that takes. So all groups with copies have about the same
// number of elements: parameters are cut where a group is full.
class Grouping {
 public:
  Grouping(const Graph& graph, const Arena& arena) : graph_(graph), arena_(arena) {
    const std::vector<UpdateRun> runs = update_runs(graph, [&](const Op& op) { return has_copies(op); });
    for (const UpdateRun& run : runs)
      if (is_cut(run)) most_ = std::max(most_, std::min(longest_slice(run), whole_blocks(elements(run))));
    for (const UpdateRun& run : runs) add(run);
  }
  std::vector<Group> take() { return std::move(groups_); }

 private:
  bool has_copies(const Op& op) const {
    for (const auto* operands : {&op.inputs, &op.outputs})
      for (int t : *operands)
        if (t >= 0 && arena_.on_host(t)) return true;
    return false;
  }
  bool is_cut(const UpdateRun& run) const {
    const Op& op = graph_.op(run.op);
    return is_update(op.kind) && update_rule(op.kind).is_elementwise && has_copies(op);
  }
  // Of the parameter. Its gradient has the same shape.
  int64_t elements(const UpdateRun& run) const {
    return static_cast<int64_t>(graph_.at(graph_.op(run.op).inputs[0]).shape.elements());
  }
  int64_t longest_slice(const UpdateRun& run) const {
    return std::max(arena_.offload.slice, whole_blocks(elements(run) / most_slices + 1));
  }
  static int64_t whole_blocks(int64_t elements) {
    return (elements + kernels::quantile_block - 1) / kernels::quantile_block * kernels::quantile_block;
  }

  void add(const UpdateRun& run) {
    const Op& op = graph_.op(run.op);
    const bool forms = reads_formed(graph_, op), cut = is_cut(run);
    if (cut && !forms && arena_.offload.overlap) return add_slices(run);
    room_ = 0;
    const int64_t sum = op.kind == OpKind::square_sum ? run.op - graph_.first_square_sum() : -1;
    if (!cut && !forms) {
      const bool copies = has_copies(op);
      if (copies || !is_last_without_copies_) groups_.emplace_back();
      groups_.back().push_back({run, sum});
      is_last_without_copies_ = !copies;
      return;
    }
    is_last_without_copies_ = false;
    const int64_t all = elements(run), copied = cut ? longest_slice(run) : INT64_MAX,
                  slice = forms ? formed_slice(graph_, copied) : copied;
    for (int64_t first = 0; first < all; first += slice)
      groups_.push_back({{run, sum, first, std::min(slice, all - first), forms}});
  }

  void add_slices(const UpdateRun& run) {
    is_last_without_copies_ = false;
    constexpr int64_t block = kernels::quantile_block;
    const int64_t all = elements(run), least = std::max(most_ / 8, block);
    for (int64_t first = 0, count = 0; first < all; first += count) {
      // A small rest of a group stays empty, so that slices are not very small.
      if (room_ < std::min(all - first, least)) {
        groups_.emplace_back();
        room_ = most_;
      }
      count = all - first <= room_ ? all - first : room_ / block * block;
      groups_.back().push_back({run, -1, first, count});
      room_ -= count;
    }
  }

  const Graph& graph_;
  const Arena& arena_;
  int64_t most_ = 0;  // elements of a group with slices
  int64_t room_ = 0;  // elements that the last group may still take
  bool is_last_without_copies_ = false;
  std::vector<Group> groups_;
};

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
  const std::vector<Group> groups = Grouping(graph, arena).take();
  size_t pieces = 0;
  for (const Group& group : groups) pieces += group.size();
  Emitter e(graph, arena, threads, 1, 0, arena.offload.any() ? 6 * pieces : 0);
  // A piece with the host tensors that it reads or, later, changes: their slices are in buffers.
  struct Loaded {
    Piece piece;
    std::vector<Window> windows;
  };
  auto fetch = [&](const Group& group) {
    std::vector<Loaded> list;
    for (const Piece& piece : group) {
      list.push_back({piece, {}});
      e.set_slice(piece.first_element, piece.elements);
      for (int t : e.host_operands(piece.run.op, Phase::update, false)) {
        e.fetch(t, Phase::update);
        list.back().windows.push_back({t, e.buffer_of(t)});
        e.drop(t);
      }
    }
    return list;
  };
  auto compute = [&](Loaded& loaded) {
    auto& [piece, windows] = loaded;
    for (const Window& w : windows) e.attach(w.tensor, w.buffer);
    e.set_slice(piece.first_element, piece.elements);
    if (piece.forms) e.emit(graph.kept.forming_op, Phase::update);
    e.emit_update(piece.run.op, piece.sum, piece.run.ops);
    if (piece.forms) e.drop(graph.kept.formed);
    for (const Window& w : windows) e.drop(w.tensor);
    const std::vector<int>& outputs = graph.op(piece.run.op).outputs;
    std::erase_if(windows, [&](const Window& w) {
      return std::find(outputs.begin(), outputs.end(), w.tensor) == outputs.end();
    });
  };
  auto store = [&](const std::vector<Loaded>& changed) {
    for (const auto& [piece, windows] : changed) {
      e.set_slice(piece.first_element, piece.elements);
      for (const Window& w : windows) {
        e.attach(w.tensor, w.buffer);
        e.store(w.tensor, Phase::update);
        e.drop(w.tensor);
      }
    }
  };
  const bool overlap = arena.offload.overlap;
  std::vector<Loaded> changed, now, next;
  if (overlap) {
    next = fetch(groups[0]);
    e.end_stage();
  }
  for (size_t k = 0; k < groups.size(); ++k) {
    now = overlap ? std::move(next) : fetch(groups[k]);
    if (overlap) store(changed);
    next = overlap && k + 1 < groups.size() ? fetch(groups[k + 1]) : std::vector<Loaded>{};
    for (Loaded& loaded : now) compute(loaded);
    changed = std::move(now);
    if (overlap) e.end_stage();
    else store(changed);
  }
  if (overlap) store(changed);
  Program p = e.finish(arena.gradients_end);
  p.name = "update";
  return p;
}

}  // namespace stw
