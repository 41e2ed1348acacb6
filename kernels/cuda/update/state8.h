// Optimizer states in blocks of 256 bytes with one absolute maximum each. A warp has a block, and its eight
// quads take groups q and 8 + q of sixteen. The maps are read from shared memory, where lanes that read
// different places of a table have the fewest conflicts.
#pragma once
#include "kernels/common/quantile_build.h"
#include "kernels/common/quantile_code.h"
#include "kernels/cuda/groups.h"
#include "kernels/cuda/update/update_batch.h"

namespace stw::kernels::cuda {

inline constexpr int warp_threads = 32, groups_a_quad = 2;
static_assert(warp_threads / quad * groups_a_quad * 16 == quantile_block);

static __device__ constexpr QuantileMap signed_quantiles_of_device = quantiles::make_map(true);
static __device__ constexpr QuantileMap unsigned_quantiles_of_device = quantiles::make_map(false);

// Called by all threads of a block. A barrier must follow before the maps are used.
STW_DEVICE void fetch_map(const QuantileMap& from, QuantileMap* to) {
  static_assert(sizeof(QuantileMap) % 4 == 0);
  for (unsigned i = threadIdx.x; i < sizeof(QuantileMap) / 4; i += blockDim.x)
    reinterpret_cast<uint32_t*>(to)[i] = reinterpret_cast<const uint32_t*>(&from)[i];
}

// Place of this thread's k-th group in its block.
STW_DEVICE int64_t group_of_quad(int k) {
  return 16 * (threadIdx.x % warp_threads / quad + warp_threads / quad * k);
}

// Calls body(args, block, begin, count) for the blocks of states of this block of threads, one for each warp.
template <Storage storage, DType gradient, class Body>
STW_DEVICE void for_state_blocks_of(const UpdateBatch& batch, const Body& body) {
  static_assert(update_chunk % quantile_block == 0);
  for_chunks_of<storage, gradient, true>(batch, [&](const UpdateArgs& args, int64_t begin, int64_t end) {
    for (int64_t at = begin + threadIdx.x / warp_threads * quantile_block; at < end;
         at += blockDim.x / warp_threads * quantile_block)
      body(args, at / quantile_block, at, min(static_cast<int64_t>(quantile_block), end - at));
  });
}

STW_DEVICE F16 first_lanes(F16 x, FullGroup) { return x; }
template <class N>
STW_DEVICE F16 decode(const QuantileMap& map, const Bytes& code, N n) {
  F16 x;
  for (int i = 0; i < 4; ++i) x.f[i] = map.value[code.b[i]];
  return first_lanes(x, n);
}

// x / absmax for sizes up to absmax. The product with the rounded inverse plus one Newton step is rounded
// correctly (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990) if
// the remainder does not underflow. Here it does not underflow for quotients above 2^-35. All smaller
// quotients have the code of 0 (quantile_first), so their last bits do not matter.
STW_DEVICE F16 shares_of(F16 x, float absmax) {
  if (!(absmax >= 0x1p-60f && absmax <= 0x1p60f)) return div(x, splat(absmax));
  const float inverse = 1.0f / absmax;
  F16 share;
  for (int i = 0; i < 4; ++i) {
    const float near = x.f[i] * inverse;
    share.f[i] = fma1(fma1(-absmax, near, x.f[i]), inverse, near);
  }
  return share;
}

// Codes of x / absmax.
template <class N>
STW_DEVICE void encode(const QuantileMap& map, F16 x, float absmax, uint8_t* codes, N n) {
  Bytes code;
  if (absmax == 0.0f) {
    for (int i = 0; i < 4; ++i) code.b[i] = map.zero;
  } else {
    const F16 f = shares_of(x, absmax);
    for (int i = 0; i < 4; ++i) {
      const uint8_t low = (&map.lowest[0][0])[quantile_index(f.f[i])];
      code.b[i] = static_cast<uint8_t>(low + (f.f[i] > map.boundary[low] ? 1 : 0));
    }
  }
  store_some_bytes(codes, code, n);
}

// The largest of a warp's lanes. With a NaN, the result may differ from the CPU's, whose order of comparisons
// differs. That does not matter, because a step with a NaN is skipped before its update.
STW_DEVICE float fold_warp_maximum(F16 x) {
  float most = fold_maximum(x);
  for (int threads = quad; threads < warp_threads; threads *= 2) {
    const float other = __shfl_xor_sync(all_lanes, most, threads);
    most = most > other ? most : other;
  }
  return most;
}

}  // namespace stw::kernels::cuda
