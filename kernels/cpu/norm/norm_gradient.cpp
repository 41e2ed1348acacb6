// Gradient of LayerNorm and RMSNorm. With h = (x - mean)·rstd and g = dy·w:
//   dx = addend + rstd·(g - mean(g) - h·mean(g·h))   (RMSNorm: without mean(g))
//   dw = Σ_rows dy·h,  db = Σ_rows dy
// The first pass goes over rows: it keeps the statistics in the workspace and writes dx. The second pass goes
// over strips of columns for dw and db. Tiles of token_tile rows, which restart in every sample, are summed
// from +0. The tiles of each chain_terms rows are added up from +0, and their sum is added to the buffer. A
// cut of the batch between samples changes nothing.
#include "kernels/cpu/norm/norm_rows.h"

namespace stw::kernels::STW_ISA {

namespace {

// dw and db of columns [column, column + width), width <= norm_strip.
void weight_gradients(const NormArgs& args, const RowStatistics* statistics, int64_t column, int64_t width) {
  NormStrip dw = load_strip(args.weight_gradient, args.accumulate, column, width);
  NormStrip db = load_strip(args.bias_gradient, args.accumulate, column, width);
  NormStrip group_w = empty_strip(), group_b = empty_strip();
  for (int64_t first = 0, end; first < args.rows; first = end) {
    end = tile_end(first, args.rows, args.rows_per_sample);
    add_tile(args, first, 1, end - first, statistics + first, 1, column, width, group_w, group_b);
    if (!group_ends(end, args.rows, args.rows_per_sample)) continue;
    add_group(dw, group_w);
    add_group(db, group_b);
  }
  store_strip(args.weight_gradient, dw, column, width);
  store_strip(args.bias_gradient, db, column, width);
}

}  // namespace

void norm_gradient(const Launch& launch, const NormArgs& args) {
  STW_ASSERT_WORKSPACE(norm_gradient);
  // The biases come first, because dx may overwrite their dy.
  if (args.biases != nullptr) linear_bias_gradient(launch, *args.biases);
  auto* statistics = (RowStatistics*)launch.workspace;
  for_rows(launch, args.rows, args.features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      statistics[row] = row_statistics(args, row);
      if (args.dx.data != nullptr) row_input_gradient(args, row, statistics[row]);
    }
  });
  if (args.weight_gradient == nullptr && args.bias_gradient == nullptr) return;
  for_strips(launch, args.features, args.rows * args.features,
             [&](int64_t column, int64_t width) { weight_gradients(args, statistics, column, width); });
}

}  // namespace stw::kernels::STW_ISA
