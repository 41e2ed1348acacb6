// Declares every kernel's launcher of this folder. Each kernel's file includes it, so that a definition that disagrees with
// kernels.h does not compile.
#pragma once
#include <assert.h>

#include "kernels/lanes/gpu_lanes.h"
#include "kernels/cuda/workspace.h"

namespace stw::kernels::cuda {
#define STW_KERNEL_DECLARATION(name, Args) void name(const Launch& launch_of, const Args& args);
STW_KERNELS(STW_KERNEL_DECLARATION)
#undef STW_KERNEL_DECLARATION
inline int multiprocessors_of_device() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count > 0 ? count : 1;
}

}  // namespace stw::kernels::cuda

// The launch of a kernel brings the scratch memory that its workspace function asks for.
#define STW_ASSERT_WORKSPACE(kernel) assert(l.workspace_bytes >= kernel##_workspace(args))
