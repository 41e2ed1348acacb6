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

struct DeviceProfile {
  const char* name;  // as on the command line
  const char* title;
  bool cuda;
  uint64_t memory_bytes;              // 0: the memory of the machine, which is known only at run time
  uint64_t reserve_bytes;             // taken outside of the arena, by the context and loaded kernels
  uint64_t gflops_fp32, gflops_bf16;  // of the whole card; for the CPU: of one thread
  uint64_t gbytes_per_second;         // memory bandwidth
  uint64_t host_gbytes_per_second;    // of copies to and from host memory, in each direction
  // Share of the peak that matrix products reach; attention too, if attention_permille is 0.
  uint32_t product_permille;
  uint32_t stream_permille;     // share of the bandwidth that streaming ops reach
  uint64_t launch_nanoseconds;  // fixed cost of an op
  uint64_t alignment;           // of tensors, bytes
  const char* source;           // of the figures
  // Share of the bf16 peak that mma.sync can reach; newer tensor cores have faster instructions.
  uint32_t mma_permille = 1000;
  bool has_wgmma = false;          // Hopper's faster instructions
  uint32_t wgmma_permille = 1000;  // share of the bf16 peak that our wgmma kernels can reach
  // Share of the peak that attention over whole samples reaches; 0: product_permille.
  uint32_t attention_permille = 0;
  Calibration calibration{};
};

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
