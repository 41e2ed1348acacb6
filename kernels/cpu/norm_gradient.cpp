// Gradient of LayerNorm and RMSNorm. With h = (x - mean)·rstd and g = dy·w:
//   dx = addend + rstd·(g - mean(g) - h·mean(g·h))   (RMSNorm: without mean(g))
//   dw = Σ_rows dy·h,  db = Σ_rows dy
// First a pass over rows: the statistics, kept in the workspace, and dx. Then a pass over strips of columns for dw and
// db, each a serial chain over the rows: tiles of token_tile rows that start anew in every sample, summed from +0 and
// then added to the buffer. A cut of the rows between samples falls between tiles and changes nothing.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/common/norm_row.h"

namespace stw::kernels::STW_ISA {

namespace {

void input_gradient(const NormArgs& args, int64_t row, RowStatistics statistics) {
  const int64_t base = row * args.features;
  const F16 mean = splat(statistics.mean), rstd = splat(statistics.rstd);
  auto g_at = [&](int64_t i, int64_t n) {
    return mul(load_group(args.y.data, args.y.dtype, base + i, n), load_group(args.weight, args.weight_dtype, i, n));
  };
  auto h_at = [&](int64_t i, int64_t n) {
    return mul(sub(load_group(args.x.data, args.x.dtype, base + i, n), mean), rstd);
  };
  F16 sum = zero(), product = zero();  // lanes past the end of the row add nothing: g is 0 there
  for_groups(0, args.features, [&](int64_t i, int64_t n) {
    F16 g = g_at(i, n);
    sum = add(sum, g);
    product = fma(g, h_at(i, n), product);
  });
  const F16 mean_g = splat(args.rms ? 0.0f : fold(sum) / (float)args.features);
  const F16 mean_gh = splat(fold(product) / (float)args.features);
  for_groups(0, args.features, [&](int64_t i, int64_t n) {
    F16 inner = sub(sub(g_at(i, n), mean_g), mul(h_at(i, n), mean_gh));
    F16 dx = args.addend.data == nullptr
                 ? mul(inner, rstd)
                 : fma(inner, rstd, load_group(args.addend.data, args.addend.dtype, base + i, n));
    store_group(args.dx.data, args.dx.dtype, base + i, dx, n);
  });
}

constexpr int norm_groups = 2;
constexpr int64_t norm_strip = 16 * norm_groups;  // columns: the sums of a norm_strip fit the registers of every instruction set

// dw and db of columns [column, column + width), width <= strip.
void weight_gradients(const NormArgs& args, const RowStatistics* statistics, int64_t column, int64_t width) {
  auto load_sums = [&](const float* buffer, F16* sums) {
    for (int k = 0; k < norm_groups; ++k) {
      const int64_t n = min(16, max(0, width - 16 * k));
      const bool wanted = buffer != nullptr && args.accumulate && n > 0;
      sums[k] = wanted ? load_some(buffer + column + 16 * k, n) : zero();
    }
  };
  auto store_sums = [&](float* buffer, const F16* sums) {
    for (int k = 0; buffer != nullptr && k < norm_groups && width > 16 * k; ++k)
      store_some(buffer + column + 16 * k, sums[k], min(16, width - 16 * k));
  };
  F16 dw[norm_groups], db[norm_groups];
  load_sums(args.weight_gradient, dw);
  load_sums(args.bias_gradient, db);
  for (int64_t first = 0, end; first < args.rows; first = end) {
    end = min(args.rows, min(first + token_tile, round_up(first + 1, args.rows_per_sample)));
    F16 tile_w[norm_groups], tile_b[norm_groups];
    for (int k = 0; k < norm_groups; ++k) tile_w[k] = tile_b[k] = zero();
    for (int64_t row = first; row < end; ++row) {
      const F16 mean = splat(statistics[row].mean), rstd = splat(statistics[row].rstd);
      for (int k = 0; k < norm_groups; ++k) {
        const int64_t at = row * args.features + column + 16 * k, n = min(16, max(0, width - 16 * k));
        if (n == 0) continue;
        F16 dy = load_group(args.y.data, args.y.dtype, at, n), x = load_group(args.x.data, args.x.dtype, at, n);
        tile_w[k] = fma(dy, mul(sub(x, mean), rstd), tile_w[k]);
        tile_b[k] = add(tile_b[k], dy);
      }
    }
    for (int k = 0; k < norm_groups; ++k) {
      dw[k] = add(dw[k], tile_w[k]);
      db[k] = add(db[k], tile_b[k]);
    }
  }
  store_sums(args.weight_gradient, dw);
  store_sums(args.bias_gradient, db);
}

}  // namespace

void norm_gradient(const Launch& launch, const NormArgs& args) {
  STW_ASSERT_WORKSPACE(norm_gradient);
  auto* statistics = (RowStatistics*)launch.workspace;
  for_rows(launch, args.rows, args.features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      statistics[row] = row_statistics(args, row);
      if (args.dx.data != nullptr) input_gradient(args, row, statistics[row]);
    }
  });
  if (args.weight_gradient == nullptr && args.bias_gradient == nullptr) return;
  auto body = [&](int64_t task, int) {
    weight_gradients(args, statistics, task * norm_strip, min(norm_strip, args.features - task * norm_strip));
  };
  const int64_t strips = ceil_div(args.features, norm_strip);
  if (args.rows * args.features <= serial_elements) {
    for (int64_t task = 0; task < strips; ++task) body(task, 0);
  } else {
    parallel_for(launch, strips, body);
  }
}

}  // namespace stw::kernels::STW_ISA
