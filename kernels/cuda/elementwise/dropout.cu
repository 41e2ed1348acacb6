// Inverted dropout, forward and backward. The mask is drawn again from the counters of philox.h. A thread
// draws one block of four numbers for its four elements: groups begin at multiples of 16 in their sample.
// Bound by memory: ten rounds of Philox are about 15 operations an element. A thread has two groups in flight
// (ahead.h).
#include "kernels/common/philox.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads) dropout_kernel(DropoutArgs args, RowGroups groups) {
  const Dropout of_first = dropout_of(args.p, args.stream, *args.state, 0);
  for_groups_of_rows_ahead(
      groups,
      [&](int64_t sample, int64_t first, auto n) {
        return load_group(args.x.data, Stored::of(args.x.dtype), sample * args.per_sample + first, n);
      },
      [&](const F16& x, int64_t sample, int64_t first, auto n) {
        Dropout d = of_first;
        d.sample += static_cast<uint32_t>(sample);
        const int64_t block = (first + first_lane()) / 4;
        const Philox4 words = dropout_words(d, block);
        F16 y;
        // A dropped element becomes 0 even if it is not finite.
        STW_UNROLL
        for (int i = 0; i < 4; ++i) y.f[i] = words.w[i] >= d.threshold ? x.f[i] * d.kept_scale : 0.0f;
        store_group(args.y.data, Stored::of(args.y.dtype), sample * args.per_sample + first, y, n);
      });
}

template <class Stored>
static __global__ void __launch_bounds__(block_threads) convert_kernel(DropoutArgs args, bool vectors) {
  for_groups_of_grid_ahead(
      args.samples * args.per_sample, vectors,
      [&](int64_t at, auto n) { return load_copied(args.x.data, Stored::of(args.x.dtype), at, n); },
      [&](const F16& x, int64_t at, auto n) {
        store_copied(args.y.data, Stored::of(args.y.dtype), at, x, n);
      });
}

void dropout(const Launch& l, const DropoutArgs& args) {
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    const RowGroups groups = row_groups(args.samples, args.per_sample, vectors);
    if (args.p > 0)
      launch(l, dropout_kernel<decltype(stored)>, blocks_for_ahead(groups), block_threads, 0, args, groups);
    else if (args.x.data != args.y.data)
      launch(l, convert_kernel<decltype(stored)>, blocks_for_ahead(groups), block_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
