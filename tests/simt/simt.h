// The emulated machine's counterpart of kernels/lanes/device.h: the keywords of CUDA C++ that kernels use,
// and the functions that device.h defines by PTX instructions. It is force-included before a .cu file that is
// compiled as C++.
#pragma once
#include <cuda_runtime_api.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "kernels/contract/kernels.h"
#include "tests/simt/fiber.h"
#include "tests/simt/fragments.h"
#include "tests/simt/machine.h"
#include "tests/simt/runtime.h"
#include "tests/simt/special.h"
#include "tests/simt/warpgroup.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#undef __forceinline__
#undef __restrict__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __forceinline__ inline  // A kernel inlined into one function takes five times as long to compile.
#define __restrict__ __restrict

#define threadIdx (::simt::place.thread)
#define blockIdx (::simt::place.block)
#define blockDim (::simt::place.block_extent)
#define gridDim (::simt::place.grid_extent)

// Each place in the source (and each instance of a template) is identified by the address of its static
// variable.
#define STW_SHARED(T, name, count) \
  static char name##_key;          \
  T* const name = static_cast<T*>(::simt::shared(&name##_key, sizeof(T) * (count)))
#define STW_CONSTANT const
#define STW_UNROLL
#define STW_ROLLED
#define STW_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(::simt::dynamic_shared())

namespace simt {

template <class... P, class... A>
void launch_on(cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
               A... arguments) {
  // Arguments are copied at the launch, as on a device.
  std::tuple<P...> copied(static_cast<P>(arguments)...);
  const size_t shared_limit = take_shared_limit();
  enqueue(stream, [=]() mutable {
    struct Call {
      void (*kernel)(P...);
      std::tuple<P...>* arguments;
    } call{kernel, &copied};
    run(
        grid, block, shared_bytes,
        [](void* context) {
          auto* c = static_cast<Call*>(context);
          std::apply(c->kernel, *c->arguments);
        },
        &call, shared_limit);
  });
}

template <class T>
struct Sent {
  T value;
  int from;
};  // A lane's value, and the lane whose value it wants.

// One lane makes the exchange for all and accesses the others' stacks. The sanitizers do not check it.
template <class T>
SIMT_UNSEEN void deliver(uint32_t mask, void* const* in, void* const* out) {
  for (int l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    const int from = static_cast<const Sent<T>*>(in[l])->from;
    if (!(mask >> from & 1)) die("a shuffle from a lane that takes no part");
    *static_cast<T*>(out[l]) = static_cast<const Sent<T>*>(in[from])->value;
  }
}

template <class T>
T shuffle(uint32_t mask, T value, int from) {
  Sent<T> sent{value, from};
  T got{};
  collective(mask, deliver<T>, &sent, &got);
  return got;
}

SIMT_UNSEEN inline void vote(uint32_t mask, void* const* in, void* const* out) {
  uint32_t votes = 0;
  for (int l = 0; l < 32; ++l)
    if ((mask >> l & 1) && *static_cast<const int*>(in[l])) votes |= 1u << l;
  for (int l = 0; l < 32; ++l)
    if (mask >> l & 1) *static_cast<uint32_t*>(out[l]) = votes;
}

template <class T>
T aligned_load(const void* p) {
  if (reinterpret_cast<uintptr_t>(p) % alignof(T) != 0) die("a misaligned vector load");
  return *static_cast<const T*>(p);
}
template <class T>
void aligned_store(void* p, T value) {
  if (reinterpret_cast<uintptr_t>(p) % alignof(T) != 0) die("a misaligned vector store");
  *static_cast<T*>(p) = value;
}

// ldmatrix: lane l gives the address of row l % 8 of matrix l / 8; a lane gets two adjacent elements of each
// matrix.
struct MatrixRows {
  const void* row;
};
// Each lane reads its row itself, so that the sanitizers see it.
inline void touch_row(const void* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) die("a misaligned row of a matrix");
  for (int i = 0; i < 2; ++i) (void)static_cast<const volatile uint64_t*>(row)[i];
}
SIMT_UNSEEN inline void load_matrices(uint32_t, void* const* in, void* const* out) {
  for (int l = 0; l < 32; ++l)
    for (int m = 0; m < 4; ++m) {
      const auto* row = static_cast<const char*>(static_cast<const MatrixRows*>(in[8 * m + l / 4])->row);
      std::memcpy(static_cast<uint32_t*>(out[l]) + m, row + 4 * (l % 4), 4);
    }
}
// stmatrix before the store: the values that a lane writes to the row whose address it gives.
SIMT_UNSEEN inline void lines_of_matrices(uint32_t, void* const* in, void* const* out) {
  for (int l = 0; l < 32; ++l)
    for (int c = 0; c < 4; ++c)
      static_cast<uint32_t*>(out[l])[c] = static_cast<const uint32_t*>(in[4 * (l % 8) + c])[l / 8];
}
SIMT_UNSEEN inline void load_matrices_transposed(uint32_t, void* const* in, void* const* out) {
  for (int l = 0; l < 32; ++l)
    for (int m = 0; m < 4; ++m)
      for (int e = 0; e < 2; ++e) {  // Element (row 2·(l % 4) + e, column l / 4).
        const auto* row =
            static_cast<const char*>(static_cast<const MatrixRows*>(in[8 * m + 2 * (l % 4) + e])->row);
        std::memcpy(reinterpret_cast<char*>(static_cast<uint32_t*>(out[l]) + m) + 2 * e, row + 2 * (l / 4),
                    2);
      }
}

}  // namespace simt

inline void __syncthreads() { simt::barrier(0); }
inline int __syncthreads_or(int predicate) { return simt::barrier(predicate) != 0; }
inline int __syncthreads_count(int predicate) { return simt::barrier(predicate); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { simt::warp_barrier(mask); }
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const int lane = static_cast<int>(simt::lane());
  return simt::shuffle(mask, value, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with) {
  return simt::shuffle(mask, value, static_cast<int>(simt::lane()) ^ with);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by) {
  const int lane = static_cast<int>(simt::lane()), from = lane + static_cast<int>(by);
  return simt::shuffle(mask, value, from < 32 ? from : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by) {
  const int lane = static_cast<int>(simt::lane()), from = lane - static_cast<int>(by);
  return simt::shuffle(mask, value, from >= 0 ? from : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  uint32_t votes = 0;
  simt::collective(mask, simt::vote, &predicate, &votes);
  return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int atomicAdd(int* p, int x) { return __atomic_fetch_add(p, x, __ATOMIC_RELAXED); }
inline unsigned atomicAdd(unsigned* p, unsigned x) { return __atomic_fetch_add(p, x, __ATOMIC_RELAXED); }
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

namespace stw::kernels::cuda {

template <class... P, class... A>
void launch(const Launch& l, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
            A... arguments) {
  simt::launch_on(static_cast<cudaStream_t>(l.stream), kernel, grid, block, shared_bytes, arguments...);
}
template <class T>
T load_vector(const void* p) {
  return simt::aligned_load<T>(p);
}
template <class T>
void store_vector(void* p, T value) {
  simt::aligned_store<T>(p, value);
}
inline void fence_loads() {}
template <class Floats, int count>
void fence_loads(Floats (&)[count]) {}
inline void store_shared16(float* p, float4 v) { simt::aligned_store<float4>(p, v); }
inline void store_global16(float* p, float4 v) { simt::aligned_store<float4>(p, v); }
inline void store_global16(uint16_t* p, uint4 v) { simt::aligned_store<uint4>(p, v); }
inline void store_global8(uint16_t* p, uint2 v) { simt::aligned_store<uint2>(p, v); }
inline void copy_async16(void* shared_to, const void* from) {
  if ((reinterpret_cast<uintptr_t>(shared_to) | reinterpret_cast<uintptr_t>(from)) % 16 != 0)
    simt::die("a misaligned copy");
  simt::copy_later(shared_to, from, 16);
}
inline void copy_async16_or_zeros(void* shared_to, const void* from, bool copy) {
  alignas(16) static const char zeros[16] = {};
  copy_async16(shared_to, copy ? from : zeros);
}
inline void copy_async4_or_zeros(float* shared_to, const float* from, bool copy) {
  static const float zero = 0;
  simt::copy_later(shared_to, copy ? from : &zero, 4);
}
inline void commit_copies() { simt::commit_copies(); }
template <int groups_left>
void wait_copies() {
  simt::wait_for_copies(groups_left);
}
inline void load_matrix4(uint32_t (&r)[4], const void* row) {
  simt::MatrixRows rows{row};
  simt::touch_row(row);
  simt::collective(0xffffffffu, simt::load_matrices, &rows, r);
}
inline void load_matrix4_transposed(uint32_t (&r)[4], const void* row) {
  simt::MatrixRows rows{row};
  simt::touch_row(row);
  simt::collective(0xffffffffu, simt::load_matrices_transposed, &rows, r);
}
template <DType dtype>
void multiply_add(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  simt::Fragments f{a, b, d, dtype == DType::bf16};
  simt::collective(0xffffffffu, simt::multiply_fragments, &f, nullptr);
}
// Only kernels with wgmma use addresses, also in blocks without a product.
inline uint32_t shared_address(const void* p) {
  simt::use_warpgroups();
  return simt::first_shared_byte + static_cast<uint32_t>(static_cast<const char*>(p) -
                                                         static_cast<const char*>(simt::dynamic_shared()));
}
inline void fence_async_proxy() { simt::fence_copies(); }
inline float volatile_add(float x, float y) { return x + y; }
inline void store_matrix4(void* row, const uint32_t (&r)[4]) {
  uint32_t line[4];
  simt::collective(0xffffffffu, simt::lines_of_matrices, const_cast<uint32_t*>(r), line);
  simt::aligned_store<uint4>(row, {line[0], line[1], line[2], line[3]});
}
inline void begin_products() { simt::begin_products(); }
inline void commit_products() { simt::commit_products(); }
template <int groups_left>
void wait_products() {
  simt::wait_for_products(groups_left);
}
template <int count, int numbers>
void fence_accumulators(float (&)[count][numbers]) {}
inline void force_evaluation(void*, uint32_t) {}
template <DType dtype, bool a_transposed, bool b_transposed, bool added = true, int fragments>
void multiply_add_async(float (&d)[fragments][4], uint64_t a, uint64_t b) {
  simt::multiply_async({a, b, 8 * fragments, a_transposed, b_transposed, dtype == DType::bf16, added}, d[0]);
}
template <DType dtype, bool b_transposed, int fragments>
void multiply_add_async(float (&d)[fragments][4], const uint32_t (&a)[4], uint64_t b) {
  simt::multiply_async({0, b, 8 * fragments, false, b_transposed, dtype == DType::bf16, true, true}, d[0], a);
}
inline int opaque(int x) { return x; }
template <DType dtype>
uint32_t pack_halves(float low, float high) {
  return simt::half_bits(low, dtype == DType::bf16) |
         static_cast<uint32_t>(simt::half_bits(high, dtype == DType::bf16)) << 16;
}
template <DType dtype>
float2 unpack_halves(uint32_t packed) {
  const auto half = [&](int shift) {
    return simt::half_value(static_cast<uint16_t>(packed >> shift), dtype == DType::bf16);
  };
  return {half(0), half(16)};
}
inline float larger(float x, float y) { return std::fmax(x, y); }
inline float smaller(float x, float y) { return std::fmin(x, y); }
inline float approximate_inverse(float x) { return simt::approximate_inverse(x); }
inline float fast_exp2(float x) { return simt::approximate_exp2(x); }

}  // namespace stw::kernels::cuda
