// The part of cuBLASLt's C interface that we call. It is declared here, so that a build needs neither
// NVIDIA's headers nor the library, and programs with other kernels run without it. Names, values and layouts
// are those of cublasLt.h, and a test compares them. Source:
// https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api
#pragma once
#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "planner/base/result.h"

namespace stw::cuda::cublaslt {

using Status = int;    // cublasStatus_t
using Handle = void*;  // also the opaque descriptors
struct Algorithm {
  uint64_t data[8];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status status;
  float waves;
  int reserved[4];
};

inline constexpr Status success = 0, invalid_value = 7, architecture_mismatch = 8, not_supported = 15;
inline constexpr int compute_32f = 68;
inline constexpr int32_t not_transposed = 0, transposed = 1;  // cublasOperation_t
// Attributes of a product.
inline constexpr int transpose_a = 3, transpose_b = 4, epilogue = 7, bias_pointer = 8, bias_type = 26;
inline constexpr uint32_t epilogue_bias = 4;
// Attributes of a preference. The alignments of b and c are the two numbers between those of a and d.
inline constexpr int max_workspace = 1, reduction_schemes = 3, alignment_a = 5, alignment_d = 8;
inline constexpr int split_k = 2;  // attribute of an algorithm

#define STW_CUBLASLT_FUNCTIONS(X)                                                                         \
  X(GetVersion, size_t, ())                                                                               \
  X(GetStatusName, const char*, (Status))                                                                 \
  X(Create, Status, (Handle*))                                                                            \
  X(Destroy, Status, (Handle))                                                                            \
  X(MatmulDescCreate, Status, (Handle*, int compute, cudaDataType scale))                                 \
  X(MatmulDescDestroy, Status, (Handle))                                                                  \
  X(MatmulDescSetAttribute, Status, (Handle, int attribute, const void*, size_t bytes))                   \
  X(MatrixLayoutCreate, Status, (Handle*, cudaDataType, uint64_t rows, uint64_t columns, int64_t stride)) \
  X(MatrixLayoutDestroy, Status, (Handle))                                                                \
  X(MatmulPreferenceCreate, Status, (Handle*))                                                            \
  X(MatmulPreferenceDestroy, Status, (Handle))                                                            \
  X(MatmulPreferenceSetAttribute, Status, (Handle, int attribute, const void*, size_t bytes))             \
  X(MatmulAlgoGetHeuristic, Status,                                                                       \
    (Handle, Handle product, Handle a, Handle b, Handle c, Handle d, Handle preference, int wanted,       \
     HeuristicResult*, int* found))                                                                       \
  X(MatmulAlgoCheck, Status,                                                                              \
    (Handle, Handle product, Handle a, Handle b, Handle c, Handle d, const Algorithm*, HeuristicResult*)) \
  X(MatmulAlgoConfigGetAttribute, Status,                                                                 \
    (const Algorithm*, int attribute, void*, size_t bytes, size_t* written))                              \
  X(Matmul, Status,                                                                                       \
    (Handle, Handle product, const void* alpha, const void* a, Handle a_layout, const void* b,            \
     Handle b_layout, const void* beta, const void* c, Handle c_layout, void* d, Handle d_layout,         \
     const Algorithm*, void* workspace, size_t workspace_bytes, cudaStream_t))

struct Functions {
#define STW_CUBLASLT_MEMBER(name, Returned, arguments) Returned(*name) arguments;
  STW_CUBLASLT_FUNCTIONS(STW_CUBLASLT_MEMBER)
#undef STW_CUBLASLT_MEMBER
};

// Loads the library, which stays loaded. An empty path: libcublasLt.so.13 or .12 from the system's search
// path. Errors: unsupported, with what to install. Any thread.
Result<Functions> load(const std::string& path);

}  // namespace stw::cuda::cublaslt
