#include "planner/plan/request.h"

#include "planner/graph/optimizer.h"

namespace stw {

namespace {

constexpr int64_t largest_batch = INT32_MAX;  // samples are counted in 32 bits
constexpr int most_threads = 1024;
constexpr uint64_t most_reserved = uint64_t{1} << 56;  // keeps sums of bytes far from the limits of 64 bits

bool is_for_cuda(const Request& request) {
  const DeviceProfile* device = request.calibrated ? &*request.calibrated : find_device(request.device);
  return device && device->cuda;
}

// Whether 16-bit products use wgmma by default if the device has it. Set it to true once `tools/gpu-check
// second` has confirmed contracts E1 to E3 on such a device.
constexpr bool wgmma_is_default = false;

Kernels default_kernels(const Request& request) {
  if (!is_for_cuda(request)) return Kernels::portable;
  if (request.fast) return Kernels::cublaslt;
  if (request.precision == Precision::fp32) return Kernels::portable;
  return wgmma_is_default && profile_of(request).has_wgmma ? Kernels::wgmma : Kernels::tensor;
}

// The checks of a request, by subject. Each may rely on the checks before it.

Status check_device(const Request& request) {
  const DeviceProfile* device = find_device(request.device);
  if (!device) {
    std::string names;
    for (const DeviceProfile& p : device_profiles()) names += std::string(names.empty() ? "" : ", ") + p.name;
    return Error{Code::bad_argument, "unknown device '" + request.device + "'; there are " + names};
  }
  if (request.calibrated && request.calibrated->name != request.device)
    return Error{Code::bad_argument, "the profile is for device '" + std::string(request.calibrated->name) +
                                         "', the plan is for '" + request.device + "'"};
  return ok();
}

Status check_sizes(const Request& request) {
  if (request.global_batch < 1 || request.sequence < 1 || (request.threads < 1 && !profile_of(request).cuda))
    return Error{Code::bad_argument, "global batch, sequence and threads must be at least 1"};
  if (request.global_batch > largest_batch)
    return Error{Code::bad_argument, "global batch " + std::to_string(request.global_batch) +
                                         ": expected at most " + std::to_string(largest_batch)};
  if (request.threads > most_threads)
    return Error{Code::bad_argument, std::to_string(request.threads) + " threads: expected at most " +
                                         std::to_string(most_threads)};
  if (request.reserve_bytes.value_or(0) > most_reserved)
    return Error{Code::bad_argument, "a reserve of " + std::to_string(*request.reserve_bytes) +
                                         " bytes: expected at most " + std::to_string(most_reserved)};
  if (request.micro_batch > request.global_batch)
    return Error{Code::bad_argument, "micro-batch " + std::to_string(request.micro_batch) +
                                         " is larger than the global batch " +
                                         std::to_string(request.global_batch)};
  return ok();
}

Status check_fused_update(const Request& request) {
  if (!request.fused_update) return ok();
  const char* const what = "a fused update consumes each gradient inside the backward pass: ";
  if (request.precision == Precision::fp16)
    return Error{Code::bad_argument,
                 std::string(what) + "it cannot undo a step that overflows; use bf16 instead of fp16"};
  if (request.gradients != Gradients::fp32)
    return Error{Code::bad_argument,
                 std::string(what) + "no gradients remain to be kept in bf16; use fp32 gradients"};
  if (request.micro_batch > 0 && request.micro_batch != request.global_batch)
    return Error{
        Code::bad_argument,
        std::string(what) +
            "the step is one micro-step; leave the micro-batch unset, or set it to the global batch " +
            std::to_string(request.global_batch)};
  if (request.host_bytes > 0)
    return Error{Code::bad_argument, std::string(what) + "it cannot use host memory; set host memory to 0"};
  return ok();
}

Status check_kernels(const Request& request) {
  const std::string place =
      std::string(", the plan is for ") + name_of(request.precision) + " on device '" + request.device + "'";
  if (request.kernels == Kernels::tensor && (!is_for_cuda(request) || request.precision == Precision::fp32))
    return Error{Code::bad_argument, "tensor cores need a 16-bit precision and a GPU" + place};
  if (request.kernels && uses_wgmma(*request.kernels) &&
      (!profile_of(request).has_wgmma || request.precision == Precision::fp32))
    return Error{
        Code::bad_argument,
        "products by wgmma need a 16-bit precision and a GPU of compute capability 9.0 (H100, H200)" + place};
  if (request.kernels && uses_cublaslt(*request.kernels) && !is_for_cuda(request))
    return Error{Code::bad_argument, "cuBLASLt needs a GPU" + place};
  if (request.attention == Attention::cudnn) {
    if (!is_for_cuda(request) || request.precision == Precision::fp32)
      return Error{Code::bad_argument, "cuDNN's attention needs a 16-bit precision and a GPU" + place};
    if (request.inputs.positions)
      return Error{Code::bad_argument,
                   "cuDNN's attention does not support documents inside of samples; use attention own"};
  }
  return ok();
}

Status check_preference(const Request& request) {
  if (request.inputs.preference == Preference::none) return ok();
  if (!request.inputs.positions)
    return Error{Code::bad_argument, "a preference compares documents: it needs the input positions"};
  if (request.sequence < 2)
    return Error{Code::bad_argument,
                 "a preference compares two documents of a sample: expected a sequence of 2 tokens or more"};
  if (request.inputs.weights)
    return Error{Code::bad_argument,
                 "a preference computes the weights of tokens itself: leave out the input weights"};
  return ok();
}

}  // namespace

uint64_t reserve_of(const Request& request, const DeviceProfile& device) {
  return request.reserve_bytes.value_or(device.reserve_bytes);
}

uint64_t budget_of(const Request& request, const DeviceProfile& device) {
  if (request.memory_bytes > 0) return request.memory_bytes;
  return request.device_memory > 0 ? request.device_memory : device.memory_bytes;
}

Numerics numerics_of(const Request& request, int state_bits) {
  Numerics n{request};
  n.state_bits = state_bits;
  n.kernels = request.kernels.value_or(default_kernels(request));
  n.exact = !(request.fast && uses_cublaslt(n.kernels));
  return n;
}

const DeviceProfile& profile_of(const Request& request) {
  return request.calibrated ? *request.calibrated : *find_device(request.device);
}

Status check(const Request& request) {
  STW_TRY(check_device(request));
  STW_TRY(check_sizes(request));
  if (request.master != Master::exact && request.precision != Precision::bf16)
    return Error{Code::bad_argument, std::string("a master with fewer bits needs precision bf16; ") +
                                         name_of(request.precision) + " always keeps the whole master"};
  STW_TRY(check_fused_update(request));
  if (request.gradient_hook && (request.fused_update || request.gradients != Gradients::fp32))
    return Error{Code::bad_argument,
                 "a gradient hook needs all gradients in fp32 in the arena: plan without a fused update and "
                 "with gradients in fp32"};
  STW_TRY(check_kernels(request));
  STW_TRY(check_preference(request));
  if (request.state_bits == 8 && !optimizer_row(request.optimizer).has_8bit_states)
    return Error{Code::bad_argument, std::string("optimizer ") + name_of(request.optimizer) +
                                         " has no 8-bit states; use 32 or auto"};
  if (budget_of(request, *find_device(request.device)) == 0)
    return Error{Code::bad_argument,
                 "the memory of device '" + request.device + "' is unknown: set a budget"};
  return ok();
}

}  // namespace stw
