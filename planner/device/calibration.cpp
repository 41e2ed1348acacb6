#include "planner/device/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace stw {

namespace {

uint64_t whole_number(double x, uint64_t largest) {
  if (!(x > 1)) return 1;
  return x >= static_cast<double>(largest) ? largest : static_cast<uint64_t>(x + 0.5);
}

// `ideal`: seconds by the cost model at the full peaks, without a launch. Modelled time = launch + ideal /
// (permille / 1000).
struct Point {
  double ideal, seconds;
};

// Ops that share one permille and launch. Sums are those of a step.
struct Group {
  double ideal = 0, seconds = 0, count = 0;
  std::vector<Point> points;

  void add(double ideal_each, double seconds_each, double n) {
    ideal += n * ideal_each;
    seconds += n * seconds_each;
    count += n;
    points.push_back({ideal_each, seconds_each});
  }
  bool is_timed() const { return ideal > 0; }
  // Whether the times determine the launch time. They do if there are two different extents. The time of a
  // single extent does not separate the launch from the work.
  bool shows_launch() const {
    return std::any_of(points.begin(), points.end(),
                       [this](const Point& p) { return p.ideal != points[0].ideal; });
  }
  // The permille for which count · launch + ideal / (permille / 1000) equals the measured time. The largest
  // permille if launches take all of that time.
  double permille(double launch) const {
    const double work = seconds - count * launch;
    return work > 0 ? std::clamp(1000 * ideal / work, 1.0, double{largest_permille})
                    : double{largest_permille};
  }
  double error(double launch) const {
    const double share = permille(launch) / 1000;
    double sum = 0;
    for (const Point& p : points) sum += std::abs(launch + p.ideal / share - p.seconds);
    return sum;
  }
  // The launch, in seconds, that fits the single times best.
  double best_launch() const {
    double best = 0, least = error(0);
    for (double candidate = 1e-7; candidate < 1e-3 && count * candidate < seconds; candidate *= 1.05)
      if (const double e = error(candidate); e < least) {
        best = candidate;
        least = e;
      }
    return best;
  }
};

}  // namespace

DeviceProfile calibrated(const DeviceProfile& base, const Numerics& numerics, int threads,
                         std::span<const TimedOp> ops, double step_seconds) {
  DeviceProfile full = base;
  full.calibration = {};
  full.product_permille = full.stream_permille = 1000;
  full.attention_permille = full.wide_attention_permille = full.fp32_permille = 0;
  full.launch_nanoseconds = 0;
  std::array<Group, op_kind_count> kinds;
  Group products, attention, streams;
  auto ideal = [&](const TimedOp& op, const Cost& cost) {
    return static_cast<double>(op_picoseconds(full, op.kind, op.peak, threads, cost)) * 1e-12;
  };
  for (const TimedOp& op : ops) {
    const double arithmetic = ideal(op, {op.cost.flops, 0}), traffic = ideal(op, {0, op.cost.bytes});
    const double n = static_cast<double>(op.count),
                 all = std::max(arithmetic, traffic) + ideal(op, {0, op.cost.bytes_before});
    kinds[static_cast<size_t>(op.kind)].add(all, op.seconds, n);
    (arithmetic < traffic ? streams : is_attention(op.kind) ? attention : products).add(all, op.seconds, n);
  }

  DeviceProfile p = base;
  p.calibration = {};
  p.calibration.threads = threads;
  p.calibration.precision = numerics.precision;
  p.calibration.kernels = numerics.kernels;
  p.calibration.step_nanoseconds = whole_number(step_seconds * 1e9, longest_nanoseconds);
  std::array<double, op_kind_count> shown{};
  double launches = 0, count = 0;
  for (size_t k = 0; k < op_kind_count; ++k) {
    const Group& g = kinds[k];
    if (!g.is_timed() || !g.shows_launch()) continue;
    shown[k] = g.best_launch();
    launches += g.count * shown[k];
    count += g.count;
  }
  const double launch = count > 0 ? launches / count : 0;
  for (size_t k = 0; k < op_kind_count; ++k) {
    const Group& g = kinds[k];
    if (!g.is_timed()) continue;
    // A group that does not determine its launch time gets the mean of the other groups.
    const double own = g.shows_launch() ? shown[k] : g.count * launch < g.seconds ? launch : 0;
    p.calibration.ops[k] = {static_cast<uint32_t>(whole_number(g.permille(own), largest_permille)),
                            whole_number(own * 1e9, longest_launch_nanoseconds),
                            whole_number(g.seconds * 1e9, longest_nanoseconds)};
  }
  if (count > 0) p.launch_nanoseconds = whole_number(launch * 1e9, longest_launch_nanoseconds);
  // The shares for ops that were not timed are at most 1000: a larger share comes from caches.
  if (products.is_timed()) {
    p.product_permille = static_cast<uint32_t>(whole_number(products.permille(launch), 1000));
    p.fp32_permille = 0;
  }
  if (attention.is_timed()) {
    p.attention_permille = static_cast<uint32_t>(whole_number(attention.permille(launch), 1000));
    p.wide_attention_permille = 0;
  }
  if (streams.is_timed())
    p.stream_permille = static_cast<uint32_t>(whole_number(streams.permille(launch), 1000));
  return p;
}

}  // namespace stw
