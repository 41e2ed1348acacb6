// The CUDA kernels as a table. A missing kernel does not link.
#include "kernels/contract/kernels.h"
#include "kernels/cuda/developer.h"

namespace stw::kernels {

namespace cuda {
#define STW_KERNEL_DECLARATION(name, Args) void name(const Launch&, const Args&);
STW_KERNELS(STW_KERNEL_DECLARATION)
#undef STW_KERNEL_DECLARATION

DeveloperSwitches& developer_switches() {
  static DeveloperSwitches switches;
  return switches;
}
}  // namespace cuda

static constexpr Table table = {
#define STW_KERNEL_POINTER(name, Args) &cuda::name,
    STW_KERNELS(STW_KERNEL_POINTER)
#undef STW_KERNEL_POINTER
};

const Table* cuda_table() { return &table; }

}  // namespace stw::kernels
