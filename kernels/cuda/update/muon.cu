// Muon (muon_step.h): replaces the momentum of a matrix by an approximation of the nearest matrix with
// orthonormal rows or columns.
//
// Tensor cores use another iteration (tensor_muon.cu). Here, every element of a product is a sum of chains of
// fused multiply-adds (muon_product.h). A and A·A are symmetric to the bit, so only tiles on and below the
// diagonal are computed, and each is also stored transposed. X alternates between two buffers.
//
// With the sides s <= l: 5·(3·s²·l + s³) floating-point operations plus the part of the diagonal's tiles
// above the diagonal, all in fp32. Workspace: 4·(2·s·l + 2·s²) bytes (muon_layout.h).
#include "kernels/cuda/update/muon_passes.h"
#include "kernels/cuda/update/muon_product.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads)
    scale_kernel(const StepState* state, float* x, int64_t count, const float* scale) {
  if (state->skip != 0) return;
  const F16 by = splat(*scale);
  for_groups_of_grid(count, [&](int64_t at, int64_t n) {
    store_group(x, DType::f32, at, mul(by, load_group(x, DType::f32, at, n)), n);
  });
}

// gram = side·sideᵀ. With `polynomial`, it is b·gram + c·gram·gram + a·I, and `side` is gram.
template <bool polynomial>
static __global__ void __launch_bounds__(product_threads)
    gram_kernel(const StepState* state, ProductSide side, int64_t depth, const float* gram, float* out) {
  if (state->skip != 0) return;
  const int64_t n = side.extent, tiles = ceil_div(n, product_tile);
  for (int64_t task = blockIdx.x; task < tiles * (tiles + 1) / 2; task += gridDim.x) {
    int64_t tile_row = 0;
    while ((tile_row + 1) * (tile_row + 2) / 2 <= task) ++tile_row;
    const int64_t tile_column = task - tile_row * (tile_row + 1) / 2;
    product_tile_of(side, side, depth, tile_row * product_tile, tile_column * product_tile,
                    [&](int64_t i, int64_t j, float x) {
                      if constexpr (polynomial) {
                        x = fma1(muon_c, x, muon_b * gram[i * n + j]);
                        if (i == j) x = x + muon_a;
                      }
                      out[i * n + j] = x;
                      if (tile_row != tile_column) out[j * n + i] = x;
                    });
  }
}

// out (a.extent, b.extent) = a·bᵀ
static __global__ void __launch_bounds__(product_threads)
    multiply_kernel(const StepState* state, ProductSide a, ProductSide b, int64_t depth, float* out) {
  if (state->skip != 0) return;
  const int64_t tiles_across = ceil_div(b.extent, product_tile),
                tiles = ceil_div(a.extent, product_tile) * tiles_across;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    product_tile_of(a, b, depth, tile / tiles_across * product_tile, tile % tiles_across * product_tile,
                    [&](int64_t i, int64_t j, float x) { out[i * b.extent + j] = x; });
}

void muon(const Launch& l, const UpdateArgs& args) {
  STW_ASSERT_WORKSPACE(muon);
  if (is_tensor_muon(args)) return tensor_muon(l, args);
  const MuonLayout layout = muon_layout(args);
  assert(static_cast<uint64_t>(layout.bytes) <= l.workspace_bytes);
  const auto floats_at = [&](int64_t bytes) {
    return reinterpret_cast<float*>(static_cast<char*>(l.workspace) + bytes);
  };
  float *x = floats_at(0), *next = floats_at(layout.next_at), *const gram = floats_at(layout.gram_at),
        *const polynomial = floats_at(layout.polynomial_at);
  float *const sums = floats_at(layout.sums_at), *const scale = floats_at(layout.scale_at);
  const int64_t columns = layout.columns, shorter = layout.shorter, tiles = ceil_div(shorter, product_tile);

  mix_momentum(l, args, layout, FlatX{x}, sums, scale);
  launch(l, scale_kernel, blocks_for_elements(args.count), block_threads, 0, args.state, x, args.count,
         scale);
  const int triangle = blocks_for(tiles * (tiles + 1) / 2, 1),
            whole = blocks_for(tiles * ceil_div(layout.longer, product_tile), 1);
  // Symmetric.
  const ProductSide gram_side{gram, shorter, 1, shorter}, polynomial_side{polynomial, shorter, 1, shorter};
  for (int i = 0; i < muon_iterations; ++i) {
    const ProductSide by_shorter{x, shorter, layout.wide ? columns : 1, layout.wide ? 1 : columns};
    const ProductSide by_longer{x, layout.longer, by_shorter.depth_stride, by_shorter.stride};
    launch(l, gram_kernel<false>, triangle, product_threads, 0, args.state, by_shorter, layout.longer, gram,
           gram);
    launch(l, gram_kernel<true>, triangle, product_threads, 0, args.state, gram_side, shorter, gram,
           polynomial);
    launch(l, multiply_kernel, whole, product_threads, 0, args.state,
           layout.wide ? polynomial_side : by_longer, layout.wide ? by_longer : polynomial_side, shorter,
           next);
    float* const swap = x;
    x = next;
    next = swap;
  }
  update_by(l, args, layout, FlatX{x});
}

}  // namespace stw::kernels::cuda
