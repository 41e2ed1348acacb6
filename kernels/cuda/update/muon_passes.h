// The passes of Muon other than its products, for any storage of X. store_x and load_x take the index of an
// element in the matrix without padding. The first pass writes u to the place of X and sums the squares of
// its chunks as in square_sum (kernels.h). Then the scale is computed. In the end, X changes the parameter.
#pragma once
#include "kernels/common/muon_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"
#include "kernels/cuda/update/muon_layout.h"
#include "kernels/cuda/update/parameter.h"

namespace stw::kernels::cuda {

static_assert(staged_floats == square_chunk);

void tensor_muon(const Launch& l, const UpdateArgs& args);  // If is_tensor_muon(args).

struct FlatX {
  float* data;
};
STW_DEVICE void store_x(const FlatX& x, int64_t at, F16 value, int64_t n) {
  store_group(x.data, DType::f32, at, value, n);
}
STW_DEVICE F16 load_x(const FlatX& x, int64_t at, int64_t n) { return load_group(x.data, DType::f32, at, n); }

template <DType gradient, class X>
static __global__ void __launch_bounds__(block_threads, 5)
    mix_momentum_kernel(UpdateArgs args, X x, float* sums) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const MuonScalars scalars = muon_scalars(args);
  for (int64_t chunk = blockIdx.x; chunk * square_chunk < args.count; chunk += gridDim.x) {
    const int64_t begin = chunk * square_chunk;
    const float sum = sum_squares(min(square_chunk, args.count - begin), [&](int64_t i, int64_t n) {
      const F16 mixed = mixed_momentum(scalars, args, begin + i, n);
      store_x(x, begin + i, mixed, n);
      return mixed;
    });
    if (threadIdx.x == 0) sums[chunk] = sum;
  }
}

static __global__ void __launch_bounds__(block_threads)
    muon_scale_kernel(const StepState* state, const float* sums, int64_t chunks, float* scale) {
  if (state->skip != 0) return;
  const double squares = serial_sum_of_floats(sums, chunks);
  if (threadIdx.x == 0) *scale = muon_scale(squares);
}

template <Storage storage, class X>
static __global__ void __launch_bounds__(block_threads) muon_kernel(UpdateArgs args, X x, int64_t longer) {
  if (args.state->skip != 0) return;
  const F16 kept = splat(kept_share(args)), step = splat(muon_step(args, longer));
  for_groups_of_grid(args.count, [&](int64_t at, int64_t n) {
    const F16 p = mul(load_parameter<storage>(args, at, n), kept);
    store_parameter<storage>(args, at, fma(step, load_x(x, at, n), p), n);
  });
}

template <class X>
void mix_momentum(const Launch& l, const UpdateArgs& args, const MuonLayout& layout, X x, float* sums,
                  float* scale) {
  for_gradient(args, [&](auto gradient) {
    launch(l, mix_momentum_kernel<gradient.dtype, X>, blocks_for_update(args.count, square_chunk),
           block_threads, 0, args, x, sums);
  });
  launch(l, muon_scale_kernel, 1, block_threads, 0, args.state, sums, layout.chunks, scale);
}
template <class X>
void update_by(const Launch& l, const UpdateArgs& args, const MuonLayout& layout, X x) {
  for_storage(args, [&](auto stored) {
    launch(l, muon_kernel<stored.storage, X>, blocks_for_update(args.count), block_threads, 0, args, x,
           layout.longer);
  });
}

}  // namespace stw::kernels::cuda
