// The serial matrix product that all others are made of. Along k it is cut into chains of at most chain_terms terms. A chain is
// fused multiply-adds in order of k from +0; the chains' results are added one after the other, in fp32, to what the element
// starts from. So the bits depend neither on the blocking, nor on the register width, nor on m and n, and a product may be cut
// between two chains and continued with `accumulate`.
//
// Blocking: a block of at most 384×256 of `a` is packed and stays in L2; panels of at most 32 columns of `b` are packed one after
// the other, just before their use, and stay in L1; unless they are read where they lie. The workspace holds one block and one
// panel.
#pragma once
#include "kernels/lanes/simd.h"

namespace stw::kernels {

inline constexpr int64_t block_rows = 384;    // of a; a multiple of panel_rows
inline constexpr int64_t block_depth = 256;   // along k: whole chains
static_assert(block_depth >= chain_terms);
inline constexpr int64_t panel_rows = 12;     // every instruction set's register tile divides these two
inline constexpr int64_t panel_columns = 32;

// Bytes, a multiple of 64; the same on every instruction set.
STW_INLINE int64_t chain_product_workspace(int64_t m, int64_t n, int64_t k) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const int64_t rows = m < block_rows ? (m + panel_rows - 1) / panel_rows * panel_rows : block_rows;
  const int64_t depth = k < block_depth ? (k + 15) / 16 * 16 : block_depth;
  return (rows + panel_columns) * depth * (int64_t)sizeof(float);
}

// Where along k chains begin: at multiples of chain_terms, counted from k = -first and anew from every multiple of `restart`.
// 0: from -first alone. For sums over rows `restart` is the number of rows in a sample, `first` where in its sample k = 0 lies:
// a multiple of chain_terms.
struct Chains { int64_t restart = 0, first = 0; };

// The end of the chain that begins at k < depth.
STW_INLINE int64_t chain_end(const Chains& chains, int64_t k, int64_t depth) {
  const int64_t in_sample = chains.restart > 0 ? chains.restart - (chains.first + k) % chains.restart : chain_terms;
  const int64_t terms = in_sample < chain_terms ? in_sample : chain_terms;
  return depth - k < terms ? depth : k + terms;
}

namespace STW_ISA {

// Element (i, j) at data + i·row_stride + j·column_stride, counted in elements. One of the strides should be 1.
struct View {
  const void* data;
  int64_t row_stride, column_stride;
  DType dtype;
};

// c = (accumulate ? c : +0) + the chains of a·b, then + bias where there is one; a is (m, k), b (k, n), c (m, n) with rows ldc
// apart, bias (n). `workspace` holds chain_product_workspace(m, n, k) bytes, 64-byte aligned.
void chain_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate,
                   void* workspace, const void* bias = nullptr, DType bias_dtype = DType::f32, const Chains& chains = {});

}  // namespace STW_ISA
}  // namespace stw::kernels
