// The CUDA device's kernels, held against the scalar ones of the CPU; emulated() is the machine's.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels/cuda/workspace.h"
#include "src/cuda/cudnn_attention.h"
#include "src/cuda/matmul.h"
#include "tests/kernels/device.h"

namespace stw::kernels::test {

std::vector<NamedTable> tables() { return {{"scalar", cpu_table(Isa::scalar)}, {"CUDA", cuda_table()}}; }

bool has_warpgroups() {
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return has_warpgroup_kernels() && major == 9 && minor == 0;
}

// Lives for ever: at the end of the process the runtime may be gone before it.
static stw::cuda::Matmul* matmul() {
  static stw::cuda::Matmul* const one = [] {
    auto created = stw::cuda::Matmul::create("");
    return created ? created->release() : nullptr;
  }();
  return one;
}
static stw::cuda::CudnnAttention* cudnn() {
  static stw::cuda::CudnnAttention* const one = [] {
    auto created = stw::cuda::CudnnAttention::create("");
    return created ? created->release() : nullptr;
  }();
  return one;
}
const ProductLibrary* product_library() { return matmul() ? matmul()->library() : nullptr; }
const AttentionLibrary* attention_library() { return cudnn() ? cudnn()->library() : nullptr; }
std::string library_error() {
  std::string text;
  for (const stw::Status& status : {matmul() ? matmul()->take_error() : stw::ok(), cudnn() ? cudnn()->take_error() : stw::ok()})
    if (!status) text += status.error().message;
  return text;
}

// A launch that was refused is no error of those that ran.
void finish_kernels() {
  const cudaError_t launched = cudaGetLastError(), ran = cudaDeviceSynchronize();
  ASSERT_EQ(launched, cudaSuccess) << "a kernel did not start: " << cudaGetErrorString(launched);
  ASSERT_EQ(ran, cudaSuccess) << cudaGetErrorString(ran);
}

uint64_t workspace_for(void (*kernel)(), const void* args, uint64_t otherwise) {
#define STW_KERNEL_OF_CUDA(name, Args) \
  if (kernel == reinterpret_cast<void (*)()>(cuda_table()->name)) return cuda::name##_workspace(*static_cast<const Args*>(args));
  STW_KERNEL_WORKSPACES(STW_KERNEL_OF_CUDA)
#undef STW_KERNEL_OF_CUDA
  return otherwise;
}

}  // namespace stw::kernels::test
