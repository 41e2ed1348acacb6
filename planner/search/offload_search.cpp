#include "planner/search/offload_search.h"

#include <algorithm>

#include "planner/program/inference.h"
#include "planner/search/micro_batch_order.h"

namespace stw {

// If something is offloaded, a search may miss plans that are faster by at most this share. The search over
// offload choices is coarse anyway.
static constexpr double tolerance = 0.002;
// A layout with gaps takes more bytes than are alive at once. Very many Pareto points can have live bytes
// between these two numbers. The search tries this many of them, evenly spread, and then bisects.
static uint64_t points_in_gap(Effort effort) { return effort == Effort::full ? 16 : 4; }
// If something is offloaded, an arena that is larger than the live bytes by less than this part of them
// counts as the smallest.
static constexpr uint64_t smallest_gap = 512;
// If something is offloaded, a search tries so many successive Pareto points. If none of them fits, it skips
// points: at first those of 1 / first_step of the bytes, then of twice as many each time. When a point fits,
// it bisects the last step.
static constexpr int successive_points = 6;
static constexpr uint64_t first_step = 4096;
static constexpr int halvings_of_step = 4;
static int halvings(Effort effort) { return effort == Effort::full ? 6 : 4; }

uint64_t offloaded_input_bytes(const Graph& graph, const Offload& offload, int64_t samples,
                               uint64_t alignment) {
  uint64_t sum = 0;
  for (const Segment& s : graph.segments)
    if (const int input = input_on_host(graph, s, offload); input >= 0)
      sum = size_add(sum, round_up(graph.at(input).bytes(samples), alignment));
  return sum;
}

OffloadSearch::OffloadSearch(const SearchContext& context, const Offload& offload, uint64_t least_update)
    : context_(context),
      offload_(offload),
      arena_(std::make_shared<const Arena>(make_arena(context_.graph, context_.device.alignment, offload))),
      update_(least_update),
      sizes_(context_.graph, arena_, context_.request.global_batch, context_.request.threads,
             context_.known) {
  for (size_t s = 0; s + 1 < context_.graph.segments.size(); ++s) {
    const size_t kind = context_.segments.kind(arena_, s);
    if (!runs_.empty() && runs_.back().first == kind) runs_.back().second += 1;
    else runs_.push_back({kind, 1});
  }
  const uint64_t one = offloaded_input_bytes(context_.graph, offload, 1, context_.device.alignment);
  for (int64_t m : context_.micro_batches) {
    const uint64_t inputs = offloaded_input_bytes(context_.graph, offload, m, context_.device.alignment);
    if (!offload.any() || size_add(arena_->host_bytes - one, inputs) <= context_.request.host_bytes)
      micro_batches_.push_back(m);
  }
}

OffloadSearch::OffloadSearch(const SearchContext& context, const Offload& offload)
    : OffloadSearch(context, offload, 0) {
  const auto price = [&](const Program& program, bool is_update) {
    return context_.pricing.program(program, is_update && offload.overlap);
  };
  // Pricing::update() includes the updates inside the backward pass; the update program does not.
  update_ = context_.graph.fuses_updates() ? context_.pricing.update() : sizes_.fixed_picoseconds(price);
  fixed_program_bytes_ = sizes_.fixed_live_bytes();
}

std::vector<SegmentRun> OffloadSearch::runs(int64_t m,
                                            const SegmentRun& (SegmentChoices::*of_kind)(size_t, int64_t)) {
  std::vector<SegmentRun> list;
  for (const auto& [kind, count] : runs_) {
    list.push_back((context_.segments.*of_kind)(kind, m));
    list.back().count = count;
  }
  list.push_back(context_.segments.of_head(*arena_, m));
  for (Variant& v : list.back().variants) v.picoseconds = size_add(v.picoseconds, update_);
  return list;
}

OffloadSearch::Choices& OffloadSearch::choices(int64_t m) {
  const auto known = choices_.find(m);
  if (known != choices_.end()) return known->second;
  StackChoices stack(runs(m, &SegmentChoices::best_of_kind), offload_.any() ? tolerance : 0);
  return choices_.emplace(m, Choices{std::move(stack), fixed_bytes(m)}).first->second;
}

int64_t OffloadSearch::fixed_bytes(int64_t m) const {
  auto bytes = static_cast<int64_t>(arena_->gradients_end);
  for (int t : context_.graph.all_inputs())
    bytes += static_cast<int64_t>(round_up(context_.graph.at(t).bytes(m), context_.device.alignment));
  return bytes;
}

Candidate OffloadSearch::candidate(int64_t m, const std::vector<SegmentRun>& runs,
                                   const StackChoice& choice) {
  Candidate result;
  result.decisions.micro_batch = m;
  result.decisions.offload = offload_;
  result.decisions.keeps_rows = context_.graph.kept.exist();
  for (size_t run = 0; run < runs.size(); ++run)
    for (const auto& [variant, count] : choice.parts[run]) {
      const Variant& v = runs[run].variants[variant];
      const bool is_head = run + 1 == runs.size();
      if (is_head) result.decisions.loss_chunks = v.saved;
      result.decisions.saved.insert(result.decisions.saved.end(), static_cast<size_t>(count),
                                    is_head ? ~0u : v.saved);
      result.decisions.tile_rows.insert(result.decisions.tile_rows.end(), static_cast<size_t>(count),
                                        v.tile_rows);
    }
  std::vector<int64_t>& tiles = result.decisions.tile_rows;
  if (std::all_of(tiles.begin(), tiles.end(), [](int64_t rows) { return rows == 0; })) tiles.clear();
  result.picoseconds = result.bound_picoseconds = choice.picoseconds;
  result.live_bytes = live_bytes_of(choices(m), choice.peak);
  return result;
}

int64_t OffloadSearch::limit_of(int64_t m, uint64_t arena_bytes) {
  return static_cast<int64_t>(std::min<uint64_t>(arena_bytes, size_limit)) - choices(m).fixed_bytes;
}

uint64_t OffloadSearch::relaxed(int64_t m, uint64_t arena_bytes) {
  return relaxed_picoseconds(choices(m).stack.runs(), limit_of(m, arena_bytes));
}

// Relies on the fact that more samples need more bytes: with the same choices, no tensor gets smaller. Tiles
// that are possible only for some micro-batches do not change this. A micro-batch that is too small for tiles
// of a size has no more rows than one such tile, so it needs no more bytes than the tile. A micro-batch that
// is too large for them (most_tiles) only has fewer choices.
uint64_t OffloadSearch::least(const MicroBatches& range, uint64_t arena_bytes) {
  const auto [entry, is_new] = least_.try_emplace(range);
  std::vector<SegmentRun>& runs = entry->second;
  if (is_new) {
    for (const auto& [kind, count] : runs_) {
      runs.push_back(context_.segments.least_of_kind(kind, range));
      runs.back().count = count;
    }
    runs.push_back(context_.segments.least_of_head(*arena_, range));
    Variant& head = runs.back().variants[0];
    head.picoseconds = size_add(head.picoseconds, update_);
  }
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(arena_bytes, size_limit));
  return relaxed_picoseconds(runs, bytes - fixed_bytes(range.fewest));
}

