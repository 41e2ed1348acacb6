// Turns measured times of ops into a calibrated profile. It has two figures for every kind of op: its launch
// time, and its speed in permille of the peak that bounds it. Peaks and bandwidth stay those of the embedded
// profile. A permille above 1000 means that an op finds its data in caches.
//
// For every kind, the modelled time of its ops in a step equals their measured time. Many pairs of permille
// and launch time have this property. The pair that fits the times of single ops best is taken. Therefore ops
// of a kind must be timed at two extents to determine both figures.
#pragma once
#include <cstdint>
#include <span>

#include "planner/device/device.h"

namespace stw {

// The largest figures of a profile. A profile with larger figures is refused. Larger measurements are reduced
// to these limits.
inline constexpr uint32_t largest_permille = 100000;
inline constexpr uint64_t longest_launch_nanoseconds = 10000000;
inline constexpr uint64_t longest_nanoseconds = 1000000000000000;

struct TimedOp {
  OpKind kind;
  Cost cost;
  double seconds;  // of one op
  // Ops of this extent in the step. 0: an extent that was timed in addition to those of the step.
  uint64_t count;
  Peak peak = Peak::fp32;
};

// A copy of `base` with the figures that the times give. Kinds of ops that were not timed get the means of
// those that were. `step_seconds`: measured time of the whole step.
DeviceProfile calibrated(const DeviceProfile& base, const Numerics& numerics, int threads,
                         std::span<const TimedOp> ops, double step_seconds);

}  // namespace stw
