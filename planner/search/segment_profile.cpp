#include "planner/search/segment_profile.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include "planner/base/check_in.h"
#include "planner/program/micro_builder.h"

namespace stw {

namespace {

constexpr size_t ops_of_a_head = 128;  // about as many

int64_t aligned(uint64_t bytes, uint64_t alignment) {
  return static_cast<int64_t>(round_up(bytes, alignment));
}

}  // namespace

NeighbourCopies neighbour_copies(const Graph& graph, const Arena& arena, size_t s) {
  NeighbourCopies copies;
  if (!arena.offload.overlap) return copies;
  const size_t head = graph.segments.size() - 1;
  if (s + 1 < head) {
    copies.forward_fetches = host_reads(graph, arena, s + 1, Phase::forward, true);
    copies.backward_stores = host_writes(graph, arena, s + 1);
  }
  if (s > 0) copies.backward_fetches = host_reads(graph, arena, s - 1, Phase::backward, true);
  return copies;
}

SegmentProfile::SegmentProfile(const Graph& graph, const Arena& arena, const Arena& of_traces, size_t segment,
                               const SegmentLives& lives, int threads, Recompute recompute, TraceCache& cache)
    : graph_(graph),
      arena_(arena),
      segment_(segment),
      threads_(threads),
      traces_(cache.of(graph, of_traces, segment, lives, threads, recompute)),
      numbers_(graph, graph.segments[segment], lives),
      has_forward_fetches_(!host_reads(graph, arena, segment, Phase::forward, true).empty()),
      has_backward_fetches_(!host_reads(graph, arena, segment, Phase::backward, true).empty()) {}

std::vector<SegmentProfile::Option> SegmentProfile::options(int64_t micro_batch) const {
  const int64_t rows = rows_in_tiles(graph_, graph_.segments[segment_]);
  std::vector<Option> list;
  for (const Trace& t : traces_->traces()) {
    if (t.tiles == 1) list.push_back({&t, 0});
    for (size_t k = 0; t.tiles > 1 && k < graph_.tile_rows.size(); ++k) {
      const int64_t tiles = tiling_of(micro_batch * rows, rows, graph_.tile_rows[k]).tiles();
      if (tiles <= most_tiles && t.tiles == static_cast<int>(std::min<int64_t>(tiles, 3)))
        list.push_back({&t, graph_.tile_rows[k]});
    }
  }
  return list;
}

SegmentProfile::Stage SegmentProfile::forward_stage(const Pricing& pricing, int64_t samples,
                                                    const NeighbourCopies& copies) const {
  const Segment& s = graph_.segments[segment_];
  Stage stage;
  stage.ops = pricing.ops(s.first_op, s.op_count, samples);
  for (int t : copies.forward_fetches)
    stage.fetches = size_add(stage.fetches, pricing.op(graph_.op(graph_.fetch_op(t)), samples));
  if (const int input = input_on_host(graph_, s, arena_.offload); input >= 0)
    stage.stores = pricing.op(graph_.op(graph_.store_op(input)), samples);
  return stage;
}

SegmentProfile::Stage SegmentProfile::backward_stage(const Pricing& pricing, int64_t samples,
                                                     const NeighbourCopies& copies, bool accumulate) const {
  const Segment& s = graph_.segments[segment_];
  Stage stage;
  stage.ops =
      pricing.ops(static_cast<int>(graph_.ops.size()) + s.first_gradient_op, s.gradient_op_count, samples);
  for (int t : copies.backward_fetches)
    if (accumulate || graph_.at(t).role != Role::gradient)
      stage.fetches = size_add(stage.fetches, pricing.op(graph_.op(graph_.fetch_op(t)), samples));
  for (int t : copies.backward_stores)
    stage.stores = size_add(stage.stores, pricing.op(graph_.op(graph_.store_op(t)), samples));
  return stage;
}

void SegmentProfile::set_times(OwnFigures::Times OwnFigures::*which, const std::vector<Option>& options,
                               int64_t samples, bool accumulate, Figures figures, const Pricing& pricing,
                               std::vector<OwnFigures>& list) const {
  const Segment& s = graph_.segments[segment_];
  std::vector<uint64_t> prices, fused_prices;
  for (int i = s.first_op; i < s.first_op + s.op_count; ++i) {
    prices.push_back(pricing.op(graph_.op(i), samples));
    fused_prices.push_back(pricing.fused(i, samples));
  }
  std::map<int64_t, TilePrices> tile_prices;  // by rows of a tile
  std::map<int, uint64_t> unshared_prices;    // by op
  const auto unshared_price = [&](int op) {
    const auto [entry, is_new] = unshared_prices.try_emplace(op, 0);
    if (is_new) entry->second = pricing.unshared_launch(op, samples);
    return entry->second;
  };
  for (size_t n = 0; n < options.size(); ++n) {
    const Trace& t = *options[n].trace;
    const int64_t tile_rows = options[n].tile_rows;
    OwnFigures::Times& time = list[n].*which;
    for (const int op : t.unshared) time.backward = size_add(time.backward, unshared_price(numbers_.op(op)));
    for (const auto& [op, is_fused] : t.recomputed)
      time.backward = size_add(time.backward, (is_fused ? fused_prices : prices)[op]);
    if (tile_rows > 0) {
      const auto [entry, is_new] = tile_prices.try_emplace(tile_rows);
      TilePrices& tile = entry->second;
      if (is_new) tile = pricing.tiles(s, samples, tile_rows, figures == Figures::least);
      time.forward = tile.forward;
      time.backward = size_add(time.backward, tile.backward);
      for (const auto& [op, is_fused] : t.recomputed_tiles)
        time.backward = size_add(
            time.backward, (is_fused ? tile.fused : tile.ops)[op + s.first_op - s.feed_forward.first_op]);
    }
    for (size_t k = 0; !arena_.offload.overlap && k < t.transfers.size(); ++k) {
      const auto& [local, is_store] = t.transfers[k];
      const int tensor = numbers_.tensor(local);
      if (!arena_.on_host(tensor)) continue;
      const Op& copy = graph_.op(is_store ? graph_.store_op(tensor) : graph_.fetch_op(tensor));
      const bool from_before = !is_store && graph_.at(tensor).role == Role::gradient;
      if (accumulate || !from_before) time.backward = size_add(time.backward, pricing.op(copy, samples));
    }
  }
}

std::vector<int64_t> SegmentProfile::sizes_with(int64_t tile_rows, int64_t samples, Figures figures) const {
  const int64_t rows = rows_in_tiles(graph_, graph_.segments[segment_]);
  const Tiling tiling = tiling_of(samples * rows, rows, tile_rows);
  std::vector<int64_t> sizes;
  sizes.reserve(traces_->sizes().size());
  for (const Size& size : traces_->sizes()) {
    // With more samples, the last tile may have fewer rows.
    if (figures == Figures::least && size.rows == Rows::last_tile) {
      sizes.push_back(0);
      continue;
    }
    const int64_t n = size.rows == Rows::all ? 0 : size.rows == Rows::tile ? tiling.rows : tiling.last_rows();
    uint64_t bytes = 0;
    if (size.is_workspace) {
      const int first = numbers_.op(size.tensor_or_op);
      const Extent extent = extent_of(graph_, graph_.op(first), samples, n, threads_);
      for (int op = first; op < first + size.ops; ++op)
        bytes = size_add(bytes, op_row(graph_.op(op).kind).workspace(graph_, graph_.op(op), extent));
    } else {
      const int tensor = numbers_.tensor(size.tensor_or_op);
      const Tensor& t = graph_.at(tensor);
      const bool is_whole = n == 0 || n == samples * rows;
      if (arena_.of_tensor[tensor] < 0)
        bytes = is_whole ? t.bytes(samples) : size_mul(t.row_bytes(), static_cast<uint64_t>(n));
    }
    sizes.push_back(aligned(bytes, arena_.alignment));
  }
  return sizes;
}

void SegmentProfile::set_bytes(const std::vector<Option>& options, int64_t samples, Figures figures,
                               std::vector<OwnFigures>& list) const {
  // Bytes of inputs that only the loss needs. They are free when this segment's backward pass begins.
  int64_t targets = 0;
  for (int t : graph_.loss_inputs()) targets += aligned(graph_.at(t).bytes(samples), arena_.alignment);
  std::map<int64_t, std::vector<int64_t>> all_sizes;  // by rows of a tile
  std::vector<int64_t> change;
  for (size_t n = 0; n < options.size(); ++n) {
    const Trace& t = *options[n].trace;
    const auto [entry, is_new] = all_sizes.try_emplace(options[n].tile_rows);
    std::vector<int64_t>& sizes = entry->second;
    if (is_new) sizes = sizes_with(options[n].tile_rows, samples, figures);
    OwnFigures& own = list[n];
    own.saved = t.saved;
    own.tile_rows = options[n].tile_rows;
    for (uint16_t size : t.kept) own.kept += sizes[size];
    change.assign(static_cast<size_t>(t.instructions) + 1, 0);
    for (const Life& life : t.lives) {
      const int64_t bytes = sizes[life.size];
      change[life.first] += bytes;
      change[static_cast<size_t>(life.last) + 1] -= bytes;
    }
    change[t.backward] -= targets;
    for (const auto& [size, last] : t.released) change[static_cast<size_t>(last) + 1] -= sizes[size];
    int64_t live = 0;
    int i = 0;
    const auto most_until = [&](int end) {
      int64_t most = INT64_MIN;
      for (; i < end; ++i) most = std::max(most, live += change[i]);
      return most;
    };
    // Copies of neighbours run while this segment's ops run. Its own fetches, which come before the ops of a
    // pass, run earlier. A fetched tensor that this save-set does not read is free by then.
    own.other_peak = INT64_MIN;
    const auto fetch_until = [&](int end, bool has_fetches) {
      const int64_t most = most_until(end);
      if (has_fetches) own.other_peak = std::max(own.other_peak, most);
    };
    fetch_until(t.forward_ops, has_forward_fetches_);
    own.forward_peak = most_until(t.backward);
    fetch_until(t.backward_ops, has_backward_fetches_);
    own.backward_peak = most_until(t.instructions);
  }
}

void SegmentProfile::set_times(const std::vector<Option>& options, int64_t samples, Figures figures,
                               const Pricing& pricing, std::vector<OwnFigures>& list) const {
  set_times(&OwnFigures::next, options, samples, true, figures, pricing, list);
  // Only own copies may differ between the first micro-step and the next.
  if (arena_.offload.any() && !arena_.offload.overlap)
    return set_times(&OwnFigures::first, options, samples, false, figures, pricing, list);
  for (OwnFigures& own : list) own.first = own.next;
}

std::vector<OwnFigures> SegmentProfile::own_figures(const MicroSteps& steps, const Pricing& pricing) const {
  check_in();
  const std::vector<Option> all = options(steps.samples);
  std::vector<OwnFigures> list(all.size());
  set_bytes(all, steps.samples, Figures::exact, list);
  set_times(all, steps.samples, Figures::exact, pricing, list);
  if (steps.rest > 0) set_times(&OwnFigures::last, all, steps.rest, true, Figures::exact, pricing, list);
  return list;
}

// A micro-batch that is too small for tiles of a size has no more rows than one such tile. So tiles that only
// larger micro-batches in the range have need no fewer bytes, and no less time, than no tiles.
std::vector<OwnFigures> SegmentProfile::least_figures(std::vector<OwnFigures> bytes,
                                                      const MicroBatches& range,
                                                      const Pricing& pricing) const {
  check_in();
  set_times(options(range.fewest), range.most, Figures::least, pricing, bytes);
  return bytes;
}

std::vector<OwnFigures> SegmentProfile::least_bytes(int64_t fewest) const {
  check_in();
  const std::vector<Option> all = options(fewest);
  std::vector<OwnFigures> list(all.size());
  set_bytes(all, fewest, Figures::least, list);
  return list;
}

std::vector<Variant> SegmentProfile::bytes_with(const std::vector<OwnFigures>& own, int64_t samples,
                                                const NeighbourCopies& copies) const {
  auto bytes_of = [&](const std::vector<int>& tensors) {
    int64_t sum = 0;
    for (int t : tensors) sum += aligned(graph_.at(t).bytes(samples), arena_.alignment);
    return sum;
  };
  const int64_t copied_forward = bytes_of(copies.forward_fetches),
                copied_backward = bytes_of(copies.backward_fetches) + bytes_of(copies.backward_stores);
  std::vector<Variant> list;
  list.reserve(own.size());
  for (const OwnFigures& o : own) {
    Variant v{o.saved, o.kept, o.other_peak, 0, o.tile_rows};
    if (o.forward_peak != INT64_MIN) v.peak = std::max(v.peak, o.forward_peak + copied_forward);
    if (o.backward_peak != INT64_MIN) v.peak = std::max(v.peak, o.backward_peak + copied_backward);
    list.push_back(v);
  }
  return list;
}

std::vector<Variant> SegmentProfile::variants(const std::vector<OwnFigures>& own, const MicroSteps& steps,
                                              const Pricing& pricing, const NeighbourCopies& copies) const {
  std::vector<Variant> list = bytes_with(own, steps.samples, copies);
  const auto add = [&](OwnFigures::Times OwnFigures::*which, int64_t samples, int64_t count,
                       bool accumulate) {
    if (count == 0) return;
    const bool overlap = arena_.offload.overlap;
    const Stage forward = overlap ? forward_stage(pricing, samples, copies) : Stage{};
    const Stage backward = overlap ? backward_stage(pricing, samples, copies, accumulate) : Stage{};
    for (size_t n = 0; n < own.size(); ++n) {
      const OwnFigures::Times& time = own[n].*which;
      const uint64_t one = overlap ? size_add(forward.excess(time.forward), backward.excess(time.backward))
                                   : size_add(time.forward, time.backward);
      list[n].picoseconds = size_add(list[n].picoseconds, size_mul(one, static_cast<uint64_t>(count)));
    }
  };
  // If nothing is offloaded, all micro-steps are alike.
  add(&OwnFigures::first, steps.samples, 1, !arena_.offload.any());
  add(&OwnFigures::next, steps.samples, steps.next, true);
  add(&OwnFigures::last, steps.rest, steps.rest > 0 ? 1 : 0, true);
  return list;
}

std::vector<Variant> SegmentProfile::least_variants(const std::vector<OwnFigures>& least,
                                                    const MicroBatches& range, int64_t global_batch,
                                                    const Pricing& pricing,
                                                    const NeighbourCopies& copies) const {
  std::vector<Variant> list = bytes_with(least, range.fewest, copies);
  const Segment& s = graph_.segments[segment_];
  const int64_t samples = range.most;
  const Stage forward = forward_stage(pricing, samples, copies),
              first_backward = backward_stage(pricing, samples, copies, !arena_.offload.any()),
              next_backward = backward_stage(pricing, samples, copies, true);
  const auto time = [&](const OwnFigures::Times& own, const Stage& backward) {
    const uint64_t ops = size_add(forward.ops, backward.ops);
    return size_add(ops, arena_.offload.overlap
                             ? size_add(forward.excess(own.forward), backward.excess(own.backward))
                             : size_add(own.forward, own.backward));
  };
  // Of the ops, their recompute and their copies.
  const auto prices = static_cast<uint64_t>(3 * (s.op_count + s.gradient_op_count)) +
                      copies.forward_fetches.size() + copies.backward_fetches.size() +
                      copies.backward_stores.size();
  for (size_t n = 0; n < least.size(); ++n)
    list[n].picoseconds = Pricing::least_in_step(
        time(least[n].first, first_backward), time(least[n].next, next_backward), range,
        prices * static_cast<uint64_t>(list[n].tile_rows > 0 ? most_tiles : 1), global_batch);
  return list;
}

void drop_dominated(std::vector<OwnFigures>& list) {
  const auto is_no_worse = [](const OwnFigures& a, const OwnFigures& b) {
    const auto is_no_slower = [](const OwnFigures::Times& x, const OwnFigures::Times& y) {
      return x.forward <= y.forward && x.backward <= y.backward;
    };
    // Times differ most often, and a choice that keeps fewer bytes mostly takes longer.
    return is_no_slower(a.next, b.next) && a.backward_peak <= b.backward_peak &&
           a.forward_peak <= b.forward_peak && a.other_peak <= b.other_peak && a.kept <= b.kept &&
           is_no_slower(a.last, b.last) && is_no_slower(a.first, b.first);
  };
  // Of two choices that give equal variants, `normalise` takes the first one. So a choice is dropped for a
  // later one only if that keeps fewer bytes.
  std::vector<size_t> order(list.size()), best;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return list[a].kept < list[b].kept; });
  for (const size_t n : order)
    if (std::none_of(best.begin(), best.end(), [&](size_t b) { return is_no_worse(list[b], list[n]); }))
      best.push_back(n);
  std::sort(best.begin(), best.end());
  for (size_t n = 0; n < best.size(); ++n) list[n] = list[best[n]];
  list.resize(best.size());
}

