// LayerNorm and RMSNorm: y = (x - mean)·rstd·w + b, row by row. A row is read three times (mean, variance, output) but
// comes from memory once; it stays in the first-level cache.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/common/norm_row.h"

namespace stw::kernels::STW_ISA {

void norm(const Launch& launch, const NormArgs& args) {
  for_rows(launch, args.rows, args.features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      RowStatistics statistics = row_statistics(args, row);
      F16 mean = splat(statistics.mean), rstd = splat(statistics.rstd);
      for_groups(0, args.features, [&](int64_t i, int64_t n) {
        F16 x = load_group(args.x.data, args.x.dtype, row * args.features + i, n);
        F16 normalized = mul(sub(x, mean), rstd), w = load_group(args.weight, args.weight_dtype, i, n);
        F16 y = args.bias == nullptr ? mul(normalized, w)
                                     : fma(normalized, w, load_group(args.bias, args.weight_dtype, i, n));
        store_group(args.y.data, args.y.dtype, row * args.features + i, y, n);
      });
    }
  });
}

}  // namespace stw::kernels::STW_ISA
