// How the adapter kernels divide their outputs among threads (linear_tiles.h).
#pragma once
#include "kernels/cpu/product/linear_tiles.h"

namespace stw::kernels {

STW_INLINE int64_t widest_part(const AdapterArgs& args) {
  int64_t widest = 0;
  for (int i = 0; i < args.parts; ++i)
    if (args.part[i].features > widest) widest = args.part[i].features;
  return widest;
}

STW_INLINE TileGrid adapter_grid(const AdapterArgs& args, int threads) {
  return tile_grid(args.rows, feature_columns(args), args.rank, args.y.dtype == DType::f32, threads);
}
STW_INLINE PartWidths low_columns(const AdapterArgs& args) {
  PartWidths columns = {{}, args.parts};
  for (int i = 0; i < args.parts; ++i) columns.width[i] = args.rank;
  return columns;
}
STW_INLINE TileGrid adapter_input_gradient_grid(const AdapterArgs& args, int threads) {
  return tile_grid(args.rows, low_columns(args), widest_part(args), args.low.dtype == DType::f32, threads);
}
STW_INLINE TileGrid adapter_weight_gradient_grid(const AdapterArgs& args, int64_t features, int threads) {
  return tile_grid(features, args.rank, args.rows, true, threads);
}

}  // namespace stw::kernels
