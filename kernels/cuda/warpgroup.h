// wgmma: matrix products by a warpgroup, four warps of a block that compute together from shared memory.
// Compute capability 9.0 only. tests/simt has a counterpart of everything here, as for device.h.
#pragma once
#include "kernels/lanes/device.h"

namespace stw::kernels::cuda {

// wgmma's descriptor of a matrix of 16-bit elements in shared memory (PTX ISA, "Matrix Descriptor Format").
// The matrix consists of atoms of eight lines of 128 bytes, at multiples of 1024 bytes; chunk c (16 bytes) of
// line l lies at place c ^ l % 8, the 128-byte swizzle. Lines run along k, or (transposed) along the rows of
// a or the columns of b. `stride`: bytes from eight lines to the next eight. `leading`: if transposed, bytes
// from 64 elements to the next 64. If not transposed, there is only one atom along k, and `leading` is not
// read.
static __host__ __device__ constexpr uint64_t matrix_at(uint32_t address, uint32_t leading, uint32_t stride) {
  constexpr uint64_t by_128_bytes = 1;
  return (address & 0x3ffff) >> 4 | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | by_128_bytes << 62;
}
// The same matrix, starting `bytes` later.
static __host__ __device__ constexpr uint64_t matrix_after(uint64_t matrix, uint32_t bytes) {
  return matrix + (bytes >> 4);
}

#if defined(__CUDACC__)
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// fence.proxy.async: makes this thread's writes and completed copies to shared memory visible to products
// after the next barrier.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// x + y by an add instruction that the compiler keeps, even if y is -0, which changes nothing. If products
// are in flight from one iteration of a loop to the next, ptxas requires that an instruction writes their
// accumulators on every path and that no code reads the bits of the accumulators. Otherwise it waits for each
// product (C7515 and C7517).
__device__ __forceinline__ float volatile_add(float x, float y) {
  float sum;
  asm volatile("add.rn.f32 %0, %1, %2;" : "=f"(sum) : "f"(x), "f"(y));
  return sum;
}

// stmatrix: four matrices of 8 × 8 16-bit elements, with the places and lanes of load_matrix4.
__device__ __forceinline__ void store_matrix4(void* row, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

// Before the first product of a group: makes the thread's earlier register writes visible to it.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for all groups except the last `groups_left`. Then the sums of these groups may be used, and their
// operands may be overwritten.
template <int groups_left>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups_left) : "memory");
}

// Called after wait_products and before the first use of the sums. The compiler does not know that the wait
// changes the sums; this function keeps it from moving a use before the wait.
template <int count, int numbers>
__device__ __forceinline__ void fence_accumulators(float (&sums)[count][numbers]) {
  STW_UNROLL
  for (int i = 0; i < count; ++i) STW_UNROLL
  for (int k = 0; k < numbers; ++k) asm volatile("" : "+f"(sums[i][k])::"memory");
}

// Forces `bits` to be computed before the code after this call. A store depends on them: it runs only if
// their sign is set, which must never happen. The assembler moves a wait for products before arithmetic that
// does not need the products, but not before a store.
__device__ __forceinline__ void force_evaluation(void* shared_place, uint32_t bits) {
  asm volatile("{.reg .pred below; setp.lt.s32 below, %1, 0; @below st.shared.b32 [%0], %1;}" ::"r"(
                   shared_address(shared_place)),
               "r"(bits)
               : "memory");
}

// d (64, 8·fragments) += a (64, 16) · b (16, 8·fragments), or d = a · b if not `added`. Warp w has rows
// [16·w, 16·w + 16); fragments are as in multiply_add. No code may access the sums, or an `a` in registers,
// until wait_products.
#define STW_TEN(t) \
  "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define STW_SUMS_32 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," STW_TEN(1) STW_TEN(2) "%30,%31}, "
#define STW_SUMS_64                                                             \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," STW_TEN(1) STW_TEN(2) STW_TEN(3) STW_TEN(4) \
      STW_TEN(5) "%60,%61,%62,%63}, "
#define STW_SUMS_96                                                                                   \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," STW_TEN(1) STW_TEN(2) STW_TEN(3) STW_TEN(4) STW_TEN(5) STW_TEN(6) \
      STW_TEN(7) STW_TEN(8) "%90,%91,%92,%93,%94,%95}, "
#define STW_SUMS_128                                                                                  \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9," STW_TEN(1) STW_TEN(2) STW_TEN(3) STW_TEN(4) STW_TEN(5) STW_TEN(6) \
      STW_TEN(7) STW_TEN(8) STW_TEN(9) STW_TEN(10) STW_TEN(11) "%120,%121,%122,%123,%124,%125,%126,%127}, "
#define STW_FRAGMENT(c, i) c(d[i][0]), c(d[i][1]), c(d[i][2]), c(d[i][3])
#define STW_FOUR(c, i) \
  STW_FRAGMENT(c, i), STW_FRAGMENT(c, i + 1), STW_FRAGMENT(c, i + 2), STW_FRAGMENT(c, i + 3)
