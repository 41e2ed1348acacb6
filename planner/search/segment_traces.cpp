#include "planner/search/segment_traces.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "planner/base/check_in.h"
#include "planner/graph/fuse.h"
#include "planner/graph/op_table.h"
#include "planner/program/micro_builder.h"

namespace stw {

namespace {

constexpr size_t ops_of_a_trace = 128;  // about as many

// Arbitrary numbers of rows, which only serve to distinguish the tiles in the emitted program.
struct TraceRows {
  int64_t all, tile, last_tile;
  TraceRows(const Graph& graph, const Segment& segment)
      : all(rows_in_tiles(graph, segment)), tile(3 * all), last_tile(2 * all) {}
};

// Lists everything that the traces of a block depend on, as numbers. Blocks with equal lists have the same
// traces, also in two graphs.
class TraceKey {
 public:
  TraceKey(const Graph& graph, const Arena& arena, size_t segment, const SegmentLives& lives, int threads)
      : graph_(graph),
        arena_(arena),
        segment_(graph.segments[segment]),
        rows_(graph, segment_),
        threads_(threads),
        local_(graph, segment_, lives) {
    add_segment();
    add_lives(lives);
    for (int i = 0; i < segment_.op_count; ++i) add_op(segment_.first_op + i);
    for (int i = 0; i < segment_.gradient_op_count; ++i) add_op(first_gradient_op() + i);
    // Whether a weight gradient is deferred depends on the op after a fused run, too.
    if (const int next = first_gradient_op() + segment_.gradient_op_count; next < graph.first_update_op())
      add_operands(graph.op(next));
    for (int t : local_.tensors()) add_tensor(t);
  }
  std::vector<int64_t> take() { return std::move(numbers_); }

 private:
  void add(int64_t number) { numbers_.push_back(number); }
  int first_gradient_op() const { return static_cast<int>(graph_.ops.size()) + segment_.first_gradient_op; }

  void add_segment() {
    for (int64_t x : {segment_.op_count, segment_.gradient_op_count, local_.of_tensor(segment_.output),
                      int{arena_.offload.overlap}, static_cast<int>(segment_.saveable.size())})
      add(x);
    for (int op : segment_.saveable) add(local_.of_op(op));
    for (int with : segment_.kept_with) add(with);
    const FeedForward& part = segment_.feed_forward;
    for (int64_t x : {part.first_op - segment_.first_op, part.op_count,
                      part.first_gradient_op - segment_.first_gradient_op, part.gradient_op_count})
      add(part.exists() ? x : 0);
    for (const auto* list : {&part.inner, &part.inner_gradients}) {
      add(static_cast<int64_t>(list->size()));
      for (int t : *list) add(local_.of_tensor(t));
    }
  }

  void add_lives(const SegmentLives& lives) {
    for (const bool is : {lives.keeps_output, lives.has_readers}) add(is);
    add(static_cast<int64_t>(lives.outputs.size()));
    for (const auto& [tensor, is_kept, outlives_forward, is_in_backward, outlives_backward] : lives.outputs) {
      add(local_.of_tensor(tensor));
      add(segment_.has_input(tensor));
      for (const bool is : {is_kept, outlives_forward, is_in_backward, outlives_backward}) add(is);
    }
    add(static_cast<int64_t>(lives.gradients.size()));
    for (const auto& [tensor, enters, leaves] : lives.gradients) {
      add(local_.of_tensor(tensor));
      for (const bool is : {enters, leaves}) add(is);
    }
  }

  void add_operands(const Op& op) {
    add(static_cast<int64_t>(op.kind));
    for (const auto* list : {&op.inputs, &op.outputs}) {
      add(static_cast<int64_t>(list->size()));
      for (int t : *list) add(local_.of_tensor(t));
    }
  }

  void add_op(int index) {
    const Op& op = graph_.op(index);
    add_operands(op);
    add(op.fused);
    add(of_rows_.try_emplace(graph_.rows_of(op), static_cast<int64_t>(of_rows_.size())).first->second);
    add_in_place(op);
    // Whether the op has scratch memory, alone or with the fused op before it.
    const OpRow& row = op_row(op.kind);
    for (const int64_t rows : {int64_t{0}, rows_.tile, rows_.last_tile})
      for (int first : {index, index - op.fused})
        add(row.workspace(graph_, op, extent_of(graph_, graph_.op(first), 1, rows, threads_)) > 0);
  }

