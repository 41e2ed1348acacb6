#include "planner/program/micro_builder.h"

#include <algorithm>
#include <cassert>

#include "planner/graph/fuse.h"
#include "planner/graph/segment_lives.h"

namespace stw {

namespace {

bool is_kept(const Segment& segment, int op, uint32_t saved) {
  for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
    if (segment.saveable[bit] == op) return saved >> bit & 1;
  return false;
}

}  // namespace

std::vector<int> host_reads(const Graph& graph, const Arena& arena, size_t s, Phase phase, bool accumulate) {
  const Segment& segment = graph.segments[s];
  const bool is_forward = phase == Phase::forward;
  std::vector<int> list;
  if (!is_forward && segment.gradient_op_count == 0) return list;
  auto add = [&](int t) {
    if (t >= 0 && arena.on_host(t) && std::find(list.begin(), list.end(), t) == list.end()) list.push_back(t);
  };
  for (int i = 0; i < segment.op_count; ++i)  // recompute reads parameters again
    for (int t : graph.ops[segment.first_op + i].inputs)
      if (!is_forward || !segment.has_input(t)) add(t);
  for (int i = 0; !is_forward && i < segment.gradient_op_count; ++i) {
    const Op& op = graph.gradient_ops[segment.first_gradient_op + i];
    for (size_t k = 0; k < op.inputs.size(); ++k)
      if (reads_input(op.kind, k)) add(op.inputs[k]);
    for (int t : op.outputs)
      if (accumulate) add(t);
  }
  return list;
}

std::vector<int> host_writes(const Graph& graph, const Arena& arena, size_t s) {
  const Segment& segment = graph.segments[s];
  std::vector<int> list;
  for (int i = 0; i < segment.gradient_op_count; ++i)
    for (int t : graph.gradient_ops[segment.first_gradient_op + i].outputs)
      if (t >= 0 && arena.on_host(t)) list.push_back(t);
  return list;
}

void MicroBuilder::micro_step(const Decisions& d) {
  const size_t head_segment = graph_.segments.size() - 1;
  auto fetch_for = [&](size_t segment, Phase phase) {
    if (overlap_) fetch(host_reads(graph_, emitter_.arena(), segment, phase, accumulate_), phase);
  };
  auto tiles = [&](size_t segment) {
    const int64_t rows = rows_in_tiles(graph_, graph_.segments[segment]);
    return tiles_of(emitter_.samples() * rows, rows, d.tile_rows_of(segment));
  };
  auto end_stage = [&] {
    if (overlap_) emitter_.end_stage();
  };
  fetch_for(0, Phase::forward);
  end_stage();
  for (size_t s = 0; s < head_segment; ++s) {
    if (s + 1 < head_segment) fetch_for(s + 1, Phase::forward);
    forward(s, d.saved[s], tiles(s));
    end_stage();
  }
  fetch_for(head_segment - 1, Phase::backward);
  head(loss_chunks(graph_, emitter_.samples(), d.loss_chunks));
  end_stage();
  for (size_t s = head_segment; s-- > 0;) {
    store_pending();
    if (s > 0) fetch_for(s - 1, Phase::backward);
    backward(s, d.saved[s], tiles(s));
    end_stage();
  }
  store_pending();
}

void MicroBuilder::fetch(const std::vector<int>& tensors, Phase phase) {
  for (int t : tensors) emitter_.fetch(t, phase);
}

void MicroBuilder::store_pending() {
  for (int t : pending_) {
    emitter_.store(t, Phase::backward);
    emitter_.drop(t);
  }
  pending_.clear();
}

void MicroBuilder::forward(size_t s, uint32_t saved, const std::vector<Tile>& tiles) {
  const Segment& segment = graph_.segments[s];
  for (const int t : segment.inputs)
    if (emitter_.on_host(t)) emitter_.store(t, Phase::forward);
  const FeedForward& part = segment.feed_forward;
  const bool in_tiles = part.exists() && tiles.size() > 1;
  for (int i = 0; i < segment.op_count; ++i) {
    if (!in_tiles || segment.first_op + i != part.first_op) {
      const int run = fused_run(graph_, segment.first_op + i);
      emitter_.emit_fused(segment.first_op + i, run, Phase::forward,
                          is_kept(segment, segment.first_op + i, saved));
      i += run - 1;
      continue;
    }
    emitter_.emit_tiles(part.first_op, part.op_count, part.inner, tiles);
    i += part.op_count - 1;
  }
  for (int i = 0; i < segment.op_count; ++i) {
    const Op& op = graph_.ops[segment.first_op + i];
    for (int t : op.outputs)
      if (t != segment.output && !is_kept(segment, segment.first_op + i, saved)) emitter_.drop(t);
    for (int t : op.inputs)
      if (emitter_.on_host(t)) emitter_.drop(t);
  }
}

void MicroBuilder::head(const std::vector<Tile>& chunks) {
  const Segment& segment = graph_.segments.back();
  const int logits = segment.first_op, loss = logits + 1, last = logits + segment.op_count - 1;
  std::vector<int> ops;
  for (int i = 0; i < segment.gradient_op_count; ++i)
    ops.push_back(static_cast<int>(graph_.ops.size()) + segment.first_gradient_op + i);
  if (graph_.preference == Preference::none) {
    ops.insert(ops.begin(), logits);
    emitter_.emit_chunks(ops, chunks, Phase::backward, accumulate_);
    emitter_.emit(last, Phase::backward);
  } else {
    // The weights of tokens are known only after the losses of all tokens of their pair. With one chunk, the
    // logits of all rows still exist then; with several chunks they are recomputed.
    emitter_.emit_chunks({logits, loss}, chunks, Phase::backward, accumulate_);
    emitter_.emit(last, Phase::backward);
    for (const Tile& chunk : chunks) {
      if (chunks.size() > 1) emitter_.emit(logits, Phase::recompute, false, chunk.begin, chunk.rows);
      emitter_.emit_chunks(ops, {chunk}, Phase::backward, accumulate_);
    }
  }
  if (graph_.fuses_updates()) emitter_.emit(graph_.begin_update, Phase::update);
  for (int t : graph_.loss_inputs()) emitter_.hold(emitter_.buffer_of(t));
}

void MicroBuilder::backward(size_t s, uint32_t saved, const std::vector<Tile>& tiles) {
  const Segment& segment = graph_.segments[s];
  const FeedForward& part = segment.feed_forward;
  const int end = segment.first_gradient_op + segment.gradient_op_count;
  const auto emit = [&](int index, int run) {
    for (int t : inputs_of_run(index, run)) recompute(t);
    emitter_.emit_fused(index, run, Phase::backward, false, accumulate_);
  };
  const int output = reads_own_output(graph_, segment) ? emitter_.buffer_of(segment.output) : -1;
  int early = -1;  // a weight gradient that ran early, alone
  for (int i = segment.first_gradient_op; i < end;) {
    const bool in_tiles = tiles.size() > 1 && part.gradient_op_count > 0 && i == part.first_gradient_op;
    const int first = i;
    if (in_tiles) {
      backward_in_tiles(part, tiles);
      i += part.gradient_op_count;
    } else {
      const int index = static_cast<int>(graph_.ops.size()) + i, run = fused_run(graph_, index),
                deferred = deferred_weight_gradient(graph_, index);
      if (deferred >= 0 && !is_deferred(graph_, segment, deferred, saved)) emit(early = deferred, 1);
      if (index != early) emit(index, run);
      // At its own place, an early gradient only emits its stores and updates: an update must follow all ops
      // that read the parameter.
      i += index == early ? 1 : run;
    }
    if (first == segment.first_gradient_op) hold_outside(segment, output);
    for (int done = first; done < i; ++done) after_gradients(done);
  }
  for (int i = 0; i < segment.op_count; ++i) {
    const Op& op = graph_.ops[segment.first_op + i];
    for (int t : op.outputs) emitter_.drop(t);
    for (int t : op.inputs)
      if (emitter_.on_host(t)) emitter_.drop(t);
  }
}

// A segment's inputs, and its output if it has a buffer, live at least up to the segment's first gradient op,
// even if nothing reads them any more: the search assumes this.
void MicroBuilder::hold_outside(const Segment& segment, int output) {
  for (const int t : segment.inputs)
    if (emitter_.has(t)) emitter_.hold(emitter_.buffer_of(t));
  if (output >= 0) emitter_.hold(output);
}

// Emits the backward pass of a feed-forward part. Tensors from outside of the part exist with all rows. The
// tensors inside of the part are recomputed tile by tile. The last op of the part is not recomputed: its
// residual may not exist yet.
void MicroBuilder::backward_in_tiles(const FeedForward& part, const std::vector<Tile>& tiles) {
  const int first = static_cast<int>(graph_.ops.size()) + part.first_gradient_op,
            end = first + part.gradient_op_count;
  auto is_inner_tensor = [&](int t) {
    return std::find(part.inner.begin(), part.inner.end(), t) != part.inner.end();
  };
  std::vector<bool> is_recomputed(graph_.tensors.size());  // tensors that are recomputed for every tile
  for (int index = first; index < end; ++index)
    for (int t : graph_.op(index).inputs)
      if (t >= 0) is_recomputed[t] = is_inner_tensor(t);
  for (int i = part.op_count - 1; i-- > 0;)
    if (is_recomputed[part.inner[i]])
      for (int t : graph_.op(part.first_op + i).inputs)
        if (t >= 0 && is_inner_tensor(t)) is_recomputed[t] = true;
  for (int i = 0; i + 1 < part.op_count; ++i)
    if (is_recomputed[part.inner[i]])
      for (int t : graph_.op(part.first_op + i).inputs)
        if (t >= 0 && !is_inner_tensor(t)) recompute(t);
  for ([[maybe_unused]] int t : part.inner)
    assert(!emitter_.has(t) && "may_tile allows no save-set that keeps or recomputes these tensors");
  emitter_.set_tiled(part.inner, true);
  emitter_.set_tiled(part.inner_gradients, true);
  for (const Tile& tile : tiles) {
    for (int index = first, run; index < end; index += run) {
      run = fused_run(graph_, index);
      for (int t : inputs_of_run(index, run))
        if (t >= 0 && is_inner_tensor(t)) recompute_tile(part, t, tile);
      emitter_.emit_fused(index, run, Phase::backward, false, accumulate_ || tile.begin > 0, tile.begin,
                          tile.rows);
    }
    for (int t : part.inner) emitter_.drop(t);
  }
  emitter_.set_tiled(part.inner, false);
  emitter_.set_tiled(part.inner_gradients, false);
}

// The tensors that must exist before a run of gradient ops begins.
std::vector<int> MicroBuilder::inputs_of_run(int first, int run) const {
  std::vector<int> list;
  const auto add = [&](int op) {
    list.insert(list.end(), graph_.op(op).inputs.begin(), graph_.op(op).inputs.end());
  };
  if (const int deferred = deferred_weight_gradient(graph_, first); deferred >= 0) add(deferred);
  for (int op = first; op < first + run; ++op) add(op);
  return list;
}

void MicroBuilder::recompute_tile(const FeedForward& part, int tensor, const Tile& tile) {
  if (emitter_.has(tensor)) return;
  const int op = part.first_op + static_cast<int>(std::find(part.inner.begin(), part.inner.end(), tensor) -
                                                  part.inner.begin());
  const int first = first_to_recompute(op);
  for (int t : graph_.op(first).inputs)
    if (is_inner(part, t)) recompute_tile(part, t, tile);
  emitter_.emit_fused(first, op + 1 - first, Phase::recompute, is_read_in_backward(first), false, tile.begin,
                      tile.rows);
}

// The op at which a recompute of `op` begins: the op before, if the two are fused and the output of that op
// does not exist either; otherwise `op`.
int MicroBuilder::first_to_recompute(int op) const {
  return graph_.op(op).fused && !emitter_.has(graph_.op(op - 1).outputs[0]) ? op - 1 : op;
}
bool MicroBuilder::is_read_in_backward(int op) const {
  const std::vector<int>& saveable = graph_.segments[graph_.op(op).segment].saveable;
  return std::find(saveable.begin(), saveable.end(), op) != saveable.end();
}

void MicroBuilder::after_gradients(int gradient_op) {
  for (int t : graph_.gradient_ops[gradient_op].outputs)
    if (emitter_.on_host(t)) pending_.push_back(t);  // the gradient of a parameter
  if (!overlap_) store_pending();
  if (!graph_.fuses_updates()) return;
  for (const FusedUpdate& u : graph_.updates_after[gradient_op]) {
    emitter_.emit_update(u.square_sum, u.sum);
    emitter_.emit_update(u.update, -1);
    emitter_.drop(graph_.op(u.update).inputs[0]);
  }
}

// Recomputes a tensor that does not exist, together with the tensors that this needs.
void MicroBuilder::recompute(int tensor) {
  if (tensor < 0 || emitter_.has(tensor) || emitter_.on_host(tensor)) return;
  const int op = graph_.producer[tensor];
  if (op < 0) return;  // persistent
  const int first = first_to_recompute(op);
  for (int t : graph_.op(first).inputs) recompute(t);
  emitter_.emit_fused(first, op + 1 - first, Phase::recompute, is_read_in_backward(first));
}

}  // namespace stw
