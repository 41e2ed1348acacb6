// How a linear kernel divides its output among threads: a grid of tiles, each one serial product. It is a
// pure function of shapes, types and threads. No bit depends on it. cpu_workspace.h bounds its scratch
// memory.
#pragma once
#include "kernels/cpu/product/gemm.h"

namespace stw::kernels {

struct TileGrid {
  int64_t tile_rows, tile_columns;
  int64_t row_tiles, column_tiles;  // Tiles of the last row and column may be smaller.
  int64_t product_bytes;            // Workspace of one product, for each thread.
  int64_t thread_bytes;             // The same plus an fp32 tile if the output has another type.
};

STW_INLINE int64_t tiles_in(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

STW_INLINE int64_t even_tile(int64_t extent, int64_t tiles, int64_t multiple) {
  const int64_t tile = tiles_in(tiles_in(extent, tiles), multiple) * multiple;
  return tile > 0 ? tile : multiple;
}

// The columns of an output: parts side by side. Tiles restart in each part.
struct PartWidths {
  int64_t width[max_parts];
  int parts;
};

// The grid that gives the busiest thread the least work. Packing an element counts as packing_cost
// multiply-adds.
STW_INLINE TileGrid tile_grid(int64_t m, const PartWidths& columns, int64_t k, bool fp32_output,
                              int threads) {
  constexpr int64_t packing_cost = 12, tile_cost = 1 << 14, serial_below = 100000;
  constexpr int64_t largest_rows = block_rows, largest_columns = 1024;
  int64_t n = 0, widest = 0;
  for (int i = 0; i < columns.parts; ++i) {
    n += columns.width[i];
    if (columns.width[i] > widest) widest = columns.width[i];
  }
  const bool serial = threads <= 1 || m * n * k < serial_below;
  const int64_t workers = serial ? 1 : threads;
  const int64_t columns_cap = fp32_output ? largest_columns : converted_columns;
  TileGrid best = {};
  int64_t best_cost = -1;
  const int64_t fewest_row_tiles = tiles_in(m > 0 ? m : 1, largest_rows);
  const int64_t fewest_column_tiles = tiles_in(widest > 0 ? widest : 1, columns_cap);  // In the widest part.
  for (int64_t split = 1; split <= (serial ? 1 : 2 * workers); split += split < 4 ? 1 : split / 2) {
    const int64_t row_tile = even_tile(m, fewest_row_tiles * split, panel_rows);
    const int64_t row_tiles = tiles_in(m, row_tile);
    for (int64_t round = 1; round <= (serial ? 1 : 4); ++round) {
      const int64_t wanted =
          serial || row_tiles <= 0 || n <= 0 ? 1 : tiles_in(tiles_in(round * workers, row_tiles) * widest, n);
      const int64_t column_tile =
          even_tile(widest, wanted > fewest_column_tiles ? wanted : fewest_column_tiles, panel_columns);
      int64_t column_tiles = 0;
      for (int i = 0; i < columns.parts; ++i) column_tiles += tiles_in(columns.width[i], column_tile);
      const int64_t tile = (row_tile * column_tile + packing_cost * (row_tile + column_tile)) * k + tile_cost;
      const int64_t cost = tiles_in(row_tiles * column_tiles, workers) * tile;
      if (best_cost >= 0 && cost >= best_cost) continue;
      best_cost = cost;
      best = {row_tile, column_tile, row_tiles, column_tiles, 0, 0};
    }
  }
  best.product_bytes = chain_product_workspace(best.tile_rows, best.tile_columns, k);
  const int64_t converted = fp32_output ? 0 : best.tile_rows * best.tile_columns;
  best.thread_bytes = best.product_bytes + converted * (int64_t)sizeof(float);
  return best;
}

STW_INLINE TileGrid tile_grid(int64_t m, int64_t n, int64_t k, bool fp32_output, int threads) {
  return tile_grid(m, PartWidths{{n}, 1}, k, fp32_output, threads);
}

template <class Args>
STW_INLINE PartWidths feature_columns(const Args& args) {
  PartWidths columns = {{}, args.parts};
  for (int i = 0; i < args.parts; ++i) columns.width[i] = args.part[i].features;
  return columns;
}
STW_INLINE TileGrid linear_grid(const LinearArgs& args, int threads) {
  return tile_grid(args.rows, feature_columns(args), args.inputs, args.y.dtype == DType::f32, threads);
}
STW_INLINE TileGrid input_gradient_grid(const LinearArgs& args, int threads) {
  int64_t features = 0;
  for (int i = 0; i < args.parts; ++i) features += args.part[i].features;
  return tile_grid(args.rows, args.inputs, features, args.x.dtype == DType::f32, threads);
}
// The grid of dW as it is stored: (features, inputs), or (inputs, features) if `transposed`.
STW_INLINE TileGrid weight_gradient_grid(const LinearArgs& args, int64_t features, int threads) {
  const bool fp32 = args.gradient_dtype == DType::f32;
  return args.transposed ? tile_grid(args.inputs, features, args.rows, fp32, threads)
                         : tile_grid(features, args.inputs, args.rows, fp32, threads);
}

namespace STW_ISA {

// The tiles of parts side by side: body(part, row, rows, column in the part, columns, thread). Adjacent tasks
// share a tile of the weight, which is the larger operand.
template <class Body>
void for_part_tiles(const Launch& launch, const TileGrid& grid, int64_t all_rows, const PartWidths& columns,
                    const Body& body) {
  int64_t first_tile[max_parts + 1] = {0};
  for (int i = 0; i < columns.parts; ++i)
    first_tile[i + 1] = first_tile[i] + ceil_div(columns.width[i], grid.tile_columns);
  parallel_for(launch, grid.row_tiles * first_tile[columns.parts], [&](int64_t index, int thread) {
    const int64_t row = index % grid.row_tiles * grid.tile_rows, column_tile = index / grid.row_tiles;
    int part = 0;
    while (column_tile >= first_tile[part + 1]) ++part;
    const int64_t column = (column_tile - first_tile[part]) * grid.tile_columns;
    body(part, row, min(grid.tile_rows, all_rows - row), column,
         min(grid.tile_columns, columns.width[part] - column), thread);
  });
}

// Converts one row of a tile between fp32 and its storage type; `at` counts elements.
STW_INLINE void store_tile_row(void* to, DType dtype, int64_t at, const float* from, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) store16(to, dtype, at + i, load(from + i));
  for (; i < count; ++i) store1(to, dtype, at + i, from[i]);
}
STW_INLINE void load_tile_row(float* to, const void* from, DType dtype, int64_t at, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) store(to + i, load16(from, dtype, at + i));
  for (; i < count; ++i) to[i] = load1(from, dtype, at + i);
}

}  // namespace STW_ISA
}  // namespace stw::kernels
