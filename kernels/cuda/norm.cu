// LayerNorm and RMSNorm: y = (x - mean)·rstd·w + b. A quad computes a row, 16 elements at a time, which keeps the CPU's
// order of additions (norm_row.h). The row comes from memory once and from the caches the second and third time. Floor: x
// read, y written.
#include "kernels/common/norm_row.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <DType dtype>
static __global__ void __launch_bounds__(block_threads) norm_kernel(NormArgs args) {
  args.x.dtype = dtype;
  for_tasks_of_grid(args.rows, [&](int64_t row) {
    const RowStatistics statistics = row_statistics(args, row);
    const F16 mean = splat(statistics.mean), rstd = splat(statistics.rstd);
    for_groups(0, args.features, [&](int64_t i, int64_t n) {
      const F16 x = load_group(args.x.data, dtype, row * args.features + i, n);
      const F16 normalized = mul(sub(x, mean), rstd), w = load_group(args.weight, args.weight_dtype, i, n);
      const F16 y = args.bias == nullptr ? mul(normalized, w) : fma(normalized, w, load_group(args.bias, args.weight_dtype, i, n));
      store_group(args.y.data, args.y.dtype, row * args.features + i, y, n);
    });
  });
}

void norm(const Launch& l, const NormArgs& args) {
  for_dtype(args.x.dtype, [&](auto stored) { launch(l, norm_kernel<stored.dtype>, blocks_for_rows(args.rows), block_threads, 0, args); });
}

}  // namespace stw::kernels::cuda
