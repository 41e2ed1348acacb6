// wgmma of 16-bit operands with fp32 accumulators, as in the PTX manual ("Asynchronous Warpgroup Level Matrix
// Instructions"): the places of operands in shared memory, and the results of each of the four warps.
#pragma once
#include <cstdint>

#include "tests/simt/fiber.h"
#include "tests/simt/fragments.h"

namespace simt {

// Matrices of 16-bit elements in the layout of 128-byte swizzling. `transposed`: lines run along the rows of
// a or the columns of b, not along k. Returns null, or the error in the descriptor.
const char* wrong_with_matrix(uint64_t descriptor, bool transposed);
uint32_t byte_of_element(uint64_t descriptor, bool transposed, int output, int k);

struct AsyncProduct {
  uint64_t a, b;
  int columns;  // Columns of b.
  bool a_transposed, b_transposed, is_bf16;
  bool added = true;               // Whether the product is added to the old sums.
  bool a_is_in_registers = false;  // a is in registers, like the left operand of mma.m16n8k16.
};
// The operands that a warp reads: its 16 rows of a (16 × 16), unless they are in registers, and b (columns ×
// 16). read_operands() reads them for warp number `warp` of a group. element(i) returns the 16-bit number at
// byte i of shared memory.
struct WarpOperands {
  float a[16][16], b[16][256];  // b by k, then by column.
  uint64_t digest;
};
SIMT_UNSEEN inline void add_to_digest(WarpOperands& to, uint32_t bits) {
  to.digest = (to.digest ^ bits) * 1099511628211u;
}
template <class Element>
SIMT_UNSEEN void read_operands(const AsyncProduct& p, int warp, WarpOperands& to, const Element& element) {
  to.digest = 14695981039346656037u;
  for (int row = p.a_is_in_registers ? 16 : 0; row < 16 + p.columns; ++row)
    for (int k = 0; k < 16; ++k) {
      const bool of_a = row < 16;
      const uint16_t bits = element(of_a ? byte_of_element(p.a, p.a_transposed, 16 * warp + row, k)
                                         : byte_of_element(p.b, p.b_transposed, row - 16, k));
      add_to_digest(to, bits);
      (of_a ? to.a[row][k] : to.b[k][row - 16]) = half_value(bits, p.is_bf16);
    }
}
// The four words of a that a lane holds.
SIMT_UNSEEN void read_own_rows(const uint32_t* words, int lane, bool is_bf16, WarpOperands& to);
// The sums of each lane, four for eight columns: rows lane / 4 and eight below, columns 2·(lane mod 4) and
// the next.
SIMT_UNSEEN void add_async_products(const WarpOperands& operands, int columns, float* const* sums);

// ---- for the emulated machine
// Called by all lanes of four warps. The numbers of d are NaN until they have been waited for.
void multiply_async(const AsyncProduct& p, float* d, const uint32_t* own_rows = nullptr);
void begin_products();
void commit_products();
void wait_for_products(int groups_left);

}  // namespace simt
