#include "planner/search/segment_run.h"

#include <algorithm>
#include <numeric>

namespace stw {

namespace {

// The lower convex hull of (bytes, picoseconds), by increasing bytes and decreasing time.
template <class Bytes>
std::vector<int> hull_of(const std::vector<Variant>& all, const Bytes& bytes_of) {
  std::vector<int> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  auto at = [&](int v) -> const Variant& { return all[v]; };
  auto bytes = [&](int v) -> int64_t { return bytes_of(at(v)); };
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return bytes(a) != bytes(b) ? bytes(a) < bytes(b) : at(a).picoseconds < at(b).picoseconds;
  });
  std::vector<int> hull;
  for (int v : order) {
    if (!hull.empty() && at(v).picoseconds >= at(hull.back()).picoseconds) continue;
    auto above = [&] {
      const int a = hull[hull.size() - 2], b = hull.back();
      return static_cast<__int128>(bytes(b) - bytes(a)) *
                 static_cast<__int128>(at(a).picoseconds - at(v).picoseconds) >=
             static_cast<__int128>(bytes(v) - bytes(a)) *
                 static_cast<__int128>(at(a).picoseconds - at(b).picoseconds);
    };
    while (hull.size() >= 2 && above()) hull.pop_back();
    hull.push_back(v);
  }
  return hull;
}

}  // namespace

void sum_up(SegmentRun& run) {
  run.least_on_top = INT64_MAX;
  run.most_kept = 0;
  for (const Variant& v : run.variants) {
    run.least_on_top = std::min(run.least_on_top, v.peak - v.kept);
    run.most_kept = std::max(run.most_kept, v.kept);
  }
  run.hull = hull_of(run.variants, [](const Variant& v) { return v.kept; });
}

void normalise(SegmentRun& run) {
  std::vector<Variant>& list = run.variants;
  std::stable_sort(list.begin(), list.end(), [](const Variant& a, const Variant& b) {
    if (a.picoseconds != b.picoseconds) return a.picoseconds < b.picoseconds;
    return a.kept != b.kept ? a.kept < b.kept : a.peak < b.peak;
  });
  std::vector<Variant> best;
  for (const Variant& v : list)
    if (std::none_of(best.begin(), best.end(),
                     [&](const Variant& b) { return b.kept <= v.kept && b.peak <= v.peak; }))
      best.push_back(v);
  std::stable_sort(best.begin(), best.end(),
                   [](const Variant& a, const Variant& b) { return a.peak - a.kept > b.peak - b.kept; });
  list = std::move(best);
  sum_up(run);
}

void thin(SegmentRun& run) {
  std::vector<bool> stays(run.variants.size());
  stays.back() = true;  // the last variant has the least (peak - kept)
  for (const auto& hull : {run.hull, hull_of(run.variants, [](const Variant& v) { return v.peak; }),
                           hull_of(run.variants, [](const Variant& v) { return v.kept + v.peak; })})
    for (int v : hull) stays[v] = true;
  size_t next = 0;
  for (size_t v = 0; v < stays.size(); ++v)
    if (stays[v]) run.variants[next++] = run.variants[v];
  run.variants.resize(next);
  sum_up(run);
}

}  // namespace stw
