// The vocabulary of the CUDA kernels: CUDA C++ without <<<>>>, and PTX instructions as named functions. The
// same sources are also compiled as C++ for an emulated machine, so that they are tested without a GPU.
// There, tests/simt/simt.h is included first; it defines a counterpart of everything here.
//
// Kernels use nothing else of CUDA except thread and block indices, __syncthreads, __syncwarp, shuffles,
// votes and atomics on integers. Shared memory is declared by two macros, and two more control the unrolling
// of loops. Accesses of 8 and 16 bytes go through load_vector, store_vector and similar functions.
#pragma once
#include <initializer_list>

#include "kernels/contract/kernels.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>

#define STW_SHARED(T, name, count) __shared__ T name[count]
#define STW_DYNAMIC_SHARED(T, name)                                  \
  extern __shared__ __align__(16) unsigned char stw_dynamic_bytes[]; \
  T* const name = reinterpret_cast<T*>(stw_dynamic_bytes)

// An argument that a kernel indexes at run time. It is read in place. Without __grid_constant__, every thread
// would copy it to local memory first.
#define STW_CONSTANT const __grid_constant__

// Stands before a loop whose counter must become a constant, so that the arrays that it indexes live in
// registers.
#define STW_UNROLL _Pragma("unroll")
#define STW_ROLLED _Pragma("unroll 1")  // The opposite, for a long body that must not be duplicated.

namespace stw::kernels::cuda {

// Errors stay in the runtime until the caller asks for them (cudaGetLastError).
template <class... P, class... A>
void launch(const Launch& l, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
            A... arguments) {
  constexpr size_t default_shared_limit = 48 * 1024;
  // More bytes must be requested. Always requests the maximum, because another thread may be about to launch
  // the kernel with more bytes than this one.
  if (shared_bytes > default_shared_limit) {
    int device = 0, most = 0;
    cudaFuncAttributes now{};
    if (cudaFuncGetAttributes(&now, kernel) == cudaSuccess &&
        static_cast<size_t>(now.maxDynamicSharedSizeBytes) < shared_bytes &&
        cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess)
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           most - static_cast<int>(now.sharedSizeBytes));
  }
  kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(l.stream)>>>(static_cast<P>(arguments)...);
}
template <class T>
__device__ __forceinline__ T load_vector(const void* p) {
  return *static_cast<const T*>(p);
}
template <class T>
__device__ __forceinline__ void store_vector(void* p, T value) {
  *static_cast<T*>(p) = value;
}
// One access to shared or global memory, guaranteed. In some loops, the compiler splits store_vector into
// accesses of 4 bytes.
__device__ __forceinline__ void store_shared16(float* p, float4 v) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(p));
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}
__device__ __forceinline__ void store_global16(float* p, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}
__device__ __forceinline__ void store_global16(uint16_t* p, uint4 v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x),
               "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ __forceinline__ void store_global8(uint16_t* p, uint2 v) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(v.x), "r"(v.y)
               : "memory");
}
// A barrier for the compiler: loads before this call stay before the code after it. Without it, the compiler
// moves a load to its first use, after the wait for another load.
__device__ __forceinline__ void fence_loads() { asm volatile("" ::: "memory"); }
// The same. In addition, computations with these floats stay after this call. If the compiler moved one
// before it, that computation would wait for its load and delay the other loads.
template <class Floats, int count>
__device__ __forceinline__ void fence_loads(Floats (&values)[count]) {
  fence_loads();
#pragma unroll
  for (int i = 0; i < count * static_cast<int>(sizeof(Floats) / sizeof(float)); ++i)
    asm volatile("" : "+f"(reinterpret_cast<float*>(values)[i]));
}

// cp.async: 16 bytes from global to shared memory, without registers and first-level cache.
__device__ __forceinline__ void copy_async16(void* shared_to, const void* from) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared_to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
// Writes sixteen bytes of zeros if `copy` is false; `from` is not read then.
__device__ __forceinline__ void copy_async16_or_zeros(void* shared_to, const void* from, bool copy) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared_to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(copy ? 16 : 0)
               : "memory");
}
// The same for 4 bytes, at any address of a float, through the first-level cache.
__device__ __forceinline__ void copy_async4_or_zeros(float* shared_to, const float* from, bool copy) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared_to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(copy ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int groups_left>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups_left) : "memory");
}

