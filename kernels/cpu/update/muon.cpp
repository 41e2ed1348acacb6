// Muon (muon_step.h): replaces the momentum of a matrix by an approximation of the nearest matrix with
// orthonormal rows or columns.
//
// Every element of a product is a sum of chains of fused multiply-adds (gemm.h). A and A·A are symmetric to
// the bit, so only their lower triangles are computed. X is rewritten in place, in strips of its longer side,
// each from a copy.
//
// With the sides s <= l: 5·(3·s²·l + s³) floating-point operations plus the part of the diagonal's tiles
// above the diagonal, 3.1e12 for 4096×11008. Workspace: 4·(s·l + 2·s²) bytes, and at most 4·384·(s + 278)
// bytes a thread (muon_layout.h).
#include "kernels/common/muon_step.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/update/muon_layout.h"
#include "kernels/cpu/update/parameter.h"

namespace stw::kernels::STW_ISA {

namespace {

// Updates m, writes u, and returns 1 / max(|u|, 1e-7). Squares are summed as in square_sum (kernels.h).
float mix_momentum(const Launch& launch, const UpdateArgs& args, float* u, float* sums) {
  const MuonScalars scalars = muon_scalars(args);
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    static_assert(task_elements % square_chunk == 0, "a task begins with a chunk");
    for (int64_t from = begin; from < end; from += square_chunk) {
      F16 sum = zero();
      for_groups(from, min(end, from + square_chunk), [&](int64_t at, int64_t n) {
        const F16 mixed = mixed_momentum(scalars, args, at, n);
        store_group(u, DType::f32, at, mixed, n);
        sum = fma(mixed, mixed, sum);
      });
      sums[from / square_chunk] = fold(sum);
    }
  });
  double total = 0;
  for (int64_t i = 0; i < ceil_div(args.count, square_chunk); ++i) total += (double)sums[i];
  return muon_scale(total);
}

// The lower triangle of x·xᵀ in whole tiles, for an x of shorter × depth.
void lower_product(const Launch& launch, const MuonLayout& layout, View x, int64_t depth, float* product) {
  parallel_for(launch, layout.tiles * (layout.tiles + 1) / 2, [&](int64_t index, int thread) {
    int64_t tile_row = 0;
    while ((tile_row + 1) * (tile_row + 2) / 2 <= index) ++tile_row;
    const int64_t row = tile_row * layout.tile,
                  column = (index - tile_row * (tile_row + 1) / 2) * layout.tile;
    const float* data = (const float*)x.data;
    const View rows = {data + row * x.row_stride, x.row_stride, x.column_stride, DType::f32};
    const View columns = {data + column * x.row_stride, x.column_stride, x.row_stride, DType::f32};
    chain_product(min(layout.tile, layout.shorter - row), min(layout.tile, layout.shorter - column), depth,
                  rows, columns, product + row * layout.shorter + column, layout.shorter, false,
                  (char*)launch.workspace + layout.threads_at + thread * layout.thread_bytes);
  });
}

// Completes a symmetric n × n matrix: element (row, column) = change(group at its place in the lower
// triangle), plus `diagonal` if row = column.
template <class Change>
void complete(const Launch& launch, int64_t n, float* matrix, float diagonal, const Change& change) {
  for_rows(launch, ceil_div(n, 16), 16 * n, [&](int64_t begin, int64_t end) {
    for (int64_t first = 16 * begin; first < 16 * end; first += 16) {
      // A row's groups may extend past the diagonal, but only in its tile.
      const int64_t last = min(n, first + 16);
      for (int64_t i = first; i < last; ++i) {
        for_groups(0, last, [&](int64_t j, int64_t lanes) {
          store_group(matrix, DType::f32, i * n + j, change(i * n + j, lanes), lanes);
        });
        matrix[i * n + i] = matrix[i * n + i] + diagonal;
      }
      for (int64_t j = 0; j < last; ++j)
        for (int64_t i = max(first, j + 1); i < last; ++i) matrix[j * n + i] = matrix[i * n + j];
    }
  });
}

// x = factor·x (wide) or x·factor (tall). `factor` is symmetric, shorter × shorter.
void multiply_in_place(const Launch& launch, const MuonLayout& layout, const float* factor, float* x) {
  const bool wide = layout.wide;
  const int64_t shorter = layout.shorter, stride = layout.columns;
  parallel_for(launch, layout.strips, [&](int64_t index, int thread) {
    char* const workspace = (char*)launch.workspace + layout.threads_at + thread * layout.thread_bytes;
    float* const copy = (float*)(workspace + layout.product_bytes);
    const int64_t at = index * layout.strip, extent = min(layout.strip, layout.longer - at);
    float* const strip = x + (wide ? at : at * stride);
    const int64_t rows = wide ? shorter : extent, columns = wide ? extent : shorter;
    for (int64_t i = 0; i < rows; ++i)
      memcpy(copy + i * columns, strip + i * stride, (size_t)columns * sizeof(float));
    const View whole = {factor, shorter, 1, DType::f32}, copied = {copy, columns, 1, DType::f32};
    chain_product(rows, columns, shorter, wide ? whole : copied, wide ? copied : whole, strip, stride, false,
                  workspace);
  });
}

}  // namespace

void muon(const Launch& launch, const UpdateArgs& args) {
  STW_ASSERT_WORKSPACE(muon);
  if (args.state->skip != 0) return;
  const MuonLayout layout = muon_layout(args, launch.parallel != nullptr ? launch.parallel->threads : 1);
  assert((uint64_t)layout.bytes <= launch.workspace_bytes);
  char* const workspace = (char*)launch.workspace;
  float* const x = (float*)workspace;
  float* const gram = (float*)(workspace + layout.gram_at);
  float* const square = (float*)(workspace + layout.square_at);

  const F16 scale = splat(mix_momentum(launch, args, x, (float*)(workspace + layout.sums_at)));
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      store_group(x, DType::f32, at, mul(scale, load_group(x, DType::f32, at, n)), n);
    });
  });

  const View x_view = {x, layout.wide ? layout.columns : 1, layout.wide ? 1 : layout.columns, DType::f32};
  const View gram_view = {gram, layout.shorter, 1, DType::f32};
  for (int i = 0; i < muon_iterations; ++i) {
    lower_product(launch, layout, x_view, layout.longer, gram);
    complete(launch, layout.shorter, gram, 0.0f,
             [&](int64_t at, int64_t n) { return load_group(gram, DType::f32, at, n); });
    lower_product(launch, layout, gram_view, layout.shorter, square);
    complete(launch, layout.shorter, square, muon_a, [&](int64_t at, int64_t n) {
      return fma(splat(muon_c), load_group(square, DType::f32, at, n),
                 mul(splat(muon_b), load_group(gram, DType::f32, at, n)));
    });
    multiply_in_place(launch, layout, square, x);
  }

  const F16 kept = splat(kept_share(args)), step = splat(muon_step(args, layout.longer));
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      const F16 p = mul(load_parameter(args, at, n), kept);
      store_parameter(args, at, fma(step, load_group(x, DType::f32, at, n), p), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
