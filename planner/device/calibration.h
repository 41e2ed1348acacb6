// From measured times of ops to a calibrated profile: for every kind of op the permille of the peak that bounds it, and its
// launch. Peaks and bandwidth stay the embedded profile's; a permille above 1000 says that an op works in caches.
//
// For every kind the price of the timed step comes out as measured; of the pairs of permille and launch that give it, the
// one is taken that prices the single ops best. So times at two extents tell both figures.
#pragma once
#include <cstdint>
#include <span>

#include "planner/device/device.h"

namespace stw {

// Beyond these a profile is refused, and a measurement cut.
inline constexpr uint32_t largest_permille = 100000;
inline constexpr uint64_t longest_launch_nanoseconds = 10000000;
inline constexpr uint64_t longest_nanoseconds = 1000000000000000;

struct TimedOp {
  OpKind kind;
  Cost cost;
  double seconds;        // of one
  uint64_t count;        // in the step; 0: timed besides it, at another extent
  Peak peak = Peak::fp32;
};

// `base` with the figures that these times give; of kinds that were not timed the shares and the launch are means over
// those that were. `step_seconds`: of the whole step.
DeviceProfile calibrated(const DeviceProfile& base, const Numerics& numerics, int threads, std::span<const TimedOp> ops,
                         double step_seconds);

}  // namespace stw
