// Device profiles: what the cost model must know of a device, as data, so that a plan for an absent card works.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "planner/op_table.h"

namespace stw {

struct DeviceProfile {
  const char* name;              // as on the command line
  const char* title;
  bool cuda;
  uint64_t memory_bytes;         // 0: the machine's, known at run time only
  uint64_t reserve_bytes;        // context and loaded kernels, outside of the arena
  uint64_t gflops_fp32, gflops_bf16;  // of one thread on the CPU
  uint64_t gbytes_per_second;    // memory bandwidth
  uint64_t host_gbytes_per_second;    // to host memory and back, in each direction
  uint32_t product_permille;     // share of the peak that matrix products reach
  uint32_t stream_permille;      // share of the bandwidth that streaming ops reach
  uint64_t launch_nanoseconds;   // fixed cost of an op
  uint64_t alignment;            // of tensors, bytes
  const char* source;            // of the figures
};

std::span<const DeviceProfile> device_profiles();
const DeviceProfile* find_device(std::string_view name);

// Time of an op in picoseconds: the larger of arithmetic and memory traffic, plus the launch.
uint64_t op_picoseconds(const DeviceProfile& device, OpKind kind, Format compute, int threads, const Cost& cost);

}  // namespace stw