uint64_t OffloadSearch::bound(uint64_t arena_bytes, uint64_t limit) {
  if (fixed_program_bytes_ > arena_bytes) return UINT64_MAX;
  const auto of_range = [&](const MicroBatches& range) { return least(range, arena_bytes); };
  const auto of_micro_batch = [&](int64_t m) {
    if (!fits(m, arena_bytes)) return UINT64_MAX;
    // UINT64_MAX if none of the best variants fit. Other variants may fit.
    const uint64_t best = relaxed(m, arena_bytes);
    return best == UINT64_MAX ? ops(m) : best;
  };
  return least_bound(context_.micro_batches, micro_batches_.size(),
                     {of_range, [&](int64_t m) { return ops(m); }, of_micro_batch}, limit);
}

uint64_t OffloadSearch::quick_bound(const std::function<uint64_t(int64_t)>& arena_bytes, uint64_t limit) {
  const auto of_range = [&](const MicroBatches& range) { return least(range, arena_bytes(range.most)); };
  return least_bound(context_.micro_batches, micro_batches_.size(),
                     {of_range, [&](int64_t m) { return ops(m); },
                      [&](int64_t m) {
                        return of_range({m, m});
                      }},
                     limit);
}

std::optional<Candidate> OffloadSearch::fastest_with_live_bytes(uint64_t arena_bytes, uint64_t to_beat,
                                                                uint64_t ahead) {
  if (fixed_program_bytes_ > arena_bytes) return std::nullopt;
  struct Found {
    int64_t micro_batch;
    StackChoice choice;
  };
  std::vector<Found> best;  // all take the same time
  uint64_t bound = UINT64_MAX;
  const auto visit = [&](int64_t m, uint64_t) {
    // Equally fast choices are collected, too.
    const auto below = [&] { return best.empty() ? to_beat : best[0].choice.picoseconds + 1; };
    StackAnswer answer = choices(m).stack.fastest(limit_of(m, arena_bytes), below(), ahead);
    bound = std::min(bound, answer.bound_picoseconds);
    if (answer.choice) {
      if (!best.empty() && answer.choice->picoseconds < best[0].choice.picoseconds) best.clear();
      best.push_back({m, std::move(*answer.choice)});
    }
    return below();
  };
  visit_micro_batches(context_.micro_batches, micro_batches_.size(),
                      {[&](const MicroBatches& range) { return least(range, arena_bytes); },
                       [&](int64_t m) { return ops(m); }, [&](int64_t m) { return relaxed(m, arena_bytes); }},
                      to_beat, visit);
  if (best.empty()) return std::nullopt;
  // Takes the smallest peak of equally fast choices.
  std::optional<Candidate> answer;
  for (Found& f : best) {
    StackChoices& stack = choices(f.micro_batch).stack;
    for (;;) {
      StackAnswer tighter = stack.fastest(f.choice.peak - 1, f.choice.picoseconds + 1, ahead);
      if (!tighter.choice) break;
      f.choice = std::move(*tighter.choice);
    }
    Candidate made = candidate(f.micro_batch, stack.runs(), f.choice);
    if (!answer || made.live_bytes < answer->live_bytes) answer = std::move(made);
  }
  answer->bound_picoseconds = std::min(bound, answer->picoseconds);
  return answer;
}

