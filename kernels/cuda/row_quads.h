// Sixteen threads handle a row. Their four quads correspond to the four vectors in which a CPU sums a row
// (kernels/cpu/row_lanes.h).
#pragma once
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

inline constexpr int quads_a_row = 4, row_threads = quads_a_row * quad;
inline constexpr int row_step = 16 * quads_a_row;  // Columns that the threads of a row take at once.

STW_DEVICE unsigned row_mask() { return 0xffffu << (threadIdx.x & 16u); }
STW_DEVICE int quad_of_row() { return static_cast<int>(threadIdx.x % row_threads / quad); }

// (quad 0 + quad 1) + (quad 2 + quad 3), then the fold of the lanes.
STW_DEVICE float fold_quads(F16 x) {
  for (int threads = quad; threads < row_threads; threads *= 2)
    for (int i = 0; i < 4; ++i) {
      const float other = __shfl_xor_sync(row_mask(), x.f[i], threads);
      x.f[i] = x.f[i] + other;
    }
  return fold(x);
}

}  // namespace stw::kernels::cuda
