// Device profiles: the data that the cost model needs of a device. So a plan for an absent card works.
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
    // Share of the peak that bounds the op, arithmetic or bandwidth. 0: not timed; the profile's shares and
    // launch apply.
    uint32_t permille = 0;
    uint64_t launch_nanoseconds = 0;  // fixed cost of an op
    uint64_t nanoseconds = 0;         // of all ops of the kind in a step of that plan
  };
  std::array<Op, op_kind_count> ops{};  // by OpKind
  int threads = 0;                      // of the CPU in the measurement; 0: the profile was not calibrated
  Precision precision = Precision::fp32;
  Kernels kernels = Kernels::portable;
  uint64_t step_nanoseconds = 0;  // of that plan
};

struct DeviceProfile {
  const char* name;  // as on the command line
  const char* title;
  bool cuda;
  uint64_t memory_bytes;              // 0: the machine's, known at run time only
  uint64_t reserve_bytes;             // context and loaded kernels, outside of the arena
  uint64_t gflops_fp32, gflops_bf16;  // of one thread on the CPU
  uint64_t gbytes_per_second;         // memory bandwidth
  uint64_t host_gbytes_per_second;    // to host memory, and the same back at the same time
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
// The profile of a CUDA device, by the name that its driver reports. A card without a profile gets that of a
// card of the same generation.
const DeviceProfile& profile_for(std::string_view driver_name, int compute_major, int compute_minor);

// Time of an op in picoseconds: the larger of arithmetic and memory traffic, plus the launch. `peak`:
// Graph::peak_of. A calibrated permille scales both. So the time stays a maximum of linear functions plus a
// constant, which the bounds of the search rely on.
uint64_t op_picoseconds(const DeviceProfile& device, OpKind kind, Peak peak, int threads, const Cost& cost);

}  // namespace stw
