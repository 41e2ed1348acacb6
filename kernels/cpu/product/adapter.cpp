// y = base + low·Wᵀ, part by part: chains over the rank are added to the base in fp32, and the result is
// rounded once. Columns of y outside all parts are copies of the base.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/product/adapter_tiles.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void adapter(const Launch& launch, const AdapterArgs& args) {
  STW_ASSERT_WORKSPACE(adapter);
  assert(args.base.dtype == args.y.dtype);
  if (args.base.data != args.y.data)
    for_elements(launch, args.rows * args.width, [&](int64_t begin, int64_t end) {
      const int64_t size = element_bytes(args.y.dtype);
      memcpy((char*)args.y.data + begin * size, (const char*)args.base.data + begin * size,
             (size_t)((end - begin) * size));
    });
  const int64_t low_width = args.parts * args.rank, low_bytes = element_bytes(args.low.dtype),
                w_bytes = element_bytes(args.weight_dtype);
  const TileGrid grid = adapter_grid(args, launch.parallel != nullptr ? launch.parallel->threads : 1);
  STW_ASSERT_THREADS_FIT(grid.thread_bytes);

  for_part_tiles(launch, grid, args.rows, feature_columns(args),
                 [&](int part, int64_t row, int64_t rows, int64_t feature, int64_t features, int thread) {
                   const AdapterPart& p = args.part[part];
                   const View low = {
                       (const char*)args.low.data + (row * low_width + part * args.rank) * low_bytes,
                       low_width, 1, args.low.dtype};
                   const View w = {(const char*)p.weight + feature * args.rank * w_bytes, 1, args.rank,
                                   args.weight_dtype};
                   char* const workspace = (char*)launch.workspace + thread * grid.thread_bytes;
                   const int64_t at = row * args.width + p.column + feature;
                   if (args.y.dtype == DType::f32)
                     return chain_product(rows, features, args.rank, low, w, (float*)args.y.data + at,
                                          args.width, true, workspace);
                   float* const tile = (float*)(workspace + grid.product_bytes);
                   for (int64_t i = 0; i < rows; ++i)
                     load_tile_row(tile + i * grid.tile_columns, args.y.data, args.y.dtype,
                                   at + i * args.width, features);
                   chain_product(rows, features, args.rank, low, w, tile, grid.tile_columns, true, workspace);
                   for (int64_t i = 0; i < rows; ++i)
                     store_tile_row(args.y.data, args.y.dtype, at + i * args.width,
                                    tile + i * grid.tile_columns, features);
                 });
}

}  // namespace stw::kernels::STW_ISA
