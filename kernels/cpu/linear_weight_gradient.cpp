// dW += dyᵀ·x: one fp32 chain per element over the rows, continued from the buffer. The chain has no tiles and no
// second accumulator, so a batch may be cut between any two rows without a change of a bit.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/linear_tiles.h"

namespace stw::kernels::STW_ISA {

void linear_weight_gradient(const Launch& launch, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_weight_gradient);
  const int64_t inputs = args.inputs, outputs = sum_of_features(args);
  const int threads = launch.parallel != nullptr ? launch.parallel->threads : 1;
  const int64_t x_bytes = element_bytes(args.x.dtype), y_bytes = element_bytes(args.y.dtype);
  int64_t first_column = 0;
  for (int part = 0; part < args.parts; ++part) {
    const LinearPart& p = args.part[part];
    const int64_t dy_at = first_column;
    first_column += p.features;
    if (p.weight_gradient == nullptr) continue;
    const TileGrid grid = weight_gradient_grid(args, p.features, threads);
    const int64_t height = args.transposed ? inputs : p.features, width = args.transposed ? p.features : inputs;

    parallel_for(launch, grid.row_tiles * grid.column_tiles, [&](int64_t index, int thread) {
      const int64_t i = index % grid.row_tiles * grid.tile_rows, j = index / grid.row_tiles * grid.tile_columns;
      const int64_t feature = args.transposed ? j : i, input = args.transposed ? i : j;
      const char* const dy = (const char*)args.y.data + (dy_at + feature) * y_bytes;
      const char* const x = (const char*)args.x.data + input * x_bytes;
      const View features_first = {dy, 1, outputs, args.y.dtype}, rows_dy = {dy, outputs, 1, args.y.dtype};
      const View inputs_first = {x, 1, inputs, args.x.dtype}, rows_x = {x, inputs, 1, args.x.dtype};
      chain_product(min(grid.tile_rows, height - i), min(grid.tile_columns, width - j), args.rows,
                    args.transposed ? inputs_first : features_first, args.transposed ? rows_dy : rows_x,
                    (float*)p.weight_gradient + i * width + j, width, args.accumulate,
                    (char*)launch.workspace + thread * grid.thread_bytes);
    });
  }
}

}  // namespace stw::kernels::STW_ISA
