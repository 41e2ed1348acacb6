#include "planner/stretch.h"

#include <algorithm>
#include <numeric>

namespace stw {

namespace {

// In one order of bytes kept, each faster than the one before.
void set_hull(Stretch& run) {
  const std::vector<Variant>& all = run.variants;
  std::vector<int> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  auto at = [&](int v) -> const Variant& { return all[static_cast<size_t>(v)]; };
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return at(a).kept != at(b).kept ? at(a).kept < at(b).kept : at(a).picoseconds < at(b).picoseconds;
  });
  std::vector<int>& hull = run.hull;
  hull.clear();
  for (int v : order) {
    if (!hull.empty() && at(v).picoseconds >= at(hull.back()).picoseconds) continue;
    auto above = [&] {
      const Variant &a = at(hull[hull.size() - 2]), &b = at(hull.back());
      return static_cast<__int128>(b.kept - a.kept) * static_cast<__int128>(a.picoseconds - at(v).picoseconds) >=
             static_cast<__int128>(at(v).kept - a.kept) * static_cast<__int128>(a.picoseconds - b.picoseconds);
    };
    while (hull.size() >= 2 && above()) hull.pop_back();
    hull.push_back(v);
  }
}

}  // namespace

void sum_up(Stretch& run) {
  run.least_on_top = INT64_MAX;
  run.most_kept = 0;
  for (const Variant& v : run.variants) {
    run.least_on_top = std::min(run.least_on_top, v.peak - v.kept);
    run.most_kept = std::max(run.most_kept, v.kept);
  }
  set_hull(run);
}

void normalise(Stretch& run) {
  std::vector<Variant>& list = run.variants;
  std::stable_sort(list.begin(), list.end(), [](const Variant& a, const Variant& b) {
    if (a.picoseconds != b.picoseconds) return a.picoseconds < b.picoseconds;
    return a.kept != b.kept ? a.kept < b.kept : a.peak < b.peak;
  });
  std::vector<Variant> best;
  for (const Variant& v : list)
    if (std::none_of(best.begin(), best.end(), [&](const Variant& b) { return b.kept <= v.kept && b.peak <= v.peak; }))
      best.push_back(v);
  std::stable_sort(best.begin(), best.end(), [](const Variant& a, const Variant& b) { return a.peak - a.kept > b.peak - b.kept; });
  list = std::move(best);
  sum_up(run);
}

}  // namespace stw
