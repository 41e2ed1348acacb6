// CUDA devices. They are found at run time; a machine without any is no error.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/cuda/current.h"
#include "src/cuda/error.h"
#include "src/cuda/nvml.h"
#include "src/cuda/stream.h"
#include "src/device/device.h"
#include "src/device/machine.h"

namespace stw {

namespace cuda {

namespace {

constexpr int smallest_capability = 80;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The reason that there is no device, or an empty text. `count` gets the number of devices.
std::string absence(int& count) {
  count = 0;
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess && count > 0) return {};
  count = 0;
  if (driver == 0)
    return "no NVIDIA driver is loaded; install one for CUDA " + version_text(CUDART_VERSION) + " or newer";
  if (status == cudaErrorInsufficientDriver)
    return "the NVIDIA driver knows CUDA " + version_text(driver) + ", " + version_text(CUDART_VERSION) +
           " is needed; update the driver";
  if (status == cudaSuccess || status == cudaErrorNoDevice) return "the NVIDIA driver finds no device";
  return std::string("the NVIDIA driver says: ") + cudaGetErrorString(status);
}

// The card's PCI bus id. Empty if the runtime fails; NVML then finds no card.
std::string bus_id_of(int ordinal) {
  char id[32] = {};
  if (cudaDeviceGetPCIBusId(id, sizeof id, ordinal) == cudaSuccess) return id;
  static_cast<void>(cudaGetLastError());
  return {};
}

// The number of an allocation's failure for Device; 0 if memory is short, or if there is none.
int32_t failure_of(cudaError_t status) {
  if (status == cudaSuccess) return 0;
  static_cast<void>(cudaGetLastError());
  return status == cudaErrorMemoryAllocation ? 0 : static_cast<int32_t>(status);
}

// The memory in use on each card before this process had a context on it, for contexts that the library made.
// A context stays until the process ends, whichever Device it was made for.
class BeforeContexts {
 public:
  // Must be called before anything that makes a context.
  void note(int ordinal) {
    if (has_context(ordinal) != false) return;
    const std::optional<uint64_t> used = memory_used(bus_id_of(ordinal));
    const std::lock_guard lock(mutex_);
    if (used) used_[ordinal] = *used;
    else used_.erase(ordinal);
  }
  std::optional<uint64_t> of(int ordinal) {
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(ordinal);
    return found == used_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::map<int, uint64_t> used_;
};
BeforeContexts& before_contexts() {
  // Never destroyed: a host may close devices while the process ends.
  static BeforeContexts* const one = new BeforeContexts;
  return *one;
}

class CudaDevice : public Device {
 public:
  CudaDevice(const DeviceOptions& options, const cudaDeviceProp& properties)
      : Device(options), properties_(properties) {}

  DeviceInfo info() const override {
    DeviceInfo info;
    info.backend = Backend::cuda;
    info.name = properties_.name;
    info.threads = 0;
    info.compute_major = properties_.major;
    info.compute_minor = properties_.minor;
    info.memory_total = properties_.totalGlobalMem;
    return info;
  }
  Error error_of(const std::string& what, int32_t failure) const override {
    return cuda::error_of(what, static_cast<cudaError_t>(failure));
  }
  FreeMemory memory_free() const override {
    const Current current = here();
    if (current.failure()) return {0, current.failure()};
    size_t available = 0, total = 0;
    const cudaError_t status = cudaMemGetInfo(&available, &total);
    if (status == cudaSuccess) return {available};
    static_cast<void>(cudaGetLastError());
    return {0, static_cast<int32_t>(status)};
  }

