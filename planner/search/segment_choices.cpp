#include "planner/search/segment_choices.h"

#include <algorithm>

namespace stw {

// If a kind with copies has more variants than this, only the best ones are used.
static constexpr size_t most_variants_with_copies = 32;

bool have_same_micro_steps(const Graph& a, const Graph& b) {
  if (a.fuses_updates() || b.fuses_updates() || a.ops != b.ops || a.gradient_ops != b.gradient_ops ||
      a.segments != b.segments || a.tile_rows != b.tile_rows || a.inputs.of != b.inputs.of ||
      a.compute != b.compute || a.kernels != b.kernels || a.attention != b.attention || a.exact != b.exact ||
      a.sequence != b.sequence || a.values_at_once != b.values_at_once || a.preference != b.preference)
    return false;
  const auto are_equal = [&](const std::vector<int>& tensors) {
    return std::all_of(tensors.begin(), tensors.end(), [&](int t) { return t < 0 || a.at(t) == b.at(t); });
  };
  for (const std::vector<Op>* ops : {&a.ops, &a.gradient_ops})
    for (const Op& op : *ops)
      if (!are_equal(op.inputs) || !are_equal(op.outputs)) return false;
  return true;
}

SegmentChoices::Place SegmentChoices::place(const Arena& arena, size_t s) const {
  const Segment& segment = graph_.segments[s];
  Place p{pricing_.classes()[s]};
  for (Offloaded what : {Offloaded::gradients, Offloaded::weights, Offloaded::inputs})
    p.on_host = 2 * p.on_host + (segment.kind == SegmentKind::block && segment.block < arena.offload[what]);
  p.on_host = 2 * p.on_host + (segment.output >= 0 && arena.on_host(segment.output));
  return p;
}

size_t SegmentChoices::kind(const std::shared_ptr<const Arena>& arena, size_t s) {
  std::array<Place, 3> key{place(*arena, s), {}, {}};
  // Neighbours count if they copy while this segment computes.
  if (arena->offload.overlap) {
    const Place before = s > 0 ? place(*arena, s - 1) : Place{}, after = place(*arena, s + 1);
    if (before.on_host) key[1] = before;
    if (after.on_host) key[2] = after;
    key[0].overlaps = true;
  }
  const auto [entry, is_new] = kinds_.try_emplace(key, profiles_.size());
  const bool has_copies = std::any_of(key.begin(), key.end(), [](const Place& p) { return p.on_host != 0; });
  if (!is_new) return entry->second;
  auto traced = traced_.find(key[0]);
  if (traced == traced_.end()) {
    const auto [of_traces, is_new_arena] = arenas_of_traces_.try_emplace(
        {arena->offload.any(), arena->offload.overlap, arena->offload[Offloaded::inputs]});
    if (is_new_arena) of_traces->second = arena_of_traces(graph_, *arena);
    SegmentProfile profile(graph_, *arena, of_traces->second, s, lives_[s], request_.threads,
                           request_.recompute, cache_);
    traced = traced_.try_emplace(key[0], Traced{std::move(profile), {}, {}, {}}).first;
    arenas_.push_back(arena);
  }
  profiles_.push_back({&traced->second, neighbour_copies(graph_, *arena, s), has_copies, {}, {}, {}});
  return entry->second;
}

const SegmentRun& SegmentChoices::of_kind(size_t kind, int64_t m) {
  Profile& p = profiles_[kind];
  const auto [entry, is_new] = p.at.try_emplace(m);
  SegmentRun& run = entry->second;
  if (!is_new) return run;
  const MicroSteps steps = MicroSteps::of(request_.global_batch, m);
  const auto [own, is_new_size] = p.traced->own.try_emplace(m);
  if (is_new_size) {
    own->second = p.traced->profile.own_figures(steps, pricing_);
    // With different neighbours' copies they serve several kinds.
    if (p.has_copies) drop_dominated(own->second);
  }
  run.variants = p.traced->profile.variants(own->second, steps, pricing_, p.copies);
  normalise(run);
  return run;
}

const SegmentRun& SegmentChoices::best_of_kind(size_t kind, int64_t m) {
  const SegmentRun& all = of_kind(kind, m);
  if (!profiles_[kind].has_copies || all.variants.size() <= most_variants_with_copies) return all;
  const auto [entry, is_new] = profiles_[kind].best.try_emplace(m);
  if (is_new) thin(entry->second = all);
  return entry->second;
}

const SegmentRun& SegmentChoices::of_head(const Arena& arena, int64_t m) {
  const auto [entry, is_new] = head_.try_emplace(m);
  SegmentRun& head = entry->second;
  if (!is_new) return head;
  const int64_t rows = m * graph_.rows_of(graph_.ops[graph_.segments.back().first_op]),
                unit = chunk_unit(graph_);
  for (int64_t chunks = 1; chunks <= largest_loss_chunks; chunks *= 2) {
    if (chunks > 1 && chunk_rows(rows, chunks, unit) == chunk_rows(rows, chunks / 2, unit)) break;
    head.variants.push_back(head_variant(graph_, arena, lives_.back(), request_.threads, m, chunks));
    head.variants.back().picoseconds = pricing_.micro_steps(m, chunks, request_.global_batch);
  }
  normalise(head);
  return head;
}

const SegmentRun& SegmentChoices::least_of_kind(size_t kind, const MicroBatches& range) {
  Profile& p = profiles_[kind];
  const auto [entry, is_new] = p.least.try_emplace(range);
  SegmentRun& run = entry->second;
  if (!is_new) return run;
  const auto [least, is_new_range] = p.traced->least.try_emplace(range);
  if (is_new_range) {
    const auto [bytes, is_new_size] = p.traced->least_bytes.try_emplace(range.fewest);
    if (is_new_size) bytes->second = p.traced->profile.least_bytes(range.fewest);
    least->second = p.traced->profile.least_figures(bytes->second, range, pricing_);
    if (p.has_copies) drop_dominated(least->second);
  }
  run.variants =
      p.traced->profile.least_variants(least->second, range, request_.global_batch, pricing_, p.copies);
  normalise(run);
  return run;
}

// More loss chunks take no less time than one.
const SegmentRun& SegmentChoices::least_of_head(const Arena& arena, const MicroBatches& range) {
  const auto [entry, is_new] = least_head_.try_emplace(range);
  SegmentRun& head = entry->second;
  if (!is_new) return head;
  const std::vector<Variant>& all = of_head(arena, range.fewest).variants;
  head.variants = {*std::min_element(all.begin(), all.end(),
                                     [](const Variant& a, const Variant& b) { return a.peak < b.peak; })};
  const uint64_t one = pricing_.head(range.most, 1),
                 ops = static_cast<uint64_t>(graph_.segments.back().op_count +
                                             graph_.segments.back().gradient_op_count);
  head.variants[0].picoseconds =
      Pricing::least_in_step(one, one, range, ops * largest_loss_chunks, request_.global_batch);
  sum_up(head);
  return head;
}

}  // namespace stw
