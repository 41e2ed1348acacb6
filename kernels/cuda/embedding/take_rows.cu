// Copies of some rows of every sample, and the gradient, which writes zeros everywhere before it copies.
// Bound by memory: take_rows reads and writes y's bytes once; the gradient writes dx, and copies the taken
// rows.
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads)
    take_rows_kernel(TakeRowsArgs args, RowGroups groups) {
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t row, int64_t i, auto n) {
        const int64_t place = max(0, static_cast<int64_t>(args.places[row]));
        return load_group(args.x.data, Stored::of(args.x.dtype),
                          (row / args.taken * args.rows_per_sample + place) * args.features + i, n);
      },
      [&](const F16& x, int64_t row, int64_t i, auto n) {
        store_group(args.y.data, Stored::of(args.y.dtype), row * args.features + i, x, n);
      });
}

template <class Stored>
static __global__ void __launch_bounds__(block_threads) put_rows_kernel(TakeRowsArgs args, RowGroups groups) {
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t row, int64_t i, auto n) {
        return load_group(args.x.data, Stored::of(args.x.dtype), row * args.features + i, n);
      },
      [&](const F16& x, int64_t row, int64_t i, auto n) {
        const int64_t place = args.places[row];
        if (place >= 0)
          store_group(args.y.data, Stored::of(args.y.dtype),
                      (row / args.taken * args.rows_per_sample + place) * args.features + i, x, n);
      });
}

static RowGroups groups_of(const TakeRowsArgs& args, int64_t rows) {
  return row_groups(rows, args.features,
                    vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype));
}

void take_rows(const Launch& l, const TakeRowsArgs& args) {
  const RowGroups groups = groups_of(args, args.samples * args.taken);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, take_rows_kernel<decltype(stored)>, blocks_for_ahead(groups), block_threads, 0, args, groups);
  });
}

void take_rows_gradient(const Launch& l, const TakeRowsArgs& args) {
  const int64_t elements = args.samples * args.rows_per_sample * args.features;
  fill(l, {args.y.data, static_cast<uint64_t>(elements) * (args.y.dtype == DType::f32 ? 4 : 2)});
  const RowGroups groups = groups_of(args, args.samples * args.taken);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, put_rows_kernel<decltype(stored)>, blocks_for_ahead(groups), block_threads, 0, args, groups);
  });
}

}  // namespace stw::kernels::cuda
