// Muon's workspace: X and the next X (rows × columns), gram and its polynomial (shorter × shorter), the sums
// of the chunks of u, and the scale that turns u into X. No bit depends on it.
//
// On the CUDA cores, matrices are fp32. On tensor cores (tensor_muon.cu), they are bf16 in rows that begin at
// multiples of 8 elements, and another matrix holds the lower 16 bits of X in fp32.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels::cuda {

struct MuonLayout {
  int64_t rows, columns, shorter, longer;
  bool wide;                      // The rows are the shorter side.
  int64_t stride, square_stride;  // Elements from one row of X, of gram, to the next.
  int64_t chunks;
  // Offsets in bytes, multiples of 64.
  int64_t next_at, remainder_at, gram_at, polynomial_at, sums_at, scale_at, bytes;
};
inline MuonLayout muon_layout(const UpdateArgs& args) {
  const bool tensor = is_tensor_muon(args);
  const auto lines = [](int64_t elements, int64_t bytes) { return (elements * bytes + 63) / 64 * 64; };
  const auto stride_of = [tensor](int64_t columns) { return tensor ? (columns + 7) / 8 * 8 : columns; };
  MuonLayout a = {};
  a.columns = args.columns;
  a.rows = args.count / args.columns;
  a.wide = a.rows <= a.columns;
  a.shorter = a.wide ? a.rows : a.columns;
  a.longer = a.wide ? a.columns : a.rows;
  a.stride = stride_of(a.columns);
  a.square_stride = stride_of(a.shorter);
  a.chunks = (args.count + square_chunk - 1) / square_chunk;
  const int64_t element = tensor ? 2 : 4, x = lines(a.rows * a.stride, element),
                square = lines(a.shorter * a.square_stride, element);
  a.next_at = x;
  a.remainder_at = 2 * x;
  a.gram_at = a.remainder_at + (tensor ? x : 0);
  a.polynomial_at = a.gram_at + square;
  a.sums_at = a.polynomial_at + square;
  a.scale_at = a.sums_at + lines(a.chunks, sizeof(float));
  a.bytes = a.scale_at + static_cast<int64_t>(sizeof(float));
  return a;
}

}  // namespace stw::kernels::cuda
