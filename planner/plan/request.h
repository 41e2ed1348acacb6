// A request for a plan, and its checks. Settings that a request leaves open come from the device's profile.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "planner/base/result.h"
#include "planner/device/device.h"
#include "planner/graph/numerics.h"
#include "planner/graph/tensor.h"

namespace stw {

enum class Recompute : uint8_t { choose, none, full };

// Settings that relaxations must keep, because the caller would refuse other values. Bits.
inline constexpr uint32_t keep_numerics = 1;  // all that change the trained bits
inline constexpr uint32_t keep_model = 2;     // no smaller preset
inline constexpr uint32_t keep_adapters = 4;  // no new adapters
inline constexpr uint32_t keep_sequence = 8;  // no shorter samples
inline constexpr uint32_t keep_optimizer = 16;
inline constexpr uint32_t keep_clipping = 32;  // no fused update
inline constexpr uint32_t keep_division = 64;  // micro-batch, recompute and host memory
inline constexpr uint32_t keep_precision = 128;
inline constexpr uint32_t keep_everything = 255;

struct Request : RequestedNumerics {
  std::string device = "cpu";
  std::optional<DeviceProfile> calibrated;  // profile of the device; empty: the embedded one
  bool device_probed = false;               // memory_bytes was measured, not taken from the profile
  uint64_t device_memory = 0;               // free bytes on the device
  uint64_t memory_bytes = 0;                // budget; 0: device_memory
  std::optional<uint64_t> reserve_bytes;    // empty: that of the profile
  uint64_t host_bytes = 0;  // most bytes of host memory for offloaded tensors; 0: no offloading
  int64_t global_batch = 0, sequence = 0;
  int threads = 1;          // of the CPU; 0 in a plan for a GPU
  int64_t micro_batch = 0;  // 0: the planner chooses
  Recompute recompute = Recompute::choose;
  int state_bits = 0;  // 0: the planner chooses
  // Empty: cublaslt if `fast` is set, otherwise tensor, where device and precision allow it.
  std::optional<Kernels> kernels;
  bool fast = false;  // gives up contract E3 if kernels are faster without it
  uint32_t keep = 0;  // keep_…; for relaxations alone
  // The trainer will have a gradient hook: gradients are neither offloaded nor formed at the update.
  bool gradient_hook = false;
};

// The numerics of the request, with states of `state_bits` bits.
Numerics numerics_of(const Request& request, int state_bits);
// Checks a request. Errors: bad_argument.
Status check(const Request& request);
// The profile of a valid request's device: the calibrated one if there is one.
const DeviceProfile& profile_of(const Request& request);
uint64_t reserve_of(const Request& request, const DeviceProfile& device);
uint64_t budget_of(const Request& request, const DeviceProfile& device);

}  // namespace stw
