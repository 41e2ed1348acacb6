// position_gradient[p] += Σ dy of the samples' rows at position p. Each position is one serial chain over the
// samples that starts from the buffer. Positions that no row has get +0, or stay unchanged with `accumulate`.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void position_gradient(const Launch& launch, const EmbeddingArgs& args) {
  const int64_t features = args.features, start = args.state == nullptr ? 0 : (int64_t)args.state->position;
  const int64_t samples = ceil_div(args.rows, args.rows_per_sample);
  for_rows(launch, args.position_rows, features * max(1, samples), [&](int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position) {
      const int64_t first = position - start;  // The row of the first sample.
      const bool present = first >= 0 && first < args.rows_per_sample;
      for_groups(0, features, [&](int64_t i, int64_t n) {
        float* buffer = args.position_gradient + position * features;
        F16 sum = args.accumulate ? load_group(buffer, DType::f32, i, n) : zero();
        for (int64_t row = first; present && row < args.rows; row += args.rows_per_sample)
          sum = add(sum, load_group(args.y.data, args.y.dtype, row * features + i, n));
        store_group(buffer, DType::f32, i, sum, n);
      });
    }
  });
}

}  // namespace stw::kernels::STW_ISA
