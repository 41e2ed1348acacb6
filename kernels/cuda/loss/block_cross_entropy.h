// Cross entropy with bits of its own, not the CPU's: block_cross_entropy.cu.
#pragma once
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// Depends on shapes and types alone, so that the same plan always uses the same kernel.
bool block_cross_entropy_takes(const CrossEntropyArgs& args);
void block_cross_entropy(const Launch& l, const CrossEntropyArgs& args);

}  // namespace stw::kernels::cuda
