// Means of documents and their gradient. A block has token_tile rows and 128 of their columns. In each of its
// eight warps, a quad has 16 of these columns. One warp sums a document of one chain and keeps several rows
// in flight (ahead.h). For longer documents, the warps sum chains in turn, and the first warp adds up the
// results. Bound by memory: the mean reads x once and writes y, the gradient writes dx.
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

inline constexpr int mean_warps = block_threads / 32, mean_columns = 32 / quad * 16;

// The sum of rows [first, end) in a group of columns.
template <class Stored, class Count>
STW_DEVICE F16 sum_of_rows(const DocumentMeanArgs& args, int64_t first, int64_t end, int64_t column,
                           Count n) {
  F16 sum = zero();
  for_each_ahead<4>(
      end - first,
      [&](int64_t k) {
        return load_group(args.x.data, Stored::of(args.x.dtype), (first + k) * args.features + column, n);
      },
      [&](const F16& x) { sum = add(sum, x); });
  return sum;
}

template <class Stored>
static __global__ void __launch_bounds__(block_threads, 3)
    document_mean_kernel(DocumentMeanArgs args, bool vectors, int column_blocks) {
  STW_SHARED(float, sums, mean_warps* mean_columns);
  const int warp = static_cast<int>(threadIdx.x) / 32,
            first_column = static_cast<int>(threadIdx.x) % 32 / quad * 16;
  const int64_t tasks = ceil_div(args.rows, token_tile) * column_blocks;
  STW_ROLLED
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int64_t begin = task / column_blocks * token_tile, end = min(args.rows, begin + token_tile);
    const int64_t column = task % column_blocks * mean_columns + first_column,
                  n = max(0, min(static_cast<int64_t>(16), args.features - column));
    const auto sum = [&](int64_t first, int64_t last) {
      return vectors && n == 16 ? sum_of_rows<Stored>(args, first, last, column, FullGroup{})
                                : sum_of_rows<Stored>(args, first, last, column, n);
    };
    const auto store = [&](int64_t row, const F16& y) {
      store_group(args.y.data, Stored::of(args.y.dtype), row * args.features + column, y, n);
    };
    STW_ROLLED
    for (int64_t row = begin + warp; row < end; row += mean_warps) {
      const int64_t count = args.positions[row] == 0 ? static_cast<int64_t>(args.following[row]) + 1 : 0;
      if (count == 0) store(row, zero());
      else if (count <= chain_terms)
        store(row, div(add(zero(), sum(row, row + count)), splat(static_cast<float>(count))));
    }
    STW_ROLLED
    for (int64_t row = begin; row < end; ++row) {
      if (args.positions[row] != 0 || args.following[row] < chain_terms) continue;
      const int64_t count = static_cast<int64_t>(args.following[row]) + 1;
      F16 total = zero();
      STW_ROLLED
      for (int64_t from = 0; from < count; from += mean_warps * chain_terms) {
        const int64_t first = from + warp * chain_terms;
        if (first < count)
          store_shared(sums + warp * mean_columns + first_column,
                       sum(row + first, row + min(count, first + chain_terms)));
        __syncthreads();
        if (warp == 0)
          for (int64_t k = 0; k < mean_warps && from + k * chain_terms < count; ++k)
            total = add(total, load(sums + k * mean_columns + first_column, FullGroup{}));
        __syncthreads();
      }
      if (warp == 0) store(row, div(total, splat(static_cast<float>(count))));
    }
  }
}

template <class Stored>
static __global__ void __launch_bounds__(block_threads)
    document_mean_gradient_kernel(DocumentMeanArgs args, RowGroups groups) {
  struct Operands {
    F16 dy;
    float count;
  };
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t row, int64_t i, auto n) {
        const int64_t position = args.positions[row];
        return Operands{
            load_group(args.x.data, Stored::of(args.x.dtype), (row - position) * args.features + i, n),
            static_cast<float>(position + args.following[row] + 1)};
      },
      [&](const Operands& o, int64_t row, int64_t i, auto n) {
        store_group(args.y.data, Stored::of(args.y.dtype), row * args.features + i, div(o.dy, splat(o.count)),
                    n);
      });
}

void document_mean(const Launch& l, const DocumentMeanArgs& args) {
  const bool vectors = vectors_at(args.x.data, args.x.dtype, args.features);
  const int column_blocks = static_cast<int>(ceil_div(args.features, mean_columns));
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, document_mean_kernel<decltype(stored)>,
           blocks_for(ceil_div(args.rows, token_tile) * column_blocks, 1), block_threads, 0, args, vectors,
           column_blocks);
  });
}

void document_mean_gradient(const Launch& l, const DocumentMeanArgs& args) {
  const RowGroups groups =
      row_groups(args.rows, args.features,
                 vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype));
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, document_mean_gradient_kernel<decltype(stored)>, blocks_for_ahead(groups), block_threads, 0,
           args, groups);
  });
}

}  // namespace stw::kernels::cuda
