// What a plan is asked for, and whether that makes sense; what it leaves open the device's profile says.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/device/device.h"
#include "planner/graph/numerics.h"
#include "planner/base/result.h"
#include "planner/graph/tensor.h"

namespace stw {

enum class Recompute : uint8_t { choose, none, full };

struct Request {
  std::string device = "cpu";
  std::optional<DeviceProfile> calibrated;  // of that device; nothing: its embedded profile
  bool device_probed = false;       // memory_bytes was measured, not taken from the profile
  uint64_t device_memory = 0;       // bytes that are free there
  uint64_t memory_bytes = 0;        // budget; 0: device_memory
  std::optional<uint64_t> reserve_bytes;  // nothing: the profile's
  uint64_t host_bytes = 0;          // of host memory for what is offloaded; 0: nothing is
  int64_t global_batch = 0, sequence = 0;
  int threads = 1;                  // of the CPU; a plan for a GPU has 0
  int64_t micro_batch = 0;          // 0: chosen
  Recompute recompute = Recompute::choose;
  int state_bits = 0;               // 0: chosen
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adamw;
  Master master = Master::exact;
  Gradients gradients = Gradients::fp32;
  bool fused_update = false;        // then the micro-batch is the global batch
  std::vector<ParameterGroup> groups;
  GraphInputs inputs;
  std::optional<Kernels> kernels;   // nothing: tensor where the device and the precision have it, cublaslt where `fast` is asked for
  Attention attention = Attention::own;
  Quantize quantize = Quantize::none, quantize_embeddings = Quantize::none;   // of models with adapters
  bool fast = false;                // gives up contract E3 where kernels have a faster way
};

// What the request asks for, with states of so many bits.
Numerics numerics_of(const Request& request, int state_bits);
// Whether a request makes sense. Errors: bad_argument.
Status check(const Request& request);
// The one that prices a request that makes sense: the calibrated one where there is one.
const DeviceProfile& profile_of(const Request& request);
uint64_t reserve_of(const Request& request, const DeviceProfile& device);
uint64_t budget_of(const Request& request, const DeviceProfile& device);

}  // namespace stw
