// Device profiles: the data about a device that the cost model needs. With a profile, the planner can plan
// for a card that is not present.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "planner/graph/numerics.h"
#include "planner/graph/op_table.h"

namespace stw {

// Measurements of a device that ran a plan (calibration.h).
struct Calibration {
  struct Op {
    // The op's speed as a share of the peak, of arithmetic or of bandwidth, that bounds the op. 0: not timed;
    // the shares and the launch time of DeviceProfile apply.
    uint32_t permille = 0;
    uint64_t launch_nanoseconds = 0;  // fixed cost of an op
    uint64_t nanoseconds = 0;         // time of all ops of the kind in a step of that plan
  };
  std::array<Op, op_kind_count> ops{};  // by OpKind
  int threads = 0;                      // of the CPU in the measurement; 0: the profile was not calibrated
  Precision precision = Precision::fp32;
  Kernels kernels = Kernels::portable;
  uint64_t step_nanoseconds = 0;  // time of a step of that plan
};

// Shares are in permille. Those of a profile that was not calibrated are estimates, unless `source` says
// otherwise.
struct DeviceProfile {
  const char* name;  // as on the command line
  const char* title;
  bool cuda;
  uint64_t memory_bytes;              // 0: the memory of the machine, which is known only at run time
  uint64_t reserve_bytes;             // taken outside of the arena, by the context and loaded kernels
  uint64_t gflops_fp32, gflops_bf16;  // rated, of the whole card; for the CPU: of one thread
  uint64_t gbytes_per_second;         // memory bandwidth
  uint64_t host_gbytes_per_second;    // of copies to and from host memory, in each direction
  // The ceiling of matrix products by libraries, as a share of the rated peak (product_ceiling). On the CPU,
  // the share that our products reach.
  uint32_t product_permille;
  uint32_t stream_permille;        // share of the bandwidth that streaming ops reach
  uint64_t launch_nanoseconds;     // fixed cost of an op
  uint64_t alignment;              // of tensors, bytes
  const char* source;              // of the figures
  uint32_t mma_permille = 1000;    // share of the ceiling that our mma.sync kernels reach
  bool has_wgmma = false;          // Hopper's faster instructions
  uint32_t wgmma_permille = 1000;  // share of the ceiling that our wgmma kernels reach
  // Share of the rated peak that attention over whole samples reaches in libraries, with heads of up to 64
  // numbers and with larger ones. Our kernels reach their share of it. 0: product_permille for the first,
  // attention_permille for the second.
  uint32_t attention_permille = 0, wide_attention_permille = 0;
  uint32_t fp32_permille =
      0;               // share of the fp32 peak that products and attention in fp32 reach; 0: as above
  uint64_t watts = 0;  // of the board; 0: nothing is known
  uint64_t gflops_per_watt = 0;  // of 16-bit products where power limits them
  Calibration calibration{};

  bool is_calibrated() const { return calibration.threads > 0; }
};

// The ceiling of library products, in permille of the rated peak: the lower of the peak and of what the
// board's power allows; where the two differ by less than 40 % of the peak, a curve below both joins them.
// 16-bit products on a card reach the rated clock only if the board's power lasts: an RTX 4090 almost does,
// an H100 reaches two thirds of its peak.
constexpr uint32_t product_ceiling(uint64_t gflops_peak, uint64_t watts, uint64_t gflops_per_watt) {
  if (gflops_peak < 10) return 1000;
  const uint64_t power = watts * gflops_per_watt, lower = power < gflops_peak ? power : gflops_peak,
                 apart = power < gflops_peak ? gflops_peak - power : power - gflops_peak,
                 corner = gflops_peak * 2 / 5;  // where the rounding begins
  const uint64_t near = apart < corner ? corner - apart : 0;
  const uint64_t permille = (lower - near * near / (4 * corner)) * 1000 / gflops_peak;
  return permille > 0 ? static_cast<uint32_t>(permille) : 1;
}
// The profile with all kernels at the ceiling of libraries.
DeviceProfile at_ceiling(DeviceProfile device);

std::span<const DeviceProfile> device_profiles();
const DeviceProfile* find_device(std::string_view name);
// The profile of a CUDA device, by the name that its driver reports. A card without a profile gets the
// profile of a card of the same generation.
const DeviceProfile& profile_for(std::string_view driver_name, int compute_major, int compute_minor);

// Time of an op in picoseconds: the larger of the times of arithmetic and memory traffic, plus the launch
// time. `peak`: Graph::peak_of. A calibrated permille scales both times. Therefore the time is always a
// maximum of linear functions of the op's size, plus a constant. The bounds of the search rely on this.
uint64_t op_picoseconds(const DeviceProfile& device, OpKind kind, Peak peak, int threads, const Cost& cost);

}  // namespace stw
