// Gradient of the norm of queries and keys. Each head is treated as in norm_gradient.cu; for values, dx = dy.
// dx may overwrite dy. The sum of a weight's gradient uses tiles of token_tile tokens, which restart in every
// sample. In a tile, the heads are taken in order, and each head is summed over its rows from +0. So a block
// has one tile of one head. Its quads first find the statistics of one row each, then sum 16 columns each,
// then compute dx of one row each. A second kernel adds the sums to the buffer, in order, group after group
// (token_tiles.h).
//
// The lower bound is the time to read x and dy once and to write dx: 302 MB for 16384 rows of 16 and 8 heads,
// 90 µs at 3.35 TB/s. A block reads 16 KB of x and of dy (bf16, heads of 128), which stay in the first-level
// cache. The sums are 1/64 of that in fp32. A block is about 10,000 PTX instructions of warps: 70 µs in
// total. A head has few columns: 8 of a block's 32 quads sum 64 rows each, while other blocks fetch. These
// figures are calculated, not measured.
//
// Workspace: sums (tiles, query_heads, head_dim), then (tiles, kv_heads, head_dim).
#include "kernels/cuda/embedding/token_tiles.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/norm/qk_heads.h"

namespace stw::kernels::cuda {

static constexpr int qk_threads = 128, qk_quads = qk_threads / quad;

// dx of the head at `at`, by a quad.
template <class Stored, int groups>
STW_DEVICE void head_input_gradient(const QkNormArgs& args, const void* weight, int64_t at, const F16& rstd,
                                    bool vectors) {
  const DType x_dtype = Stored::of(args.x.dtype), dy_dtype = Stored::of(args.y.dtype),
              weight_dtype = Stored::of(args.weight_dtype), dx_dtype = Stored::of(args.dx.dtype);
  const void* const x = element(static_cast<const void*>(args.x.data), x_dtype, at);
  const void* const dy = element(static_cast<const void*>(args.y.data), dy_dtype, at);
  void* const dx = element(args.dx.data, dx_dtype, at);
  struct Operands {
    F16 x, dy, w;
  };
  struct Normed {
    F16 g, h;
  };
  const auto load = [&](int i, auto n) {
    return Operands{load_group(x, x_dtype, i, n), load_group(dy, dy_dtype, i, n),
                    load_group(weight, weight_dtype, i, n)};
  };
  const auto normed = [&](const Operands& o) {
    return Normed{mul(o.dy, add(o.w, splat(args.weight_offset))), mul(o.x, rstd)};
  };
  F16 product = zero();  // Lanes after the end of the head add nothing: g is 0 there.
  for_head_groups<groups>(args.head_dim, vectors, load, [&](const Operands& operands, int, auto) {
    const Normed o = normed(operands);
    product = fma(o.g, o.h, product);
  });
  const F16 mean_gh = splat(fold(product) / static_cast<float>(args.head_dim));
  for_head_groups<groups>(args.head_dim, vectors, load, [&](const Operands& operands, int i, auto n) {
    const Normed o = normed(operands);
    store_group(dx, dx_dtype, i, mul(sub(o.g, mul(o.h, mean_gh)), rstd), n);
  });
}

template <class Stored, int groups>
static __global__ void __launch_bounds__(qk_threads, Stored::alike ? 6 : 5)
    qk_norm_gradient_kernel(QkNormArgs args, QkHeads heads, TokenTiles tiles, Divisor heads_of_row,
                            bool vectors, float* sums) {
  STW_SHARED(float, rstds, token_tile);
  const DType x_dtype = Stored::of(args.x.dtype), dy_dtype = Stored::of(args.y.dtype);
  const int quad_index = static_cast<int>(threadIdx.x) / quad, head_dim = args.head_dim;
  const int64_t width = static_cast<int64_t>(heads.all()) * head_dim;
  for (int64_t task = blockIdx.x; task < tiles.count() * heads_of_row.number; task += gridDim.x) {
    const int64_t tile = quotient(task, heads_of_row), first = tiles.first_row(tile);
    const int head = static_cast<int>(task - tile * heads_of_row.number),
              rows = static_cast<int>(tiles.end_row(tile) - first);
    const int64_t top = first * width + static_cast<int64_t>(head) * head_dim;
    if (head >= heads.normed()) {
      for (int row = quad_index; row < rows; row += qk_quads)
        copy_head<Stored, groups>(args.y, args.dx, top + row * width, head_dim, vectors);
      continue;
    }
    for (int row = quad_index; row < rows; row += qk_quads) {
      const float rstd = head_rstd<groups>(args, x_dtype, top + row * width, vectors);
      if (threadIdx.x % quad == 0) rstds[row] = rstd;
    }
    __syncthreads();
    const bool is_key = head >= heads.queries;
    if ((is_key ? args.weight_gradient[1] : args.weight_gradient[0]) != nullptr) {
      const int64_t to = is_key ? tiles.count() * heads.queries + tile * heads.keys + head - heads.queries
                                : tile * heads.queries + head;
      for (int i = quad_index * 16; i < head_dim; i += qk_quads * 16) {
        const int64_t n = min(static_cast<int64_t>(16), static_cast<int64_t>(head_dim - i));
        const void* const x = element(static_cast<const void*>(args.x.data), x_dtype, top + i);
        const void* const dy = element(static_cast<const void*>(args.y.data), dy_dtype, top + i);
        F16 dw = zero();
        const auto add_rows = [&](auto columns) {
          struct Row {
            F16 x, dy;
            float rstd;
          };
          for_each_ahead<2>(
              rows,
              [&](int row) {
                return Row{load_group(x, x_dtype, row * width, columns),
                           load_group(dy, dy_dtype, row * width, columns), rstds[row]};
              },
              [&](const Row& r) { dw = fma(r.dy, mul(r.x, splat(r.rstd)), dw); });
        };
        if (vectors && n == 16) add_rows(FullGroup{});
        else add_rows(n);
        store_group(sums, DType::f32, to * head_dim + i, dw, n);
      }
      __syncthreads();  // All threads have read dy.
    }
    if (args.dx.data != nullptr) {
      const void* const weight = is_key ? args.weight[1] : args.weight[0];
      for (int row = quad_index; row < rows; row += qk_quads)
        head_input_gradient<Stored, groups>(args, weight, top + row * width, splat(rstds[row]), vectors);
    }
    __syncthreads();  // All threads have finished with rstds.
  }
}

// The first row of blocks takes queries, the second one keys.
static __global__ void __launch_bounds__(fold_threads_a_block)
    qk_norm_fold_kernel(QkNormArgs args, QkHeads heads, TokenTiles tiles, const float* sums) {
  const bool is_key = blockIdx.y == 1;
  const int64_t head_count = is_key ? heads.keys : heads.queries;
  fold_tiles(sums + (is_key ? tiles.count() * heads.queries * args.head_dim : 0), tiles.count() * head_count,
             tiles.groups(head_count), args.head_dim, args.accumulate,
             is_key ? args.weight_gradient[1] : args.weight_gradient[0]);
}

void qk_norm_gradient(const Launch& l, const QkNormArgs& args) {
  STW_ASSERT_WORKSPACE(qk_norm_gradient);
  const QkHeads heads = {args.query_heads, args.kv_heads};
  const TokenTiles tiles{args.rows, args.rows_per_sample};
  float* const sums = static_cast<float*>(l.workspace);
  const bool copies = args.dx.data != nullptr && args.dx.data != args.y.data;
  const Divisor heads_of_row = divisor_of(copies ? heads.all() : heads.normed());
  const DType dx_dtype = args.dx.data == nullptr ? args.x.dtype : args.dx.dtype;
  const bool vectors = vectors_at(args.x.data, args.x.dtype, args.head_dim) &&
                       vectors_at(args.y.data, args.y.dtype, args.head_dim) &&
                       vectors_at(args.dx.data, dx_dtype, args.head_dim) &&
                       vectors_at(args.weight[0], args.weight_dtype) &&
                       vectors_at(args.weight[1], args.weight_dtype);
  for_heads({args.x.dtype, args.y.dtype, dx_dtype, args.weight_dtype}, args.head_dim, vectors,
            [&](auto stored, auto groups) {
              launch(l, qk_norm_gradient_kernel<decltype(stored), groups.number>,
                     blocks_for(tiles.count() * heads_of_row.number, 1), qk_threads, 0, args, heads, tiles,
                     heads_of_row, vectors, sums);
            });
  if (args.weight_gradient[0] == nullptr && args.weight_gradient[1] == nullptr) return;
  launch(l, qk_norm_fold_kernel, dim3(static_cast<unsigned>(blocks_for_fold(args.head_dim)), 2),
         fold_threads_a_block, 0, args, heads, tiles, sums);
}

}  // namespace stw::kernels::cuda
