// dW += dyᵀ·x: chains of chain_terms rows, which restart in every sample, are added in order to the buffer.
// So a cut of the batch between two chains changes no bit. A bf16 gradient is loaded into an fp32 tile once,
// rounded there at the end of every sample, and stored once; it may be cut between samples only.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/product/linear_tiles.h"
#include "kernels/cpu/product/round_gradient.h"

namespace stw::kernels::STW_ISA {

void linear_weight_gradient(const Launch& launch, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_weight_gradient);
  if (args.further != nullptr) linear_weight_gradient(launch, *args.further);
  const bool direct = args.gradient_dtype == DType::f32;
  assert(direct || (args.gradient_dtype == DType::bf16 && args.state != nullptr &&
                    args.rows % args.rows_per_sample == 0));
  assert(args.first_row % chain_terms == 0 && (direct || args.first_row == 0));
  const int64_t inputs = args.inputs, y_stride = args.y_stride;
  const int threads = launch.parallel != nullptr ? launch.parallel->threads : 1;
  const int64_t x_bytes = element_bytes(args.x.dtype), y_bytes = element_bytes(args.y.dtype);
  int64_t first_column = 0;
  for (int part = 0; part < args.parts; ++part) {
    const LinearPart& p = args.part[part];
    const int64_t dy_at = first_column;
    first_column += p.features;
    if (p.weight_gradient == nullptr) continue;
    const TileGrid grid = weight_gradient_grid(args, p.features, threads);
    STW_ASSERT_THREADS_FIT(grid.thread_bytes);
    const int64_t height = args.transposed ? inputs : p.features,
                  width = args.transposed ? p.features : inputs;

    parallel_for(launch, grid.row_tiles * grid.column_tiles, [&](int64_t index, int thread) {
      const int64_t i = index % grid.row_tiles * grid.tile_rows,
                    j = index / grid.row_tiles * grid.tile_columns;
      const int64_t tile_rows = min(grid.tile_rows, height - i), columns = min(grid.tile_columns, width - j);
      const int64_t feature = args.transposed ? j : i, input = args.transposed ? i : j, at = i * width + j;
      char* const workspace = (char*)launch.workspace + thread * grid.thread_bytes;
      const auto add_rows = [&](int64_t row, int64_t rows, float* to, int64_t stride, bool accumulate) {
        const char* const dy = (const char*)args.y.data + (row * y_stride + dy_at + feature) * y_bytes;
        const char* const x = (const char*)args.x.data + (row * inputs + input) * x_bytes;
        const View features_first = {dy, 1, y_stride, args.y.dtype, leaves_out_zeros(args.y.dtype)},
                   rows_dy = {dy, y_stride, 1, args.y.dtype, leaves_out_zeros(args.y.dtype)};
        const View inputs_first = {x, 1, inputs, args.x.dtype}, rows_x = {x, inputs, 1, args.x.dtype};
        chain_product(tile_rows, columns, rows, args.transposed ? inputs_first : features_first,
                      args.transposed ? rows_dy : rows_x, to, stride, accumulate, workspace, nullptr,
                      DType::f32, {args.rows_per_sample, args.first_row});
      };
      if (direct) return add_rows(0, args.rows, (float*)p.weight_gradient + at, width, args.accumulate);

      float* const tile = (float*)(workspace + grid.product_bytes);
      const int64_t stride = grid.tile_columns;
      for (int64_t r = 0; r < tile_rows; ++r) {
        if (args.accumulate)
          load_tile_row(tile + r * stride, p.weight_gradient, DType::bf16, at + r * width, columns);
        else memset(tile + r * stride, 0, (size_t)columns * sizeof(float));
      }
      for (int64_t row = 0; row < args.rows; row += args.rows_per_sample) {
        add_rows(row, args.rows_per_sample, tile, stride, true);
        const GradientRounding rounding =
            gradient_rounding_of(*args.state, p.stream, row / args.rows_per_sample);
        for (int64_t r = 0; r < tile_rows; ++r)
          round_gradient(rounding, at + r * width, tile + r * stride, columns);
      }
      for (int64_t r = 0; r < tile_rows; ++r)
        store_tile_row(p.weight_gradient, DType::bf16, at + r * width, tile + r * stride, columns);
    });
  }
}

}  // namespace stw::kernels::STW_ISA
