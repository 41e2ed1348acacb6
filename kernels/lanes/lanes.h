// Formulas that all devices share are written over F16, sixteen lanes of fp32. On a CPU a thread holds all of them in its
// registers (kernels/lanes/simd.h); on a GPU four neighbouring threads hold four each (kernels/lanes/gpu_lanes.h). Every operation
// rounds alike and every fold takes the same way, so that a formula gives the same bits on both.
#pragma once
#if defined(STW_ISA_CUDA)
#include "kernels/lanes/gpu_lanes.h"
#else
#include "kernels/lanes/split.h"
#endif
