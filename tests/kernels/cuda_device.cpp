// The CUDA device's kernels, held against the scalar ones of the CPU; emulated() and finish_kernels() are the machine's.
#include "kernels/cuda/workspace.h"
#include "src/cuda/matmul.h"
#include "tests/kernels/device.h"

namespace stw::kernels::test {

std::vector<NamedTable> tables() { return {{"scalar", cpu_table(Isa::scalar)}, {"CUDA", cuda_table()}}; }

const ProductLibrary* product_library() {
  static const auto matmul = stw::cuda::Matmul::create("");
  return matmul ? (*matmul)->library() : nullptr;
}

uint64_t workspace_for(void (*kernel)(), const void* args, uint64_t otherwise) {
#define STW_KERNEL_OF_CUDA(name, Args) \
  if (kernel == reinterpret_cast<void (*)()>(cuda_table()->name)) return cuda::name##_workspace(*static_cast<const Args*>(args));
  STW_KERNEL_WORKSPACES(STW_KERNEL_OF_CUDA)
#undef STW_KERNEL_OF_CUDA
  return otherwise;
}

}  // namespace stw::kernels::test