  void add_tensor(int tensor) {
    const Tensor& t = graph_.at(tensor);
    const int producer = graph_.producer[tensor];
    const bool is_own = producer >= segment_.first_op && producer < segment_.first_op + segment_.op_count;
    for (int64_t x : {static_cast<int64_t>(t.role), int64_t{t.per_sample}, int64_t{t.chunked},
                      int64_t{arena_.on_host(tensor)}, int64_t{arena_.of_tensor[tensor] >= 0},
                      int64_t{is_own         ? local_.of_op(producer)
                              : producer < 0 ? -1
                                             : -2}})
      add(x);
  }

  // An output takes the memory of an input only if both have the same bytes: without tiles, in a tile, and in
  // the last one.
  void add_in_place(const Op& op) {
    for (const InPlace pair : op_row(op.kind).in_place) {
      if (pair.output < 0 || static_cast<size_t>(pair.output) >= op.outputs.size() ||
          static_cast<size_t>(pair.input) >= op.inputs.size())
        continue;
      const int input = op.inputs[static_cast<size_t>(pair.input)],
                output = op.outputs[static_cast<size_t>(pair.output)];
      for (const int64_t rows : {int64_t{0}, rows_.tile, rows_.last_tile})
        add(input >= 0 && output >= 0 && bytes_of(input, rows) == bytes_of(output, rows));
    }
  }

  // Bytes of a tensor in a tile of so many rows; 0: without tiles.
  uint64_t bytes_of(int tensor, int64_t rows) const {
    const Tensor& t = graph_.at(tensor);
    return rows > 0 && is_inner(segment_.feed_forward, tensor)
               ? size_mul(t.row_bytes(), static_cast<uint64_t>(rows))
               : t.bytes(1);
  }

