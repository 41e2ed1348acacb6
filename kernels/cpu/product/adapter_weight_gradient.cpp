// dW += dyᵀ·low, part by part: chains of chain_terms rows, which restart in every sample, are added in order
// to the buffer. So a cut of the batch between two chains changes no bit.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/product/adapter_tiles.h"

namespace stw::kernels::STW_ISA {

void adapter_weight_gradient(const Launch& launch, const AdapterArgs& args) {
  STW_ASSERT_WORKSPACE(adapter_weight_gradient);
  const int threads = launch.parallel != nullptr ? launch.parallel->threads : 1;
  const int64_t low_width = args.parts * args.rank, y_bytes = element_bytes(args.y.dtype),
                low_bytes = element_bytes(args.low.dtype);
  for (int part = 0; part < args.parts; ++part) {
    const AdapterPart& p = args.part[part];
    if (p.weight_gradient == nullptr) continue;
    const TileGrid grid = adapter_weight_gradient_grid(args, p.features, threads);
    STW_ASSERT_THREADS_FIT(grid.thread_bytes);
    parallel_for(launch, grid.row_tiles * grid.column_tiles, [&](int64_t index, int thread) {
      const int64_t feature = index % grid.row_tiles * grid.tile_rows,
                    column = index / grid.row_tiles * grid.tile_columns;
      const View dy = {(const char*)args.y.data + (p.column + feature) * y_bytes, 1, args.width,
                       args.y.dtype};
      const View low = {(const char*)args.low.data + (part * args.rank + column) * low_bytes, low_width, 1,
                        args.low.dtype};
      chain_product(min(grid.tile_rows, p.features - feature), min(grid.tile_columns, args.rank - column),
                    args.rows, dy, low, p.weight_gradient + feature * args.rank + column, args.rank,
                    args.accumulate, (char*)launch.workspace + thread * grid.thread_bytes, nullptr,
                    DType::f32, {args.rows_per_sample, args.first_row});
    });
  }
}

}  // namespace stw::kernels::STW_ISA
