// Declares every kernel in the namespace of the instruction set that this file is compiled for. Each kernel's file
// includes it, so that a definition that disagrees with kernels.h does not compile.
#pragma once
#include <assert.h>

#include "kernels/lanes/simd.h"
#include "kernels/contract/kernels.h"

namespace stw::kernels::STW_ISA {
#define STW_KERNEL_DECLARATION(name, Args) void name(const Launch& launch, const Args& args);
STW_KERNELS(STW_KERNEL_DECLARATION)
#undef STW_KERNEL_DECLARATION
extern const Table table;
}  // namespace stw::kernels::STW_ISA

// The launch of a kernel brings the scratch memory that its workspace function asks for.
#define STW_ASSERT_WORKSPACE(kernel) \
  assert(launch.workspace_bytes >= kernel##_workspace(args, launch.parallel->threads))
