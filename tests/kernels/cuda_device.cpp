// The CUDA device's kernels, compared with the CPU's scalar ones. emulated() is defined by the machine.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/contract/kernels.h"
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

// A vendor's library, created when it is first needed. Null with STW_OWN_KERNELS in the environment, which a
// tool sets to observe our own kernels on the device. It is never destroyed: at the end of the process, the
// runtime may already be gone.
template <class Library>
struct OnDemand {
  Library* one = nullptr;
  bool is_tried = false;
  Library* get() {
    if (is_tried) return one;
    is_tried = true;
    if (std::getenv("STW_OWN_KERNELS")) return one;
    if (auto created = Library::create("")) one = created->release();
    return one;
  }
};
static OnDemand<stw::cuda::Matmul> matmul;
static OnDemand<stw::cuda::CudnnAttention> cudnn;
const ProductLibrary* product_library() { return matmul.get() ? matmul.one->library() : nullptr; }
const AttentionLibrary* attention_library() { return cudnn.get() ? cudnn.one->library() : nullptr; }
std::string library_error() {
  std::string text;
  for (const stw::Status& status :
       {matmul.one ? matmul.one->take_error() : stw::ok(), cudnn.one ? cudnn.one->take_error() : stw::ok()})
    if (!status) text += status.error().message;
  return text;
}

// Checks for a refused launch first: it is not an error of the kernels that ran.
void finish_kernels() {
  const cudaError_t launched = cudaGetLastError(), ran = cudaDeviceSynchronize();
  ASSERT_EQ(launched, cudaSuccess) << "a kernel did not start: " << cudaGetErrorString(launched);
  ASSERT_EQ(ran, cudaSuccess) << cudaGetErrorString(ran);
}

uint64_t workspace_for(void (*kernel)(), const void* args, uint64_t otherwise) {
#define STW_KERNEL_OF_CUDA(name, Args)                            \
  if (kernel == reinterpret_cast<void (*)()>(cuda_table()->name)) \
    return cuda::name##_workspace(*static_cast<const Args*>(args));
  STW_KERNEL_WORKSPACES(STW_KERNEL_OF_CUDA)
#undef STW_KERNEL_OF_CUDA
  return otherwise;
}

}  // namespace stw::kernels::test
