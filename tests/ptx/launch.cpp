// The functions that objects compiled by nvcc call to register and launch their kernels (crt/host_runtime.h),
// over the fake runtime of tests/simt. Kernels run as their PTX says.
#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/ptx/fatbin.h"
#include "tests/ptx/machine.h"
#include "tests/simt/runtime.h"

struct CUkern_st {  // cudaKernel_t.
  std::shared_ptr<ptx::Module> module;
  std::string name;
  int largest_dynamic_bytes = -1;  // As requested; -1: not requested.
};

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

// Objects register before main() begins.
struct Registry {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<ptx::Module>> modules;  // Key: the handle.
  std::map<const void*, CUkern_st> kernels;                     // Key: the host's function.
};
Registry& registry() {
  static Registry* const one = new Registry;
  return *one;
}

CUkern_st& kernel_of(const void* host_function) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(host_function);
  if (found == registry().kernels.end()) ptx::die("an unregistered kernel");
  return found->second;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  auto module = std::shared_ptr<ptx::Module>(ptx::read_module(ptx::text_of_fatbinary(wrapper)));
  std::lock_guard lock(registry().mutex);
  registry().modules[wrapper] = std::move(module);
  return static_cast<void**>(wrapper);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  std::lock_guard lock(registry().mutex);
  registry().kernels[host_function] = {registry().modules.at(handle), name, -1};
}
// No host code needs a variable's address.
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  const Configuration& c = configurations.back();
  *grid = c.grid;
  *block = c.block;
  *shared_bytes = c.shared_bytes;
  std::memcpy(stream, &c.stream, sizeof c.stream);
  configurations.pop_back();
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  *kernel = &kernel_of(host_function);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  ptx::Function& function = ptx::function_of(*kernel->module, kernel->name);
  // If no limit was requested, static and dynamic shared memory together have the default limit.
  const size_t largest = kernel->largest_dynamic_bytes >= 0
                             ? static_cast<size_t>(kernel->largest_dynamic_bytes)
                             : ptx::default_shared_limit - function.shared_bytes;
  if (shared_bytes > largest) ptx::die(kernel->name + ": more shared memory than was asked for");
  std::vector<char> given(function.parameter_memory.size());
  for (size_t k = 0; k < function.parameters.size(); ++k)
    std::memcpy(given.data() + function.parameters[k].at, arguments[k], function.parameters[k].bytes);
  const auto limit = static_cast<uint32_t>(simt::take_shared_limit());
  simt::enqueue(stream, [&function, given, grid, block, shared_bytes, limit] {
    std::copy(given.begin(), given.end(), function.parameter_memory.begin());  // Its address is in the code.
    ptx::run(
        function,
        {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<uint32_t>(shared_bytes), limit});
  });
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* host_function, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0) return cudaErrorInvalidValue;
  CUkern_st& kernel = kernel_of(host_function);
  const uint32_t own = ptx::function_of(*kernel.module, kernel.name).shared_bytes;
  if (static_cast<uint32_t>(value) + own > ptx::largest_for_warpgroups) return cudaErrorInvalidValue;
  if (value < kernel.largest_dynamic_bytes)
    ptx::die(kernel.name + ": less shared memory than it was allowed before; a graph may hold such a launch");
  kernel.largest_dynamic_bytes = value;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host_function) {
  const CUkern_st& kernel = kernel_of(host_function);
  *attributes = {};
  attributes->sharedSizeBytes = ptx::function_of(*kernel.module, kernel.name).shared_bytes;
  attributes->maxDynamicSharedSizeBytes =
      kernel.largest_dynamic_bytes >= 0
          ? kernel.largest_dynamic_bytes
          : static_cast<int>(ptx::default_shared_limit - attributes->sharedSizeBytes);
  return cudaSuccess;
}

}  // extern "C"
