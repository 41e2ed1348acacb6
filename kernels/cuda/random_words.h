// Access to the words of Philox blocks that are held in registers.
#pragma once
#include "kernels/common/philox.h"
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

// Word k. It is selected by comparisons, because indexing would put the block into local memory.
STW_DEVICE uint32_t word_of(const Philox4& block, int64_t k) {
  return k < 2 ? (k == 0 ? block.w[0] : block.w[1]) : (k == 2 ? block.w[2] : block.w[3]);
}

// Called by all threads of a warp. Every thread of a quad gives a block; thread l of the quad gets word l of
// each of the four blocks. The 4 × 4 square is transposed by exchanging the off-diagonal elements of its 2 ×
// 2 squares, then the off-diagonal squares.
STW_DEVICE Philox4 transposed_in_quad(Philox4 block) {
  const bool odd = threadIdx.x % 2 != 0, upper = threadIdx.x / 2 % 2 != 0;
  STW_UNROLL
  for (int k = 0; k < 4; k += 2) {
    const uint32_t got = __shfl_xor_sync(all_lanes, odd ? block.w[k] : block.w[k + 1], 1);
    if (odd) block.w[k] = got;
    else block.w[k + 1] = got;
  }
  STW_UNROLL
  for (int k = 0; k < 2; ++k) {
    const uint32_t got = __shfl_xor_sync(all_lanes, upper ? block.w[k] : block.w[k + 2], 2);
    if (upper) block.w[k] = got;
    else block.w[k + 2] = got;
  }
  return block;
}

}  // namespace stw::kernels::cuda
