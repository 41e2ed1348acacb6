// Declares every kernel in the namespace of the instruction set for which this file is compiled. Every kernel
// file includes it, so the compiler finds a definition that disagrees with kernels.h.
#pragma once
#include <assert.h>

#include "kernels/contract/kernels.h"
#include "kernels/lanes/simd.h"

namespace stw::kernels::STW_ISA {
#define STW_KERNEL_DECLARATION(name, Args) void name(const Launch& launch, const Args& args);
STW_KERNELS(STW_KERNEL_DECLARATION)
#undef STW_KERNEL_DECLARATION
extern const Table table;
}  // namespace stw::kernels::STW_ISA

// Checks that the launch has as much scratch memory as the kernel's workspace function returns.
#define STW_ASSERT_WORKSPACE(kernel) \
  assert(launch.workspace_bytes >= kernel##_workspace(args, launch.parallel->threads))
// Checks that the scratch memory holds thread_bytes for every thread.
#define STW_ASSERT_THREADS_FIT(thread_bytes)                                                                 \
  assert((uint64_t)(thread_bytes) * (uint64_t)(launch.parallel != nullptr ? launch.parallel->threads : 1) <= \
         launch.workspace_bytes)