  const Graph& graph_;
  const Arena& arena_;
  const Segment& segment_;
  const TraceRows rows_;
  const int threads_;
  const LocalNumbers local_;
  std::map<int64_t, int64_t> of_rows_;  // numbers of rows, in the order of the ops that have them
  std::vector<int64_t> numbers_;
};

}  // namespace

LocalNumbers::LocalNumbers(const Graph& graph, const Segment& segment, const SegmentLives& lives)
    : first_op_(segment.first_op),
      op_count_(segment.op_count),
      first_gradient_op_(static_cast<int>(graph.ops.size()) + segment.first_gradient_op),
      gradient_op_count_(segment.gradient_op_count) {
  const auto add_operands = [&](const Op& op) {
    for (const auto* list : {&op.inputs, &op.outputs})
      for (int t : *list) add(t);
  };
  for (int i = 0; i < op_count_; ++i) add_operands(graph.op(first_op_ + i));
  for (int i = 0; i < gradient_op_count_; ++i) add_operands(graph.op(first_gradient_op_ + i));
  for (const OutsideOutput& o : lives.outputs) add(o.tensor);
  for (const OutsideGradient& g : lives.gradients) add(g.tensor);
}

void LocalNumbers::add(int tensor) {
  if (tensor >= 0 && numbers_.try_emplace(tensor, static_cast<int>(tensors_.size())).second)
    tensors_.push_back(tensor);
}

int LocalNumbers::of_tensor(int tensor) const {
  const auto known = numbers_.find(tensor);
  return known == numbers_.end() ? -1 : known->second;
}

int LocalNumbers::of_op(int op) const {
  if (op >= first_op_ && op < first_op_ + op_count_) return op - first_op_;
  if (op >= first_gradient_op_ && op < first_gradient_op_ + gradient_op_count_)
    return op_count_ + op - first_gradient_op_;
  return -1 - op;
}

int LocalNumbers::op(int number) const {
  if (number < 0) return -1 - number;
  return number < op_count_ ? first_op_ + number : first_gradient_op_ + number - op_count_;
}

Arena arena_of_traces(const Graph& graph, const Arena& arena) {
  // Gradients that updates inside the backward pass consume have no place in the arena.
  if (!arena.offload.any() || graph.fuses_updates()) return arena;
  Offload offload = arena.offload;
  offload[Offloaded::gradients] = offload[Offloaded::weights] = graph.blocks();
  return make_arena(graph, arena.alignment, offload);
}

SegmentTraces::Source::Source(const Graph& all, const Arena& of_graph, size_t index,
                              const SegmentLives& of_segment, int cpu_threads)
    : graph(all),
      arena(of_graph),
      segment(index),
      lives(of_segment),
      threads(cpu_threads),
      numbers(all, all.segments[index], of_segment),
      sample_inputs(all.body_inputs()),
      forward_reads(host_reads(all, of_graph, index, Phase::forward, true)),
      backward_reads(host_reads(all, of_graph, index, Phase::backward, true)) {}

SegmentTraces::SegmentTraces(const Graph& graph, const Arena& arena, size_t segment,
                             const SegmentLives& lives, int threads, Recompute recompute) {
  const Segment& s = graph.segments[segment];
  const Source source(graph, arena, segment, lives, threads);
  if (s.kind != SegmentKind::block) {
    traces_.push_back(trace(source, ~0u, 1));
    return;
  }
  const uint32_t all = (1u << s.saveable.size()) - 1;
  for (uint32_t saved = all;; --saved) {
    // Keeping everything is a choice too, even if `kept_with` forbids some of its tensors.
    const bool is_choice = saved == s.choice_of(saved) || saved == all;
    const bool allowed =
        recompute == Recompute::choose ? is_choice : saved == (recompute == Recompute::none ? all : 0);
    if (allowed) traces_.push_back(trace(source, saved, 1));
    if (allowed && may_tile(graph, s, saved))
      for (int tiles : {2, 3}) traces_.push_back(trace(source, saved, tiles));
    if (saved == 0) break;
  }
}

uint16_t SegmentTraces::size_index(const Size& size) {
  const auto [entry, is_new] = size_index_.try_emplace(size, static_cast<uint16_t>(sizes_.size()));
  if (is_new) sizes_.push_back(size);
  return entry->second;
}

SegmentTraces::Trace SegmentTraces::trace(const Source& source, uint32_t saved, int tiles) {
  const Graph& graph = source.graph;
  const size_t segment = source.segment;
  const Segment& s = graph.segments[segment];
  Emitter e(graph, source.arena, source.threads, 1, 0, ops_of_a_trace);
  const bool overlap = source.arena.offload.overlap;
  MicroBuilder builder(graph, e, true, overlap);
  const std::vector<OutsideOutput>& outside = source.lives.outputs;
  for (const OutsideOutput& o : outside) {
    e.assume(o.tensor, Phase::forward);
    e.watch(o.tensor);
  }
  for (int t : source.sample_inputs) e.input(t);
  if (overlap) builder.fetch(source.forward_reads, Phase::forward);
  if (overlap) e.end_stage();
  Trace t;
  t.saved = saved, t.tiles = tiles;
  t.forward_ops = e.instruction_count();
  const TraceRows rows(graph, s);
  std::vector<Tile> cut{{0, tiles > 1 ? rows.tile : rows.all}};
  if (tiles > 2) cut.push_back({rows.tile, rows.tile});
  if (tiles > 1) cut.push_back({(tiles - 1) * rows.tile, rows.last_tile});
  builder.forward(segment, saved, cut);
  if (overlap) e.end_stage();
  for (size_t k = 0; k < outside.size(); ++k)
    if (outside[k].outlives_forward && !source.arena.on_host(outside[k].tensor)) e.outlive(e.watched()[k]);
  e.watch(s.output);
  for (int input : source.sample_inputs) e.watch(input);
  t.backward = e.instruction_count();
  for (const OutsideGradient& g : source.lives.gradients)
    if (g.enters && s.gradient_op_count > 0) e.assume(g.tensor, Phase::backward);
  if (overlap) builder.fetch(source.backward_reads, Phase::backward);
  if (overlap) e.end_stage();
  t.backward_ops = e.instruction_count();
  for (const int op : unshared_weight_gradients(graph, s, saved))
    t.unshared.push_back(static_cast<int16_t>(source.numbers.of_op(op)));
  builder.backward(segment, saved, cut);
  for (const OutsideGradient& g : source.lives.gradients)
    if (g.leaves && e.has(g.tensor)) e.outlive(e.buffer_of(g.tensor));
  for (size_t k = 0; k < outside.size(); ++k)
    if (outside[k].outlives_backward) e.outlive(e.watched()[k]);
  for (int gradient : builder.pending()) e.hold(e.buffer_of(gradient));
  const Program p = e.finish(0);
  record(source, e, p, t);
  return t;
}

void SegmentTraces::record(const Source& source, const Emitter& e, const Program& p, Trace& t) {
  const Graph& graph = source.graph;
  const Arena& arena = source.arena;
  const LocalNumbers& numbers = source.numbers;
  const Segment& s = graph.segments[source.segment];
  const int64_t last_rows = TraceRows(graph, s).last_tile;
  t.instructions = static_cast<int>(p.instructions.size());
  const auto part_of = [&](const Instruction& i) {
    return i.rows == graph.rows_of(graph.op(i.op)) ? Rows::all
           : i.rows == last_rows                   ? Rows::last_tile
                                                   : Rows::tile;
  };
  // Buffer -> first op and number of ops of its instruction.
  std::map<int, std::pair<int, int>> workspace_of;
  for (const Instruction& i : p.instructions) {
    const bool is_recomputed = i.phase == Phase::recompute && !is_transfer(i.kind);
    if (is_transfer(i.kind)) {
      const bool is_store = i.kind == OpKind::store;
      const int tensor = is_store ? graph.op(i.op).inputs[0] : graph.op(i.op).outputs[0];
      t.transfers.push_back({static_cast<int16_t>(numbers.of_tensor(tensor)), is_store});
    }
    const bool whole = part_of(i) == Rows::all;
    for (int k = 0; k < i.ops && is_recomputed && (whole || i.rows == last_rows); ++k)
      (whole ? t.recomputed : t.recomputed_tiles)
          .push_back({static_cast<int16_t>(i.op + k - s.first_op), k > 0});
    if (i.workspace.buffer >= 0) workspace_of[i.workspace.buffer] = {numbers.of_op(i.op), i.ops};
  }
  // In `watched`: outputs of other segments, then the segment's output, then the inputs of samples.
  const std::vector<int>& watched = e.watched();
  const size_t outside_count = source.lives.outputs.size();
  for (int b = 0; b < static_cast<int>(p.buffers.size()); ++b) {
    const Buffer& buffer = p.buffers[b];
    const auto place = static_cast<size_t>(std::find(watched.begin(), watched.end(), b) - watched.begin());
    if (place > outside_count && place < watched.size()) continue;
    const bool is_output = b == watched[outside_count];
    // An output of an earlier segment, unless a tensor of this segment may take its memory.
    const OutsideOutput* outside = place < outside_count ? &source.lives.outputs[place] : nullptr;
    if (outside && (!outside->outlives_forward || arena.on_host(outside->tensor))) outside = nullptr;
    if (outside && outside->is_kept) {  // the earlier segment counts it
      if (!outside->outlives_backward)
        t.released.push_back({size_index({false, numbers.of_tensor(outside->tensor), 0, Rows::all}),
                              static_cast<uint16_t>(buffer.last)});
      continue;
    }
    const auto op = workspace_of.find(b);
    const bool is_workspace = op != workspace_of.end();
    const Rows part = is_workspace || is_inner(s.feed_forward, buffer.tensor)
                          ? part_of(p.instructions[buffer.first])
                          : Rows::all;
    const auto [tensor_or_op, ops] =
        is_workspace ? op->second : std::pair{numbers.of_tensor(buffer.tensor), 0};
    assert(is_workspace || tensor_or_op >= 0);
    int last = buffer.last;
    if (is_output && source.lives.has_readers) last = std::max(last, t.backward - 1);
    const bool ends_in_forward = outside && !outside->is_in_backward;
    last = std::min(last, (ends_in_forward ? t.backward : t.instructions) - 1);
    const uint16_t size = size_index({is_workspace, tensor_or_op, ops, part});
    // The output stays for a backward pass, unless it goes to host memory.
    const bool stays = is_output && source.lives.keeps_output && !arena.on_host(s.output);
    if (!outside && buffer.first < t.backward && (last >= t.backward || stays)) t.kept.push_back(size);
    t.lives.push_back({size, static_cast<uint16_t>(buffer.first), static_cast<uint16_t>(last)});
  }
}

std::shared_ptr<const SegmentTraces> TraceCache::of(const Graph& graph, const Arena& arena, size_t segment,
                                                    const SegmentLives& lives, int threads,
                                                    Recompute recompute) {
  const auto make = [&] {
    return std::make_shared<const SegmentTraces>(graph, arena, segment, lives, threads, recompute);
  };
  // Other segments have one trace. Updates inside the backward pass have ops outside of the segment.
  if (graph.segments[segment].kind != SegmentKind::block || graph.fuses_updates()) return make();
  check_in();
  std::vector<int64_t> key = TraceKey(graph, arena, segment, lives, threads).take();
  key.push_back(static_cast<int64_t>(recompute));
  std::shared_ptr<const SegmentTraces>& known = known_[std::move(key)];
  if (!known) known = make();
  return known;
}

}  // namespace stw