// ldmatrix: lane l gives the address of row l % 8 of matrix l / 8, which has 8 × 8 elements of 16 bits. From
// each of the four matrices it gets element (l / 4, 2·(l % 4)) and the next one in the row. The transposed
// form gives it element (2·(l % 4), l / 4) and the one below.
__device__ __forceinline__ void load_matrix4(uint32_t (&r)[4], const void* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void load_matrix4_transposed(uint32_t (&r)[4], const void* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}

// d (16, 8) += a (16, 16) · b (16, 8) on tensor cores. Fragments as in the PTX manual, mma.m16n8k16.
template <DType dtype>
__device__ __forceinline__ void multiply_add(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  static_assert(dtype != DType::f32);
  if constexpr (dtype == DType::bf16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Hides from the optimiser that the result is x. So the compiler computes addresses from the result after
// this point. Otherwise, it would compute them from x earlier and keep them in registers.
__device__ __forceinline__ int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Two numbers rounded to 16 bits, to nearest, ties to even. `low` is in the lower half.
template <DType dtype>
__device__ __forceinline__ uint32_t pack_halves(float low, float high) {
  static_assert(dtype != DType::f32);
  uint32_t packed;
  if constexpr (dtype == DType::bf16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// The two numbers of such a word, exactly.
template <DType dtype>
__device__ __forceinline__ float2 unpack_halves(uint32_t packed) {
  static_assert(dtype != DType::f32);
  if constexpr (dtype == DType::bf16)
    return {__uint_as_float(packed << 16), __uint_as_float(packed & 0xffff0000u)};
  float2 x;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
      : "=f"(x.x), "=f"(x.y)
      : "r"(packed));
  return x;
}

// The larger or the smaller of two numbers. If one of the two is NaN, the result is the other one. This is
// one instruction; a comparison and a selection need more than one because of NaN.
__device__ __forceinline__ float larger(float x, float y) { return fmaxf(x, y); }
__device__ __forceinline__ float smaller(float x, float y) { return fminf(x, y); }

// By the special function unit: 1 / x within 1 ulp, and 2^x within 2 ulp, with 0 for results below 2^-126.
__device__ __forceinline__ float approximate_inverse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace stw::kernels::cuda
#endif

#define STW_DEVICE static __device__ __forceinline__
#define STW_CLASS_DEVICE static constexpr __device__ __forceinline__  // A member of a class.

namespace stw::kernels::cuda {

inline constexpr float log2_of_e = 1.44269504f;  // For fast_exp2.
inline constexpr unsigned all_lanes = 0xffffffffu;
inline constexpr int largest_blocks = 65535;  // Limit of a grid whose blocks loop until no work is left.

STW_DEVICE int64_t thread_of_grid() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

// Calls body(tag) with the storage type as the constant tag.dtype, to choose an instance of a kernel.
template <DType t>
struct StoredAs {
  static constexpr DType dtype = t;
  static constexpr bool alike = true;
  STW_CLASS_DEVICE DType of(DType) { return t; }
};
template <class Body>
void for_dtype(DType t, const Body& body) {
  switch (t) {
    case DType::f32: return body(StoredAs<DType::f32>{});
    case DType::bf16: return body(StoredAs<DType::bf16>{});
    case DType::f16: return body(StoredAs<DType::f16>{});
  }
}
// The same for several operands. If all have the same storage type, which is usual, tag::of(an operand's
// dtype) is a constant: loads have no branch, and the compiler issues many before the first use. Else body
// gets StoredAsGiven.
struct StoredAsGiven {
  static constexpr bool alike = false;
  STW_CLASS_DEVICE DType of(DType given) { return given; }
};
template <class Body>
void for_dtypes(std::initializer_list<DType> types, const Body& body) {
  for (const DType t : types)
    if (t != *types.begin()) return body(StoredAsGiven{});
  for_dtype(*types.begin(), body);
}

}  // namespace stw::kernels::cuda
