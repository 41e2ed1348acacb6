#include "planner/search/frontier.h"

#include <algorithm>

#include "planner/search/search_space.h"

namespace stw {

namespace {

// Marks the knees on the upper concave hull of speed against bytes. A point is a knee where the slope falls
// to less than half. The slope before the knee must not be too small: one percent more memory must bring at
// least 0.02 percent more speed.
void mark_knees(std::vector<ParetoPoint>& points) {
  auto speed = [&](size_t i) { return 1 / static_cast<double>(points[i].step_picoseconds); };
  auto slope = [&](size_t a, size_t b) {
    return (speed(b) - speed(a)) / static_cast<double>(points[b].peak_bytes - points[a].peak_bytes);
  };
  std::vector<size_t> hull;
  for (size_t i = 0; i < points.size(); ++i) {
    while (hull.size() >= 2 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), i))
      hull.pop_back();
    hull.push_back(i);
  }
  uint64_t knee = 0;  // bytes of the last knee
  for (size_t i = 1; i + 1 < hull.size(); ++i) {
    // Skips a point that is close to the last knee.
    if (knee > 0 && points[hull[i]].peak_bytes < knee + knee / 20) continue;
    points[hull[i]].is_knee =
        slope(hull[i], hull[i + 1]) < slope(hull[i - 1], hull[i]) / 2 &&
        slope(hull[i - 1], hull[i]) * static_cast<double>(points[hull[i]].peak_bytes) >= speed(hull[i]) / 50;
    if (points[hull[i]].is_knee) knee = points[hull[i]].peak_bytes;
  }
}

}  // namespace

std::vector<ParetoPoint> frontier(const GraphSource& source, const Plan& plan, int budgets) {
  if (!find_device(plan.request.device) || budgets < 2) return {};
  const DeviceProfile* device = &profile_of(plan.request);
  SearchSpace space(source, plan.numerics, plan.request, *device);
  if (space.is_empty()) return {};
  const uint64_t least = space.arena(space.smallest().decisions);
  const std::optional<Candidate> fastest = space.fastest(size_limit);
  const uint64_t most = fastest ? space.arena(fastest->decisions) : least;
  std::vector<ParetoPoint> points;
  for (int i = 0; i < budgets; ++i) {
    // Budgets lie closer together where memory is short: there the plans differ most.
    const double share = static_cast<double>(i) / (budgets - 1);
    uint64_t arena = i == 0 ? least
                     : i + 1 == budgets
                         ? most
                         : static_cast<uint64_t>(static_cast<double>(least) +
                                                 share * share * static_cast<double>(most - least));
    const std::optional<Candidate> c = space.fastest(std::clamp(arena, least, most));
    if (!c) continue;
    const uint64_t peak = size_add(space.arena(c->decisions), reserve_of(plan.request, *device));
    // Among equally fast plans the search prefers the one that copies less, even if it takes more memory.
    // Such a plan is not a Pareto point and is left out.
    if (!points.empty() &&
        (peak <= points.back().peak_bytes || c->picoseconds >= points.back().step_picoseconds))
      continue;
    points.push_back({peak, c->picoseconds, c->decisions, false});
  }
  mark_knees(points);
  return points;
}

Result<bool> anything_fits(const GraphSource& source, const Request& requested) {
  STW_TRY(check(requested));
  const DeviceProfile* device = &profile_of(requested);
  Request request = requested;
  if (device->cuda) request.threads = 0;
  const uint64_t reserve = reserve_of(request, *device), budget = budget_of(request, *device);
  SearchSpace space(source, numerics_of(request, request.state_bits == 32 ? 32 : 8), request, *device);
  STW_TRY(check_graph(space.graph(), request, *device));
  if (space.is_empty()) return false;
  return size_add(space.arena(space.smallest().decisions), reserve) <= budget;
}

}  // namespace stw
