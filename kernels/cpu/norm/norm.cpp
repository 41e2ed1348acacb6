// LayerNorm and RMSNorm: y = (x - mean)·rstd·w + b, row by row. A row is read three times (mean, variance,
// output) but only once from memory; it stays in the first-level cache.
#include "kernels/cpu/norm/norm_rows.h"

namespace stw::kernels::STW_ISA {

void norm(const Launch& launch, const NormArgs& args) {
  for_rows(launch, args.rows, args.features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) normalize_row(args, row);
  });
}

}  // namespace stw::kernels::STW_ISA