Variant head_variant(const Graph& graph, const Arena& arena, const SegmentLives& lives, int threads,
                     int64_t samples, int64_t chunks) {
  const Segment& s = graph.segments.back();
  Emitter e(graph, arena, threads, samples, 0, ops_of_a_head);
  MicroBuilder builder(graph, e, true);
  e.assume(s.inputs[0], Phase::forward);
  e.watch(s.inputs[0]);
  std::vector<int> inputs = graph.loss_inputs();
  for (int t : graph.body_inputs()) {
    const auto ops = std::span(graph.ops).subspan(static_cast<size_t>(s.first_op));
    if (std::any_of(ops.begin(), ops.end(), [t](const Op& op) { return reads(op, t); })) inputs.push_back(t);
  }
  for (int t : inputs) {
    e.input(t);
    e.watch(t);
  }
  // No chunk between the first and the last needs more than the longest of them. Therefore three chunks
  // represent all.
  std::vector<Tile> list = loss_chunks(graph, samples, chunks);
  if (list.size() > 3) {
    const auto by_rows = [](const Tile& a, const Tile& b) { return a.rows < b.rows; };
    list = {list.front(), *std::max_element(list.begin() + 1, list.end() - 1, by_rows), list.back()};
  }
  builder.head(list);
  const Program p = e.finish(0);
  std::vector<int64_t> change(p.instructions.size() + 1);
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const Buffer& buffer = p.buffers[b];
    const int64_t bytes = aligned(buffer.bytes, arena.alignment);
    // Inputs that are always alive are not counted.
    if (std::find(e.watched().begin() + 1, e.watched().end(), static_cast<int>(b)) != e.watched().end())
      continue;
    if (b != static_cast<size_t>(e.watched()[0])) change[buffer.first] += bytes;
    change[static_cast<size_t>(buffer.last) + 1] -= bytes;
  }
  Variant v;
  v.saved = static_cast<uint32_t>(chunks);
  int64_t live = 0;  // with the outputs that no segment keeps
  for (const OutsideOutput& o : lives.outputs)
    if (!o.is_kept) live += aligned(graph.at(o.tensor).bytes(samples), arena.alignment);
  v.peak = INT64_MIN;
  for (size_t i = 0; i < p.instructions.size(); ++i) v.peak = std::max(v.peak, live += change[i]);
  return v;
}

}  // namespace stw
