// Muon's workspace: x and what the next iteration makes of it (rows × columns), gram and its polynomial (shorter × shorter),
// the sums of the chunks of u, and the scale that makes u into x. No bit depends on it.
#pragma once
#include "kernels/kernels.h"

namespace stw::kernels::cuda {

inline constexpr int64_t muon_chunk = 4096;   // elements of u whose squares are summed in fp32

struct MuonLayout {
  int64_t rows, columns, shorter, longer;
  bool wide;               // the rows are the shorter side
  int64_t chunks;
  int64_t next_at, gram_at, polynomial_at, sums_at, scale_at, bytes;   // offsets in bytes, multiples of 64
};
inline MuonLayout muon_layout(const UpdateArgs& args) {
  const auto lines = [](int64_t floats) { return (floats * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64; };
  MuonLayout a = {};
  a.columns = args.columns;
  a.rows = args.count / args.columns;
  a.wide = a.rows <= a.columns;
  a.shorter = a.wide ? a.rows : a.columns;
  a.longer = a.wide ? a.columns : a.rows;
  a.chunks = (args.count + muon_chunk - 1) / muon_chunk;
  a.next_at = lines(args.count);
  a.gram_at = 2 * a.next_at;
  a.polynomial_at = a.gram_at + lines(a.shorter * a.shorter);
  a.sums_at = a.polynomial_at + lines(a.shorter * a.shorter);
  a.scale_at = a.sums_at + lines(a.chunks);
  a.bytes = a.scale_at + static_cast<int64_t>(sizeof(float));
  return a;
}

}  // namespace stw::kernels::cuda
