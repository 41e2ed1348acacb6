#include "planner/search/stack.h"

#include <algorithm>
#include <cassert>

#include "planner/search/stack_solver.h"

namespace stw {

namespace {

using Wide = __int128;

// The variants of the last run as (bound, variant), smallest bound first. Each has a bound of its own,
// because it decides how many bytes all other segments together may keep. The bound is the linear relaxation,
// a fractional knapsack: all other segments begin with the variant that keeps the fewest bytes, and the
// remaining bytes go where a byte saves the most time. The last segment of each run limits the bytes that its
// run and all runs before it keep. These limits are nested, so taking the best step first is optimal.
// UINT64_MAX if not even the fewest bytes fit.
std::vector<std::pair<uint64_t, size_t>> by_bound(const std::vector<SegmentRun>& runs, int64_t limit) {
  // From a variant on the hull to the next faster one: the bytes and the time of one segment. `count`
  // segments can take this step.
  struct Step {
    Wide bytes, gain;
    int64_t count;
    size_t run;
  };
  std::vector<Step> steps;
  Wide kept = 0, time = 0;
  const size_t others = runs.size() - 1;
  std::vector<Wide> rooms;  // for each run: how many more bytes it and the runs before it may keep
  for (size_t i = 0; i < others; ++i) {
    const SegmentRun& run = runs[i];
    for (size_t h = 0; h < run.hull.size(); ++h) {
      const Variant& v = run.variants[run.hull[h]];
      if (h == 0) {
        kept += static_cast<Wide>(v.kept) * run.count;
        time += static_cast<Wide>(v.picoseconds) * run.count;
        continue;
      }
      const Variant& slower = run.variants[run.hull[h - 1]];
      steps.push_back({static_cast<Wide>(v.kept - slower.kept),
                       static_cast<Wide>(slower.picoseconds - v.picoseconds), run.count, i});
    }
    rooms.push_back(static_cast<Wide>(limit) - run.least_on_top - kept);
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.gain * b.bytes > b.gain * a.bytes; });
  const std::vector<Variant>& last = runs.back().variants;
  std::vector<std::pair<uint64_t, size_t>> order;
  std::vector<Wide> left;
  for (size_t v = 0; v < last.size(); ++v) {
    left = rooms;
    left.push_back(static_cast<Wide>(limit) - last[v].peak - kept);
    Wide least = time + static_cast<Wide>(last[v].picoseconds);
    const bool is_possible = *std::min_element(left.begin(), left.end()) >= 0;
    Wide rounded = 0;  // steps whose gain was rounded down
    for (size_t s = 0; is_possible && s < steps.size() && left.back() > 0; ++s) {
      const Step& step = steps[s];
      const auto from = left.begin() + static_cast<std::ptrdiff_t>(step.run);
      const Wide bytes = std::min(*std::min_element(from, left.end()), step.bytes * step.count);
      if (bytes == 0) continue;
      least -= step.gain * bytes / step.bytes;
      rounded += step.gain * bytes % step.bytes != 0;
      std::for_each(from, left.end(), [&](Wide& room) { room -= bytes; });
    }
    // Together the remainders are less than `rounded`, and no choice takes a fraction of a picosecond.
    if (rounded > 1) least -= rounded - 1;
    order.push_back({is_possible ? static_cast<uint64_t>(std::min<Wide>(least, UINT64_MAX)) : UINT64_MAX, v});
  }
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

StackChoices::StackChoices(std::vector<SegmentRun> runs, double tolerance, size_t most_labels)
    : runs_(std::move(runs)),
      one_(runs_),
      tolerance_(tolerance),
      most_labels_(most_labels),
      last_answers_(runs_.back().variants.size()) {
  assert(runs_.back().count == 1);
}

StackAnswer StackChoices::fastest_of(size_t variant, int64_t limit, uint64_t to_beat, uint64_t ahead) {
  LastAnswer& last = last_answers_[variant];
  if (limit <= last.limit) {
    if (last.choice && last.choice->peak <= limit)
      return last.picoseconds < to_beat ? StackAnswer{last.choice, last.picoseconds, 0}
                                        : StackAnswer{{}, last.picoseconds, 0};
    if (last.picoseconds >= to_beat) return {{}, last.picoseconds, 0};
  }
  one_.back().variants = {runs_.back().variants[variant]};
  sum_up(one_.back());
  const uint64_t wanted = to_beat > UINT64_MAX - ahead ? UINT64_MAX : to_beat + ahead;
  StackAnswer answer = solve(one_, limit, most_labels_, wanted, tolerance_);
  if (answer.choice) answer.choice->parts.back()[0].variant = static_cast<int>(variant);
  const bool is_exact = answer.choice && answer.bound_picoseconds >= answer.choice->picoseconds;
  last = {limit, std::min(answer.bound_picoseconds, wanted), is_exact ? answer.choice : std::nullopt};
  if (answer.choice && answer.choice->picoseconds >= to_beat)
    return {std::nullopt, answer.bound_picoseconds, answer.labels};
  return answer;
}

StackAnswer StackChoices::fastest(int64_t limit, uint64_t to_beat, uint64_t ahead) {
  StackAnswer best;
  for (const auto& [least, v] : by_bound(runs_, limit)) {
    const uint64_t below = best.choice ? best.choice->picoseconds : to_beat;
    if (least >= below) break;
    StackAnswer answer = fastest_of(v, limit, below, ahead);
    best.bound_picoseconds = std::min(best.bound_picoseconds, answer.bound_picoseconds);
    best.labels += answer.labels;
    if (answer.choice) best.choice = std::move(answer.choice);
  }
  return best;
}

uint64_t relaxed_picoseconds(const std::vector<SegmentRun>& runs, int64_t limit) {
  return by_bound(runs, limit)[0].first;
}

StackAnswer choose(const std::vector<SegmentRun>& runs, int64_t limit, uint64_t to_beat, size_t most_labels) {
  return StackChoices(runs, 0, most_labels).fastest(limit, to_beat);
}

int64_t least_peak(const std::vector<SegmentRun>& runs) {
  // Bisects. If a choice is found, its peak becomes the upper end. If not, the smallest peak above the limit
  // becomes the lower end.
  int64_t low = INT64_MIN / 4, high = *peak_of_least_kept(runs, INT64_MAX / 4).peak;
  while (low < high) {
    const LeastPeak least = peak_of_least_kept(runs, low + (high - low) / 2);
    if (least.peak) high = *least.peak;
    else low = least.next_peak;
  }
  return high;
}

StackChoice smallest(const std::vector<SegmentRun>& runs) {
  const int64_t peak = least_peak(runs);
  StackAnswer fast = choose(runs, peak);
  return fast.choice ? *fast.choice : *least_kept(runs, peak).choice;
}

}  // namespace stw
