// The loader of cuBLASLt with the real library, if it is installed (no GPU is needed); and
// src/cuda/cublaslt.h compared with NVIDIA's header.
#include <gtest/gtest.h>
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

#include "src/cuda/cublaslt.h"

namespace stw::cuda::cublaslt {
namespace {

TEST(Cublaslt, NamesAMissingLibrary) {
  const auto none = load("/nowhere/libcublasLt.so.13"), other = load("libdl.so.2");
  ASSERT_FALSE(none);
  ASSERT_FALSE(other);
  EXPECT_EQ(none.error().code, Code::unsupported);
  for (const char* part : {"/nowhere/libcublasLt.so.13", "libcublas-13-0", "LD_LIBRARY_PATH"})
    EXPECT_NE(none.error().message.find(part), std::string::npos) << none.error().message;
  EXPECT_NE(other.error().message.find("has no cublasLt"), std::string::npos) << other.error().message;
}

TEST(Cublaslt, HasAllFunctionsThatWeCall) {
  const auto functions = load("");
  if (!functions) GTEST_SKIP() << functions.error().message;
  const Functions& lt = *functions;
  EXPECT_GE(lt.GetVersion(), 120000u);
  EXPECT_STREQ(lt.GetStatusName(not_supported), "CUBLAS_STATUS_NOT_SUPPORTED");
  Handle product = nullptr, layout = nullptr, preference = nullptr;
  ASSERT_EQ(lt.MatmulDescCreate(&product, compute_32f, CUDA_R_32F), success);
  const float bias = 0;
  const float* const pointer = &bias;
  const int32_t type = CUDA_R_16BF;
  EXPECT_EQ(lt.MatmulDescSetAttribute(product, transpose_a, &transposed, sizeof transposed), success);
  EXPECT_EQ(lt.MatmulDescSetAttribute(product, transpose_b, &not_transposed, sizeof not_transposed), success);
  EXPECT_EQ(lt.MatmulDescSetAttribute(product, epilogue, &epilogue_bias, sizeof epilogue_bias), success);
  EXPECT_EQ(lt.MatmulDescSetAttribute(product, bias_pointer, &pointer, sizeof pointer), success);
  EXPECT_EQ(lt.MatmulDescSetAttribute(product, bias_type, &type, sizeof type), success);
  ASSERT_EQ(lt.MatrixLayoutCreate(&layout, CUDA_R_16BF, 64, 32, 64), success);
  ASSERT_EQ(lt.MatmulPreferenceCreate(&preference), success);
  const uint64_t none = 0;
  const uint32_t mask = 0, alignment = 16;
  EXPECT_EQ(lt.MatmulPreferenceSetAttribute(preference, max_workspace, &none, sizeof none), success);
  EXPECT_EQ(lt.MatmulPreferenceSetAttribute(preference, reduction_schemes, &mask, sizeof mask), success);
  for (int operand = alignment_a; operand <= alignment_d; ++operand)
    EXPECT_EQ(lt.MatmulPreferenceSetAttribute(preference, operand, &alignment, sizeof alignment), success);
  lt.MatmulPreferenceDestroy(preference);
  lt.MatrixLayoutDestroy(layout);
  lt.MatmulDescDestroy(product);
}

#if __has_include(<cublasLt.h>)
static_assert(CUBLAS_STATUS_SUCCESS == success && CUBLAS_STATUS_NOT_SUPPORTED == not_supported);
static_assert(CUBLAS_COMPUTE_32F == compute_32f && CUBLAS_OP_N == not_transposed &&
              CUBLAS_OP_T == transposed);
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == transpose_a && CUBLASLT_MATMUL_DESC_TRANSB == transpose_b);
static_assert(CUBLASLT_MATMUL_DESC_EPILOGUE == epilogue && CUBLASLT_EPILOGUE_BIAS == epilogue_bias);
static_assert(CUBLASLT_MATMUL_DESC_BIAS_POINTER == bias_pointer &&
              CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE == bias_type);
static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == max_workspace &&
              CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK == reduction_schemes);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == alignment_a &&
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == alignment_d);
static_assert(CUBLASLT_ALGO_CONFIG_SPLITK_NUM == split_k && CUBLASLT_REDUCTION_SCHEME_NONE == 0);
static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(Algorithm) &&
              sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(HeuristicResult));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == offsetof(HeuristicResult, status));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) ==
              offsetof(HeuristicResult, workspace_bytes));
#endif

}  // namespace
}  // namespace stw::cuda::cublaslt
