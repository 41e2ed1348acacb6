// Declares the launchers of all kernels in this folder. Every kernel file includes it, so the compiler finds
// a definition that disagrees with kernels.h.
#pragma once
#include <assert.h>

#include "kernels/contract/kernels.h"
#include "kernels/lanes/gpu_lanes.h"

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

// Checks that the launch has as much scratch memory as the kernel's workspace function returns.
#define STW_ASSERT_WORKSPACE(kernel) assert(l.workspace_bytes >= kernel##_workspace(args))
// Checks that the buffers that a kernel placed in the scratch memory, up to `end`, fit.
#define STW_ASSERT_FITS(end)                                        \
  assert(static_cast<uint64_t>(reinterpret_cast<const char*>(end) - \
                               static_cast<const char*>(l.workspace)) <= l.workspace_bytes)