  std::vector<MemoryHolder> memory_holders() const override {
    std::vector<MemoryHolder> holders = cuda::memory_holders(bus_id_of(options_.ordinal));
    std::stable_sort(holders.begin(), holders.end(),
                     [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
    return holders;
  }

  uint64_t memory_outside(uint64_t arena_bytes) const override {
    const std::optional<uint64_t> before = before_contexts().of(options_.ordinal),
                                  now = before ? memory_used(bus_id_of(options_.ordinal)) : std::nullopt;
    return now && *now > *before + arena_bytes ? *now - *before - arena_bytes : 0;
  }

  Result<std::unique_ptr<Stream>> make_stream(int) const override {
    before_contexts().note(options_.ordinal);
    return CudaStream::create(*this, options_);
  }

  Allocation allocate(size_t bytes, size_t alignment) const override {
    if (options_.allocate) {
      void* const given = options_.allocate(options_.memory_user, bytes, alignment, options_.stream);
      if (given && !options_.stream) wait_for_default_stream();
      return {given};
    }
    const Current current = here();
    if (current.failure()) return {nullptr, current.failure()};
    void* memory = nullptr;
    const int32_t failure = failure_of(cudaMalloc(&memory, bytes));
    return {memory, failure};
  }
  void release(void* memory, size_t bytes) const override {
    if (!memory) return;
    if (options_.release) return options_.release(options_.memory_user, memory, bytes, options_.stream);
    const Current current = here();
    cudaFree(memory);
  }

  Resized resize(void*& memory, size_t old_bytes, size_t bytes, size_t kept,
                 size_t alignment) const override {
    if (options_.allocate) {
      const Allocation other = allocate(bytes, alignment);
      if (!other.memory) return {};
      const bool is_aligned = reinterpret_cast<uintptr_t>(other.memory) % alignment == 0;
      const cudaError_t status = is_aligned ? copy(other.memory, memory, kept) : cudaSuccess;
      const bool copied = is_aligned && status == cudaSuccess;
      release(copied ? memory : other.memory, copied ? old_bytes : bytes);
      if (copied) memory = other.memory;
      return {copied, failure_of(status)};
    }
    const Current current = here();
    // The contents wait in host memory, so that the device never holds both arenas.
    const uint64_t available = host_memory_free();
    const Allocation held =
        available == 0 || kept <= available ? allocate_host(kept, alignment) : Allocation{};
    if (!held.memory) return {false, held.failure};
    Resized resized;
    cudaError_t status = cudaMemcpy(held.memory, memory, kept, cudaMemcpyDeviceToHost);
    if (status == cudaSuccess) {
      cudaFree(memory);
      Allocation given = allocate(bytes, alignment);
      resized = {given.memory != nullptr, given.failure};
      if (!given.memory) given = allocate(old_bytes, alignment);  // this much was free a moment ago
      if (given.failure) resized.failure = given.failure;
      memory = given.memory;
      if (memory) status = cudaMemcpy(memory, held.memory, kept, cudaMemcpyHostToDevice);
      if (status != cudaSuccess) {
        cudaFree(memory);
        memory = nullptr;
      }
    }
    if (status != cudaSuccess) resized = {false, failure_of(status)};
    static_cast<void>(cudaGetLastError());
    release_host(held.memory, kept);
    return resized;
  }

  Allocation allocate_host(size_t bytes, size_t) const override {
    const Current current = here();
    if (current.failure()) return {nullptr, current.failure()};
    void* memory = nullptr;
    const int32_t failure = failure_of(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
    return {memory, failure};
  }
  void release_host(void* memory, size_t) const override {
    const Current current = here();
    cudaFreeHost(memory);
  }
  uint64_t host_memory_free() const override { return system_memory().available; }

 private:
  Current here() const {
    before_contexts().note(options_.ordinal);
    return Current(options_.ordinal);
  }

  // Waits until the copy is done; cudaMemcpy from device to device may return before that. The copy runs on
  // the host's stream, as the host's allocator gives and releases memory in the order of that stream.
  cudaError_t copy(void* to, const void* from, size_t bytes) const {
    const Current current = here();
    const auto stream = static_cast<cudaStream_t>(options_.stream);
    cudaError_t status = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
    static_cast<void>(cudaGetLastError());
    return status;
  }
  // A host's allocator may give memory in the default stream's order, for which our streams do not wait.
  void wait_for_default_stream() const {
    const Current current = here();
    cudaStreamSynchronize(nullptr);
    static_cast<void>(cudaGetLastError());
  }

  const cudaDeviceProp properties_;
};

}  // namespace

}  // namespace cuda

int cuda_device_count() {
  int count = 0;
  static_cast<void>(cuda::absence(count));
  return count;
}

CudaPresence cuda_presence() {
  int count = 0;
  const std::string why = cuda::absence(count);
  return {true, why.empty() ? std::to_string(count) + (count == 1 ? " device" : " devices") : why};
}

Result<std::unique_ptr<Device>> open_cuda(const DeviceOptions& options) {
  int count = 0;
  if (const std::string why = cuda::absence(count); !why.empty())
    return Error{Code::unsupported, "device: no CUDA device: " + why};
  if (options.ordinal < 0 || options.ordinal >= count)
    return Error{Code::bad_argument, "device: there is no CUDA device " + std::to_string(options.ordinal) +
                                         ", the last one is " + std::to_string(count - 1)};
  if (!kernels::cuda_table()) return Error{Code::unsupported, "device: this build has no CUDA kernels"};
  cudaDeviceProp properties{};
  STW_CUDA_TRY("the device's properties", cudaGetDeviceProperties(&properties, options.ordinal));
  if (10 * properties.major + properties.minor < cuda::smallest_capability)
    return Error{Code::unsupported, std::string("device: ") + properties.name + " has compute capability " +
                                        std::to_string(properties.major) + "." +
                                        std::to_string(properties.minor) + ", 8.0 or newer is needed"};
  return std::unique_ptr<Device>(std::make_unique<cuda::CudaDevice>(options, properties));
}

}  // namespace stw
