// How muon cuts its products into tasks and its workspace into regions: a pure function of shape and threads.
// No bit depends on it. cpu_workspace.h bounds its scratch memory. s is the shorter side of the matrix:
//
//   | u: rows × columns | gram: s × s | square: s × s | sums of chunks of u | thread 0 | thread 1 | ...
//   A thread's region: panels of a product, then a strip of u.
#pragma once
#include "kernels/cpu/product/linear_tiles.h"

namespace stw::kernels {

struct MuonLayout {
  int64_t rows, columns, shorter, longer;
  bool wide;              // The rows are the shorter side.
  int64_t tile, tiles;    // Square tiles of the products of shorter × shorter; tiles a side.
  int64_t strip, strips;  // Strips of the longer side.
  int64_t product_bytes, thread_bytes;
  int64_t gram_at, square_at, sums_at, threads_at, bytes;  // Offsets in bytes, multiples of 64.
};

STW_INLINE int64_t muon_side(int64_t extent, int64_t parts) { return even_tile(extent, parts, muon_unit); }

STW_INLINE MuonLayout muon_layout(const UpdateArgs& args, int threads) {
  constexpr int64_t serial_below = 100000;
  MuonLayout a = {};
  a.columns = args.columns;
  a.rows = args.count / args.columns;
  a.wide = a.rows <= a.columns;
  a.shorter = a.wide ? a.rows : a.columns;
  a.longer = a.wide ? a.columns : a.rows;
  const int64_t workers = threads <= 1 || a.shorter * a.shorter * a.longer < serial_below ? 1 : threads;

  // Only tiles on and below the diagonal are computed. The smaller the tiles, the less work lies above the
  // diagonal, and the more evenly threads share the work.
  a.tiles = tiles_in(a.shorter, muon_tile);
  while (a.tiles * (a.tiles + 1) / 2 < 4 * workers && muon_side(a.shorter, a.tiles) > muon_unit) ++a.tiles;
  a.tile = muon_side(a.shorter, a.tiles);
  a.tiles = tiles_in(a.shorter, a.tile);
  a.strip = muon_side(a.longer, tiles_in(tiles_in(a.longer, muon_tile), workers) * workers);
  a.strips = tiles_in(a.longer, a.strip);

  const int64_t symmetric = chain_product_workspace(a.tile, a.tile, a.longer);
  const int64_t in_place = a.wide ? chain_product_workspace(a.shorter, a.strip, a.shorter)
                                  : chain_product_workspace(a.strip, a.shorter, a.shorter);
  const auto lines = [](int64_t floats) { return (floats * (int64_t)sizeof(float) + 63) / 64 * 64; };
  a.product_bytes = symmetric > in_place ? symmetric : in_place;
  a.thread_bytes = a.product_bytes + lines(a.shorter * a.strip);
  a.gram_at = lines(args.count);
  a.square_at = a.gram_at + lines(a.shorter * a.shorter);
  a.sums_at = a.square_at + lines(a.shorter * a.shorter);
  a.threads_at = a.sums_at + lines(tiles_in(args.count, square_chunk));
  a.bytes = a.threads_at + a.thread_bytes * (threads > 1 ? threads : 1);
  return a;
}

}  // namespace stw::kernels
