// Scratch memory of the CUDA kernels in bytes: pure functions of shapes, the same on every device.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels::cuda {

#define STW_KERNEL_WORKSPACE(name, Args) uint64_t name##_workspace(const Args&);
STW_KERNEL_WORKSPACES(STW_KERNEL_WORKSPACE)
#undef STW_KERNEL_WORKSPACE

}  // namespace stw::kernels::cuda
