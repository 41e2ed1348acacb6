// The serial matrix product on which all others are built. Along k it is cut into chains of at most
// chain_terms terms. A chain is a sequence of fused multiply-adds in the order of k, from +0. The chains'
// results are added in order, in fp32, to the start value of the element. So the bits do not depend on the
// blocking, on the register width, or on m and n, and a product may be cut between two chains and continued
// with `accumulate`.
//
// Blocking: a block of `a` of at most 384×256 is packed and stays in L2. Panels of `b` of at most 32 columns
// are packed one after the other, just before their use, and stay in L1. Some operands are read in place
// instead. The workspace holds one block and one panel.
//
// The gradients of tokens without a loss, and of the padding at the end of samples, are zero. Their terms add
// +0, and are left out if the operand says that it may have such tokens (View::has_zero_tokens). Times
// infinity they would be NaN. Infinities may occur in fp16, where nothing is left out.
#pragma once
#include "kernels/contract/cpu_blocks.h"
#include "kernels/lanes/simd.h"

namespace stw::kernels {

static_assert(block_depth >= chain_terms && block_rows % panel_rows == 0);

// In bytes, a multiple of 64; the same on every instruction set.
STW_INLINE int64_t chain_product_workspace(int64_t m, int64_t n, int64_t k) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const int64_t rows = m < block_rows ? (m + panel_rows - 1) / panel_rows * panel_rows : block_rows;
  const int64_t depth = k < block_depth ? (k + 15) / 16 * 16 : block_depth;
  return (rows + panel_columns) * depth * (int64_t)sizeof(float);
}

// Where chains begin along k: at multiples of chain_terms, counted from k = -first and restarted at every
// multiple of `restart` (0: never). In sums over rows, `restart` is the number of rows of a sample, and
// `first` is the place of k = 0 in its sample, a multiple of chain_terms.
struct Chains {
  int64_t restart = 0, first = 0;
};

// The end of the chain that begins at k < depth.
STW_INLINE int64_t chain_end(const Chains& chains, int64_t k, int64_t depth) {
  const int64_t in_sample =
      chains.restart > 0 ? chains.restart - (chains.first + k) % chains.restart : chain_terms;
  const int64_t terms = in_sample < chain_terms ? in_sample : chain_terms;
  return depth - k < terms ? depth : k + terms;
}

namespace STW_ISA {

// Element (i, j) is at data + i·row_stride + j·column_stride, in elements. One of the strides should be 1.
struct View {
  const void* data;
  int64_t row_stride, column_stride;
  DType dtype;
  // This is a gradient that is zero for many tokens. The elements of a token are adjacent in memory. The
  // tokens are the rows or columns of (m, k), or the rows of (k, n).
  bool has_zero_tokens = false;
};
STW_INLINE bool leaves_out_zeros(DType gradient) { return gradient != DType::f16; }

// c = (accumulate ? c : +0) + the chains of a·b, then + bias if it is not null. a is (m, k), b (k, n), c (m,
// n) with rows `ldc` apart, bias (n). `workspace` holds chain_product_workspace(m, n, k) bytes, aligned to 64
// bytes.
void chain_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate,
                   void* workspace, const void* bias = nullptr, DType bias_dtype = DType::f32,
                   const Chains& chains = {});

}  // namespace STW_ISA
}  // namespace stw::kernels
