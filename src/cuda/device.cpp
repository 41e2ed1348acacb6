// CUDA devices: found at run time, and no error where there are none.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "src/cuda/current.h"
#include "src/cuda/error.h"
#include "src/cuda/nvml.h"
#include "src/cuda/stream.h"
#include "src/device.h"
#include "src/machine.h"

namespace stw {

namespace cuda {

namespace {

constexpr int smallest_capability = 80;

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

// Why there is no device, or nothing. `count` becomes how many there are.
std::string absence(int& count) {
  count = 0;
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (status == cudaSuccess && count > 0) return {};
  count = 0;
  if (driver == 0) return "no NVIDIA driver is loaded; install one for CUDA " + version_text(CUDART_VERSION) + " or newer";
  if (status == cudaErrorInsufficientDriver)
    return "the NVIDIA driver knows CUDA " + version_text(driver) + ", " + version_text(CUDART_VERSION) + " is needed; update the driver";
  if (status == cudaSuccess || status == cudaErrorNoDevice) return "the NVIDIA driver finds no device";
  return std::string("the NVIDIA driver says: ") + cudaGetErrorString(status);
}

class CudaDevice : public Device {
 public:
  CudaDevice(const DeviceOptions& options, const cudaDeviceProp& properties) : Device(options), properties_(properties) {}

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
  uint64_t memory_free() const override {
    const Current current(options_.ordinal);
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) == cudaSuccess) return available;
    static_cast<void>(cudaGetLastError());
    return 0;
  }

  std::vector<MemoryHolder> memory_holders() const override {
    char bus_id[32] = {};
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, options_.ordinal) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return {};
    }
    std::vector<MemoryHolder> holders = cuda::memory_holders(bus_id);
    std::stable_sort(holders.begin(), holders.end(), [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
    return holders;
  }

  Result<std::unique_ptr<Stream>> make_stream(int) const override { return CudaStream::create(options_); }

  void* allocate(size_t bytes, size_t alignment) const override {
    if (options_.allocate) return options_.allocate(options_.memory_user, bytes, alignment, options_.stream);
    const Current current(options_.ordinal);
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  void release(void* memory, size_t bytes) const override {
    if (!memory) return;
    if (options_.release) return options_.release(options_.memory_user, memory, bytes, options_.stream);
    const Current current(options_.ordinal);
    cudaFree(memory);
  }

  bool resize(void*& memory, size_t old_bytes, size_t bytes, size_t alignment) const override {
    const Current current(options_.ordinal);
    const size_t kept = std::min(old_bytes, bytes);
    if (options_.allocate) {
      void* other = allocate(bytes, alignment);
      if (!other) return false;
      // A copy on the device does not wait by itself; in the stream's order the host's allocator knows when it is over.
      const auto stream = static_cast<cudaStream_t>(options_.stream);
      const bool copied = reinterpret_cast<uintptr_t>(other) % alignment == 0 &&
                          cudaMemcpyAsync(other, memory, kept, cudaMemcpyDeviceToDevice, stream) == cudaSuccess &&
                          cudaStreamSynchronize(stream) == cudaSuccess;
      static_cast<void>(cudaGetLastError());
      release(copied ? memory : other, copied ? old_bytes : bytes);
      if (copied) memory = other;
      return copied;
    }
    // The contents wait in the host's memory meanwhile, so that the device never holds both.
    void* held = allocate_host(old_bytes, alignment);
    if (!held) return false;
    bool resized = false;
    if (cudaMemcpy(held, memory, old_bytes, cudaMemcpyDeviceToHost) == cudaSuccess) {
      cudaFree(memory);
      memory = allocate(bytes, alignment);
      resized = memory != nullptr;
      if (!resized) memory = allocate(old_bytes, alignment);   // it was there a moment ago
      if (memory && cudaMemcpy(memory, held, resized ? kept : old_bytes, cudaMemcpyHostToDevice) != cudaSuccess) {
        cudaFree(memory);
        memory = nullptr;
        resized = false;
      }
    }
    static_cast<void>(cudaGetLastError());
    release_host(held, old_bytes);
    return resized;
  }

  void* allocate_host(size_t bytes, size_t) const override {
    const Current current(options_.ordinal);
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess) return memory;
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  void release_host(void* memory, size_t) const override {
    const Current current(options_.ordinal);
    cudaFreeHost(memory);
  }
  uint64_t host_memory_free() const override { return system_memory().available; }

 private:
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
  if (const std::string why = cuda::absence(count); !why.empty()) return Error{Code::unsupported, "device: no CUDA device: " + why};
  if (options.ordinal < 0 || options.ordinal >= count)
    return Error{Code::bad_argument, "device: there is no CUDA device " + std::to_string(options.ordinal) + ", the last one is " + std::to_string(count - 1)};
  if (!kernels::cuda_table()) return Error{Code::unsupported, "device: this build has no CUDA kernels"};
  cudaDeviceProp properties{};
  STW_CUDA_TRY("the device's properties", cudaGetDeviceProperties(&properties, options.ordinal));
  if (10 * properties.major + properties.minor < cuda::smallest_capability)
    return Error{Code::unsupported, std::string("device: ") + properties.name + " has compute capability " + std::to_string(properties.major) +
                                        "." + std::to_string(properties.minor) + ", 8.0 or newer is needed"};
  return std::unique_ptr<Device>(std::make_unique<cuda::CudaDevice>(options, properties));
}

}  // namespace stw
