// db += Σ_rows dy, in tiles of token_tile rows that restart in every sample. Each tile is summed from +0. The
// tiles of each chain_terms rows are added up from +0, and their sum is added to the buffer. So a cut between
// samples, or between such groups, changes no bit. Threads take columns, which are independent.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/product/linear_tiles.h"

namespace stw::kernels::STW_ISA {

static constexpr int64_t strip_vectors = 4, bias_strip = 16 * strip_vectors;  // Columns summed in registers.

// Adds columns [column, column + width) of dy to `gradient`; width <= bias_strip.
static void sum_strip(const LinearArgs& args, int64_t y_stride, int64_t column, int64_t width,
                      float* gradient) {
  float held[bias_strip] = {0};
  if (args.accumulate) memcpy(held, gradient, (size_t)width * sizeof(float));
  F16 total[strip_vectors];
  for (int v = 0; v < strip_vectors; ++v) total[v] = load(held + 16 * v);
  const auto lanes = [&](int v) { return max(0, min(16, width - 16 * v)); };
  // Sums of the next tile.
  const float* sums = args.tile_sums != nullptr ? args.tile_sums + column : nullptr;
  for (int64_t sample = 0; sample < args.rows; sample += args.rows_per_sample) {
    const int64_t sample_end = min(sample + args.rows_per_sample, args.rows);
    F16 group[strip_vectors];
    for (int v = 0; v < strip_vectors; ++v) group[v] = zero();
    for (int64_t first = sample; first < sample_end; first += token_tile) {
      F16 sum[strip_vectors];
      for (int v = 0; v < strip_vectors; ++v) sum[v] = zero();
      const int64_t end = min(first + token_tile, sample_end);
      if (sums != nullptr) {
        for (int v = 0; v < strip_vectors; ++v) sum[v] = load_some(sums + 16 * v, lanes(v));
        sums += args.part[0].features;
      } else if (width == bias_strip) {
        for (int64_t row = first; row < end; ++row)
          for (int v = 0; v < strip_vectors; ++v)
            sum[v] = add(sum[v], load16(args.y.data, args.y.dtype, row * y_stride + column + 16 * v));
      } else {
        for (int64_t row = first; row < end; ++row)
          for (int v = 0; v < strip_vectors; ++v)
            sum[v] = add(sum[v],
                         load16_some(args.y.data, args.y.dtype, row * y_stride + column + 16 * v, lanes(v)));
      }
      for (int v = 0; v < strip_vectors; ++v) group[v] = add(group[v], sum[v]);
      if (end < sample_end && (end - sample) % chain_terms != 0) continue;
      for (int v = 0; v < strip_vectors; ++v) {
        total[v] = add(total[v], group[v]);
        group[v] = zero();
      }
    }
  }
  for (int v = 0; v < strip_vectors; ++v) store(held + 16 * v, total[v]);
  memcpy(gradient, held, (size_t)width * sizeof(float));
}

void linear_bias_gradient(const Launch& launch, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_bias_gradient);
  if (args.further != nullptr) linear_bias_gradient(launch, *args.further);
  const int64_t y_stride = args.y_stride;
  int64_t first_column = 0;
  for (int part = 0; part < args.parts; ++part) {
    const LinearPart& p = args.part[part];
    const int64_t column = first_column;
    first_column += p.features;
    if (p.bias_gradient == nullptr) continue;
    parallel_for(launch, ceil_div(p.features, bias_strip), [&](int64_t index, int) {
      const int64_t feature = index * bias_strip;
      sum_strip(args, y_stride, column + feature, min(bias_strip, p.features - feature),
                (float*)p.bias_gradient + feature);
    });
  }
}

}  // namespace stw::kernels::STW_ISA
