// Copies the rows of a micro-batch, and their tokens, to their places among those of the global batch. The
// place is read on the device, because all later micro-steps of a step are one captured graph. Bound by
// memory: reads and writes every row once. A thread has two groups in flight (ahead.h).
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads)
    keep_rows_kernel(STW_CONSTANT KeepRowsArgs args, RowGroups groups) {
  const DType dtype = Stored::of(args.y.dtype);
  const int64_t place =
      static_cast<int64_t>(args.state->first_sample - args.first_sample) * args.rows_per_sample;
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t row, int64_t i, auto n) {
        return load_copied(args.y.data, dtype, row * args.features + i, n);
      },
      [&](const F16& x, int64_t row, int64_t i, auto n) {
        store_copied(args.kept, dtype, (place + row) * args.features + i, x, n);
        if (i == 0 && first_lane() == 0) args.kept_tokens[place + row] = args.tokens[row];
      });
}

void keep_rows(const Launch& l, const KeepRowsArgs& args) {
  const bool vectors = vectors_at(args.y.data, args.y.dtype) && vectors_at(args.kept, args.y.dtype);
  const RowGroups groups = row_groups(args.rows, args.features, vectors);
  for_dtypes({args.y.dtype}, [&](auto stored) {
    launch(l, keep_rows_kernel<decltype(stored)>, blocks_for_ahead(groups), block_threads, 0, args, groups);
  });
}

}  // namespace stw::kernels::cuda
