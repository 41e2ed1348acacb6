// Turns measured times of ops into a calibrated profile: for every kind of op its launch, and the permille of
// the peak that bounds it. Peaks and bandwidth stay those of the embedded profile. A permille above 1000
// means that an op works in caches.
//
// For every kind, the price of the timed step equals the measured time. Several pairs of permille and launch
// give that price. Of these, the pair that prices the single ops best is taken. So times at two extents
// determine both figures.
#pragma once
#include <cstdint>
#include <span>

#include "planner/device/device.h"

namespace stw {

// A profile with larger figures is refused, and a measurement is cut to them.
inline constexpr uint32_t largest_permille = 100000;
inline constexpr uint64_t longest_launch_nanoseconds = 10000000;
inline constexpr uint64_t longest_nanoseconds = 1000000000000000;

struct TimedOp {
  OpKind kind;
  Cost cost;
  double seconds;  // of one op
  uint64_t count;  // ops in the step; 0: timed in addition to the step's ops, at another extent
  Peak peak = Peak::fp32;
};

// `base` with the figures that these times give. Kinds that were not timed get means over those that were.
// `step_seconds`: of the whole step.
DeviceProfile calibrated(const DeviceProfile& base, const Numerics& numerics, int threads,
                         std::span<const TimedOp> ops, double step_seconds);

}  // namespace stw
