// All devices share formulas written over F16, sixteen lanes of fp32. On a CPU, a thread holds all lanes in
// its registers (kernels/lanes/simd.h); on a GPU, four adjacent threads hold four lanes each
// (kernels/lanes/gpu_lanes.h). Every operation rounds alike and every fold has the same order, so a formula
// gives the same bits on both.
#pragma once
#if defined(STW_ISA_CUDA)
#include "kernels/lanes/gpu_lanes.h"
#else
#include "kernels/lanes/split.h"
#endif
