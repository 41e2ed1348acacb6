// The way of cross entropy that has no bits in common with the CPU's: block_cross_entropy.cu.
#pragma once
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// By shapes and types alone, so that the same plan always takes the same kernel.
bool block_cross_entropy_takes(const CrossEntropyArgs& args);
void block_cross_entropy(const Launch& l, const CrossEntropyArgs& args);

}  // namespace stw::kernels::cuda
