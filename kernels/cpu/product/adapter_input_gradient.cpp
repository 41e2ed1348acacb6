// dlow = dy·W, part by part: chains over the part's features (gemm.h).
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/product/adapter_tiles.h"

namespace stw::kernels::STW_ISA {

void adapter_input_gradient(const Launch& launch, const AdapterArgs& args) {
  STW_ASSERT_WORKSPACE(adapter_input_gradient);
  const int64_t low_width = args.parts * args.rank, y_bytes = element_bytes(args.y.dtype),
                w_bytes = element_bytes(args.weight_dtype);
  const TileGrid grid =
      adapter_input_gradient_grid(args, launch.parallel != nullptr ? launch.parallel->threads : 1);
  STW_ASSERT_THREADS_FIT(grid.thread_bytes);

  for_part_tiles(launch, grid, args.rows, low_columns(args),
                 [&](int part, int64_t row, int64_t rows, int64_t column, int64_t columns, int thread) {
                   const AdapterPart& p = args.part[part];
                   const View dy = {(const char*)args.y.data + (row * args.width + p.column) * y_bytes,
                                    args.width, 1, args.y.dtype};
                   const View w = {(const char*)p.weight + column * w_bytes, args.rank, 1, args.weight_dtype};
                   char* const workspace = (char*)launch.workspace + thread * grid.thread_bytes;
                   const int64_t at = row * low_width + part * args.rank + column;
                   if (args.low.dtype == DType::f32)
                     return chain_product(rows, columns, p.features, dy, w, (float*)args.low.data + at,
                                          low_width, false, workspace);
                   float* const tile = (float*)(workspace + grid.product_bytes);
                   chain_product(rows, columns, p.features, dy, w, tile, grid.tile_columns, false, workspace);
                   for (int64_t i = 0; i < rows; ++i)
                     store_tile_row(args.low.data, args.low.dtype, at + i * low_width,
                                    tile + i * grid.tile_columns, columns);
                 });
}

}  // namespace stw::kernels::STW_ISA