std::optional<Candidate> OffloadSearch::fastest(uint64_t arena_bytes, uint64_t to_beat) {
  if (micro_batches_.empty()) return std::nullopt;
  std::optional<uint64_t> bound;
  if (std::optional<Candidate> point = fastest_point(arena_bytes, to_beat, bound)) {
    // A tighter budget gets the plan with the fewest live bytes. That plan may use variants that no Pareto
    // point uses, and may be faster.
    if (offload_.any() && with_fewest_live_bytes().picoseconds < point->picoseconds &&
        sizes_.within(with_fewest_live_bytes().decisions, arena_bytes))
      point = with_fewest_live_bytes();
    point->bound_picoseconds = std::min(*bound, point->picoseconds);
    return point;
  }
  // No Pareto point fits. The plan with the fewest live bytes remains. smallest() could return another plan
  // only if that plan needs fewer bytes than its live bytes as counted (see
  // SearchSpace::fastest_without_full_recompute). If something is offloaded, smallest() can take long, so it
  // is not called.
  Candidate last = offload_.any() ? with_fewest_live_bytes() : *smallest();
  if (last.picoseconds >= to_beat || !sizes_.within(last.decisions, arena_bytes)) return std::nullopt;
  last.bound_picoseconds = bound.value_or(last.picoseconds);
  return last;
}

std::optional<Candidate> OffloadSearch::fastest_point(uint64_t arena_bytes, uint64_t to_beat) {
  std::optional<uint64_t> bound;
  return fastest_point(arena_bytes, to_beat, bound);
}

std::optional<Candidate> OffloadSearch::fastest_point(uint64_t arena_bytes, uint64_t to_beat,
                                                      std::optional<uint64_t>& bound) {
  uint64_t limit = arena_bytes;
  uint64_t first = 0, ahead = 0;  // `ahead`: how far the search has come from the first point
  uint64_t step = 0;              // how many live bytes less the next point has; 0: the next point
  for (int failed = 1; auto point = fastest_with_live_bytes(limit, to_beat, ahead); ++failed) {
    if (!bound) bound = point->bound_picoseconds, first = point->picoseconds;
    ahead = point->picoseconds - first;
    if (sizes_.within(point->decisions, arena_bytes)) {
      if (step > 0) improve(*point, arena_bytes, limit + step, ahead);
      return point;
    }
    limit = point->live_bytes - 1;
    if (!offload_.any() || failed < successive_points) continue;
    step = step == 0 ? arena_bytes / first_step : 2 * step;
    limit -= std::min(limit, step);
  }
  return std::nullopt;
}

void OffloadSearch::improve(Candidate& best, uint64_t arena_bytes, uint64_t high, uint64_t ahead) {
  uint64_t low = best.live_bytes + 1;
  for (int n = 0; n < halvings_of_step && low <= high; ++n) {
    const uint64_t limit = low + (high - low) / 2;
    std::optional<Candidate> point = fastest_with_live_bytes(limit, best.picoseconds, ahead);
    if (point && !sizes_.within(point->decisions, arena_bytes)) {
      high = point->live_bytes - 1;
      continue;
    }
    low = limit + 1;
    if (point) best = std::move(*point);
  }
}

