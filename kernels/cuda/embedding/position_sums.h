// position_gradient[p] += Σ dy of the samples' rows at position p. A quad has 16 columns of a position: one
// serial chain over the samples that starts from the buffer. Positions that no row has get +0, or stay
// unchanged with `accumulate`. Four to eight samples are in flight (ahead.h). The lower bound is the time to
// read dy once.
#pragma once
#include "kernels/cuda/ahead.h"

namespace stw::kernels::cuda {

inline bool position_vectors(const EmbeddingArgs& args) {
  return vectors_at(args.y.data, args.y.dtype, args.features) &&
         vectors_at(args.position_gradient, DType::f32, args.features);
}
// One of position_rows · ceil(features / 16) tasks, by a quad.
template <DType dtype>
STW_DEVICE void sum_position(const EmbeddingArgs& args, bool vectors, int64_t task) {
  const int64_t features = args.features, groups = ceil_div(features, 16);
  const int64_t start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  const int64_t position = task / groups, i = task % groups * 16, left = features - i;
  const int64_t first = position - start;  // The row of the first sample.
  const bool has_rows = first >= 0 && first < args.rows_per_sample && first < args.rows;
  const int64_t samples = has_rows ? ceil_div(args.rows - first, args.rows_per_sample) : 0;
  float* const buffer = args.position_gradient + position * features;
  const auto sum_samples = [&](auto ahead, auto n) {
    F16 sum = args.accumulate ? load_group(buffer, DType::f32, i, n) : zero();
    for_each_ahead<ahead.value>(
        samples,
        [&](int64_t sample) {
          return load_group(args.y.data, dtype, (first + sample * args.rows_per_sample) * features + i, n);
        },
        [&](const F16& dy) { sum = add(sum, dy); });
    store_group(buffer, DType::f32, i, sum, n);
  };
  if (vectors && left >= 16) sum_samples(Ahead<4>{}, FullGroup{});
  else sum_samples(Ahead<1>{}, min(static_cast<int64_t>(16), left));
}

}  // namespace stw::kernels::cuda