#define STW_EIGHT(c, i) STW_FOUR(c, i), STW_FOUR(c, i + 4)
#define STW_SIXTEEN(c, i) STW_EIGHT(c, i), STW_EIGHT(c, i + 8)
#define STW_TWENTY_FOUR(c, i) STW_SIXTEEN(c, i), STW_EIGHT(c, i + 16)
#define STW_THIRTY_TWO(c, i) STW_SIXTEEN(c, i), STW_SIXTEEN(c, i + 16)
#define STW_WGMMA(added, shape, operands) \
  "{.reg .pred add; setp.eq.u32 add, " added ", 0; wgmma.mma_async.sync.aligned." shape " " operands ";}"
// `shape` without the type of a and b. `matrices`: numbers of the operands after the sums.
#define STW_MULTIPLY(shape, added, sums, matrices, sum_operands, ...)                                      \
  do {                                                                                                     \
    if constexpr (dtype == DType::bf16)                                                                    \
      asm volatile(STW_WGMMA(added, shape ".f32.bf16.bf16", sums matrices) : sum_operands : __VA_ARGS__);  \
    else asm volatile(STW_WGMMA(added, shape ".f32.f16.f16", sums matrices) : sum_operands : __VA_ARGS__); \
  } while (0)
#define STW_SHARED_MATRICES "l"(a), "l"(b), "n"(int{a_transposed}), "n"(int{b_transposed})
template <DType dtype, bool a_transposed, bool b_transposed, bool added = true, int fragments>
__device__ __forceinline__ void multiply_add_async(float (&d)[fragments][4], uint64_t a, uint64_t b) {
  static_assert(dtype != DType::f32 &&
                (fragments == 8 || fragments == 16 || fragments == 24 || (fragments == 32 && added)));
  if constexpr (fragments == 32)
    STW_MULTIPLY("m64n256k16", "0", STW_SUMS_128, "%128, %129, add, 1, 1, %130, %131",
                 STW_THIRTY_TWO("+f", 0), STW_SHARED_MATRICES);
  else if constexpr (fragments == 24 && !added)
    STW_MULTIPLY("m64n192k16", "1", STW_SUMS_96, "%96, %97, add, 1, 1, %98, %99", STW_TWENTY_FOUR("=f", 0),
                 STW_SHARED_MATRICES);
  else if constexpr (fragments == 24)
    STW_MULTIPLY("m64n192k16", "0", STW_SUMS_96, "%96, %97, add, 1, 1, %98, %99", STW_TWENTY_FOUR("+f", 0),
                 STW_SHARED_MATRICES);
  else if constexpr (fragments == 16 && added)
    STW_MULTIPLY("m64n128k16", "0", STW_SUMS_64, "%64, %65, add, 1, 1, %66, %67", STW_SIXTEEN("+f", 0),
                 STW_SHARED_MATRICES);
  else if constexpr (fragments == 16)
    STW_MULTIPLY("m64n128k16", "1", STW_SUMS_64, "%64, %65, add, 1, 1, %66, %67", STW_SIXTEEN("=f", 0),
                 STW_SHARED_MATRICES);
  else if constexpr (added)
    STW_MULTIPLY("m64n64k16", "0", STW_SUMS_32, "%32, %33, add, 1, 1, %34, %35", STW_EIGHT("+f", 0),
                 STW_SHARED_MATRICES);
  else
    STW_MULTIPLY("m64n64k16", "1", STW_SUMS_32, "%32, %33, add, 1, 1, %34, %35", STW_EIGHT("=f", 0),
                 STW_SHARED_MATRICES);
}
// The same if a warp has its rows of a in registers, as in multiply_add.
#define STW_ROWS_IN_REGISTERS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int{b_transposed})
template <DType dtype, bool b_transposed, int fragments>
__device__ __forceinline__ void multiply_add_async(float (&d)[fragments][4], const uint32_t (&a)[4],
                                                   uint64_t b) {
  static_assert(dtype != DType::f32 && (fragments == 8 || fragments == 16));
  if constexpr (fragments == 16)
    STW_MULTIPLY("m64n128k16", "0", STW_SUMS_64, "{%64,%65,%66,%67}, %68, add, 1, 1, %69",
                 STW_SIXTEEN("+f", 0), STW_ROWS_IN_REGISTERS);
  else
    STW_MULTIPLY("m64n64k16", "0", STW_SUMS_32, "{%32,%33,%34,%35}, %36, add, 1, 1, %37", STW_EIGHT("+f", 0),
                 STW_ROWS_IN_REGISTERS);
}
#undef STW_ROWS_IN_REGISTERS
#undef STW_SHARED_MATRICES
#undef STW_MULTIPLY
#undef STW_WGMMA
#undef STW_THIRTY_TWO
#undef STW_SIXTEEN
#undef STW_EIGHT
#undef STW_FOUR
#undef STW_FRAGMENT
#undef STW_SUMS_128
#undef STW_SUMS_64
#undef STW_SUMS_32
#undef STW_TEN
#endif

}  // namespace stw::kernels::cuda