uint64_t OffloadSearch::fewest_live_bytes(int64_t m) {
  const auto [entry, is_new] = fewest_live_bytes_.try_emplace(m, 0);
  if (is_new) entry->second = live_bytes_of(choices(m), least_peak(runs(m, &SegmentChoices::of_kind)));
  return entry->second;
}

uint64_t OffloadSearch::fewest_live_bytes() {
  // More samples need more bytes.
  return micro_batches_.empty() ? UINT64_MAX : fewest_live_bytes(micro_batches_[0]);
}

uint64_t OffloadSearch::fewest_step_bytes() {
  const int64_t m = micro_batches_[0];
  const int64_t peak = least_peak(runs(m, &SegmentChoices::of_kind));
  return static_cast<uint64_t>(std::max(int64_t{0}, fixed_bytes(m) + peak) -
                               static_cast<int64_t>(arena_->gradients_end));
}

const Candidate& OffloadSearch::with_fewest_live_bytes() {
  if (fewest_) return *fewest_;
  for (int64_t m : micro_batches_) {
    // More samples need more bytes. Whether a plan fits is found faster than the bytes of its arena.
    if (fewest_ && sizes_.within(fewest_->decisions, fewest_live_bytes(m))) break;
    const std::vector<SegmentRun>& best = choices(m).stack.runs();
    const bool is_best = live_bytes_of(choices(m), least_peak(best)) == fewest_live_bytes(m);
    const std::vector<SegmentRun> all = is_best ? best : runs(m, &SegmentChoices::of_kind);
    Candidate c = candidate(m, all, stw::smallest(all));
    if (!fewest_ || sizes_.within(c.decisions, arena(fewest_->decisions) - 1)) fewest_ = std::move(c);
  }
  return *fewest_;
}

const std::optional<Candidate>& OffloadSearch::smallest() {
  while (improve_smallest()) {}
  return smallest_;
}

bool OffloadSearch::smallest_fits(uint64_t arena_bytes) {
  if (micro_batches_.empty()) return false;
  // Live bytes count gradients in host memory as if every micro-step fetched them, but the first one does
  // not.
  const bool are_least = offload_[Offloaded::gradients] == 0;
  if (are_least && fewest_live_bytes() > arena_bytes) return false;
  while (!smallest_ || !within(smallest_->decisions, arena_bytes)) {
    // Pareto points that are tried later have at least `low` live bytes.
    if (are_least && improvement_ && improvement_->low > arena_bytes) return false;
    if (!improve_smallest()) return false;
  }
  return true;
}

// If the layout of the plan with the fewest live bytes has gaps, a Pareto point with more live bytes may have
// a smaller arena. Usually that is the first point whose layout has no gaps.
bool OffloadSearch::improve_smallest() {
  if (micro_batches_.empty()) return false;
  if (!smallest_) {
    smallest_ = with_fewest_live_bytes();
    return true;
  }
  if (!improvement_) {
    const uint64_t low = smallest_->live_bytes;
    const uint64_t high = arena(smallest_->decisions) - 1;
    if (high < (offload_.any() ? low + low / smallest_gap : low)) return false;
    improvement_ = {low, high - low, low, high};
  }
  Improvement& i = *improvement_;
  const uint64_t parts = points_in_gap(context_.effort);
  i.is_bisected = i.is_bisected || i.points == parts;
  if (i.is_bisected && (i.halvings++ == halvings(context_.effort) || i.low > i.high)) {
    i.low = UINT64_MAX;
    return false;
  }
  const uint64_t limit = i.is_bisected         ? i.low + (i.high - i.low) / 2
                         : ++i.points == parts ? i.first + i.gap
                                               : i.first + i.gap / parts * i.points;
  std::optional<Candidate> point = fastest_with_live_bytes(limit);
  if (!point || !within(point->decisions, arena(smallest_->decisions) - 1)) {
    i.low = limit + 1;
    return true;
  }
  i.is_bisected = true;
  i.high = point->live_bytes - 1;
  smallest_ = std::move(*point);
  return true;
}

Programs OffloadSearch::programs(const Decisions& decisions) const {
  return make_programs(context_.graph, decisions, context_.request.global_batch, context_.request.threads,
                       context_.device.alignment);
}

}  // namespace stw
