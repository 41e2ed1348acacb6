// Compares the planner's bounds of scratch memory with the sizes that the kernels ask for.
#include "planner/graph/ops/workspace.h"

#include <gtest/gtest.h>

#include <random>

#include "kernels/cuda/workspace.h"
#include "kernels/contract/kernels.h"
#include "planner/graph/ops/cuda_workspace.h"

namespace stw {
namespace {

using kernels::DType;

class Workspace : public testing::Test {
 protected:
  int64_t size(int64_t most) {   // small ones as often as large ones
    const int64_t limit = int64_t{1} << random_() % 14;
    return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(std::min(limit, most)));
  }
  DType dtype() { return random_() % 2 ? DType::f32 : DType::bf16; }
  int threads() { return 1 + static_cast<int>(random_() % 64); }
  static Format format_of(kernels::DType t) {
    return t == kernels::DType::f32 ? Format::f32 : t == kernels::DType::bf16 ? Format::bf16 : Format::f16;
  }
  std::mt19937 random_{11};
  float buffer_ = 0;
};

TEST_F(Workspace, MatrixProducts) {
  for (int i = 0; i < 20000; ++i) {
    kernels::LinearArgs a{};
    a.rows = size(8192);
    a.rows_per_sample = a.rows;
    a.inputs = size(8192);
    a.parts = 1 + static_cast<int>(random_() % kernels::max_parts);
    a.transposed = random_() % 2;
    a.accumulate = random_() % 2;
    a.weight_dtype = dtype();
    a.gradient_dtype = random_() % 2 ? kernels::DType::bf16 : kernels::DType::f32;
    a.x = {&buffer_, dtype()};
    a.y = {&buffer_, dtype()};
    if (random_() % 2) a.addend = {&buffer_, dtype()};
    int64_t features = 0;
    for (int p = 0; p < a.parts; ++p) {
      a.part[p] = {&buffer_, random_() % 2 ? &buffer_ : nullptr, &buffer_, &buffer_, size(8192), 0};
      if (random_() % 4 == 0) a.part[p].weight_gradient = nullptr;   // frozen
      features += a.part[p].features;
    }
    const int n = threads();
    const Format x = format_of(a.x.dtype), y = format_of(a.y.dtype), gradient = format_of(a.gradient_dtype);
    ASSERT_LE(kernels::linear_workspace(a, n), workspace::linear(a.rows, a.inputs, features, y, n));
    ASSERT_LE(kernels::linear_input_gradient_workspace(a, n), workspace::linear_input_gradient(a.rows, a.inputs, features, x, n));
    uint64_t largest = 0;
    for (int p = 0; p < a.parts; ++p) {
      const int64_t height = a.transposed ? a.inputs : a.part[p].features, width = a.transposed ? a.part[p].features : a.inputs;
      if (a.part[p].weight_gradient)
        largest = std::max(largest, workspace::linear_weight_gradient(a.rows, height, width, gradient, n));
    }
    ASSERT_LE(kernels::linear_weight_gradient_workspace(a, n), largest)
        << a.rows << " " << a.inputs << " " << features << " parts " << a.parts;
    ASSERT_LE(kernels::linear_bias_gradient_workspace(a, n), workspace::linear_bias_gradient(a.rows, features, n));
  }
}

TEST_F(Workspace, Adapters) {
  for (int i = 0; i < 20000; ++i) {
    kernels::AdapterArgs a{};
    a.rows = size(8192);
    a.rows_per_sample = a.rows;
    a.rank = size(512);
    a.parts = 1 + static_cast<int>(random_() % kernels::max_parts);
    a.accumulate = random_() % 2;
    a.weight_dtype = dtype();
    a.low = {&buffer_, dtype()};
    a.y = {&buffer_, dtype()};
    int64_t widest = 0;
    for (int p = 0; p < a.parts; ++p) {
      a.part[p] = {&buffer_, random_() % 4 ? &buffer_ : nullptr, size(8192), a.width};
      a.width += a.part[p].features;
      widest = std::max(widest, a.part[p].features);
    }
    const int n = threads();
    const Format low = format_of(a.low.dtype), y = format_of(a.y.dtype);
    const auto shape = [&] { return testing::Message() << a.rows << " rows, rank " << a.rank << ", " << widest << " features, parts " << a.parts; };
    ASSERT_LE(kernels::adapter_workspace(a, n), workspace::adapter(a.rows, a.rank, widest, y, n)) << shape();
    ASSERT_LE(kernels::adapter_input_gradient_workspace(a, n), workspace::adapter_input_gradient(a.rows, a.rank, widest, low, n)) << shape();
    ASSERT_LE(kernels::adapter_weight_gradient_workspace(a, n), workspace::adapter_weight_gradient(a.rows, a.rank, widest, n)) << shape();
  }
}

TEST_F(Workspace, Attention) {
  for (int i = 0; i < 20000; ++i) {
    Attributes planned;
    planned.kv_heads = 1 + static_cast<int>(random_() % 8);
    planned.query_heads = planned.kv_heads * (1 + static_cast<int>(random_() % 8));
    planned.head_dim = 2 * (1 + static_cast<int>(random_() % 128));
    kernels::AttentionArgs a{};
    a.samples = size(64);
    a.rows_per_sample = size(8192);
    a.query_heads = planned.query_heads;
    a.kv_heads = planned.kv_heads;
    a.head_dim = planned.head_dim;
    a.causal = random_() % 2;
    a.dropout = random_() % 2 ? 0.1f : 0;
    a.qkv.dtype = a.out.dtype = a.dout.dtype = a.dqkv.dtype = dtype();
    const int n = threads();
    ASSERT_LE(kernels::attention_workspace(a, n), workspace::attention(planned, a.rows_per_sample, n))
        << a.rows_per_sample << " rows, heads " << a.query_heads << "/" << a.kv_heads << " of " << a.head_dim;
    ASSERT_LE(kernels::attention_gradient_workspace(a, n), workspace::attention_gradient(planned, a.rows_per_sample, n))
        << a.rows_per_sample << " rows, heads " << a.query_heads << "/" << a.kv_heads << " of " << a.head_dim;
    kernels::AttentionCachedArgs c{};
    c.rows = 1 + static_cast<int64_t>(random_() % 64);
    c.capacity = c.rows + size(8192);
    c.query_heads = planned.query_heads;
    c.kv_heads = planned.kv_heads;
    c.head_dim = planned.head_dim;
    c.qkv.dtype = c.out.dtype = c.key_cache.dtype = c.value_cache.dtype = dtype();
    ASSERT_LE(kernels::attention_cached_workspace(c, n), workspace::attention_cached(planned, c.rows, c.capacity, n));
  }
}

TEST_F(Workspace, RowsAndSums) {
  for (int i = 0; i < 5000; ++i) {
    const int n = threads();
    kernels::NormArgs norm{};
    norm.rows = size(8192);
    norm.rows_per_sample = size(norm.rows);
    norm.features = size(8192);
    norm.rms = random_() % 2;
    norm.weight_dtype = norm.x.dtype = norm.y.dtype = norm.dx.dtype = dtype();
    norm.weight_gradient = norm.bias_gradient = &buffer_;
    ASSERT_LE(kernels::norm_gradient_workspace(norm, n), workspace::norm_gradient(norm.rows));
    kernels::QkNormArgs heads{};
    heads.rows = norm.rows, heads.rows_per_sample = norm.rows_per_sample, heads.head_dim = static_cast<int>(size(512));
    heads.kv_heads = static_cast<int>(size(16)), heads.query_heads = heads.kv_heads * static_cast<int>(size(8));
    ASSERT_EQ(kernels::qk_norm_gradient_workspace(heads, n), workspace::qk_norm_gradient(heads.rows, heads.query_heads, heads.kv_heads));
    kernels::EmbeddingArgs embedding{};
    embedding.rows = size(8192);
    embedding.rows_per_sample = size(embedding.rows);
    embedding.features = size(8192);
    embedding.vocabulary = size(200000);
    ASSERT_LE(kernels::embedding_gradient_workspace(embedding, n), workspace::embedding_gradient(embedding.rows, embedding.vocabulary));
    kernels::CrossEntropyArgs entropy{};
    entropy.rows = size(8192);
    entropy.vocabulary = size(200000);
    entropy.gradient = random_() % 2;
    ASSERT_LE(kernels::cross_entropy_workspace(entropy, n), workspace::cross_entropy(entropy.rows, entropy.vocabulary, n));
    kernels::LossSumArgs loss{};
    loss.samples = size(8192);
    loss.rows_per_sample = size(8192);
    ASSERT_LE(kernels::loss_sum_workspace(loss, n), workspace::loss_sum(loss.samples));
    kernels::SquareSumArgs sum{};
    sum.count = size(8192) * size(8192);
    ASSERT_LE(kernels::square_sum_workspace({&sum, 1}, n), workspace::square_sum(static_cast<uint64_t>(sum.count)));
  }
}

TEST_F(Workspace, Updates) {
  for (int i = 0; i < 20000; ++i) {
    const int n = threads();
    kernels::UpdateArgs a{};
    const int64_t rows = size(8192);
    a.columns = size(8192);
    a.count = rows * a.columns;
    ASSERT_LE(kernels::muon_workspace(a, n), workspace::muon(rows, a.columns, n)) << rows << "x" << a.columns;
    ASSERT_EQ(kernels::adafactor_workspace(a, n), workspace::adafactor(a.count, a.columns)) << rows << "x" << a.columns;
    a.columns = 0;
    ASSERT_EQ(kernels::adafactor_workspace(a, n), workspace::adafactor(a.count, 0)) << a.count;
  }
  // The planner bounds a thread's scratch memory, and does not repeat the kernel's formula. For large
  // matrices the bound is tight.
  kernels::UpdateArgs large{};
  large.count = 4096 * 11008, large.columns = 11008;
  EXPECT_EQ(kernels::muon_workspace(large, 2), workspace::muon(4096, 11008, 2));
}

// The planner's scratch memory of the CUDA kernels is exact.
TEST_F(Workspace, OfCudaKernelsIsExact) {
  namespace cuda = kernels::cuda;
  for (int i = 0; i < 20000; ++i) {
    const int64_t samples = size(64), sequence = size(8192), rows = samples * sequence, features = size(8192);
    kernels::LinearArgs linear{};
    linear.rows = rows;
    linear.rows_per_sample = sequence;
    linear.inputs = size(8192);
    linear.parts = 1 + static_cast<int>(random_() % kernels::max_parts);
    int64_t biases = 0;   // of all biases
    for (int p = 0; p < linear.parts; ++p) {
      linear.part[p] = {&buffer_, nullptr, &buffer_, random_() % 4 ? &buffer_ : nullptr, size(8192), 0};
      if (linear.part[p].bias_gradient) biases += linear.part[p].features;
    }
    ASSERT_EQ(cuda::linear_workspace(linear), 0u);
    ASSERT_EQ(cuda::linear_input_gradient_workspace(linear), 0u);
    ASSERT_EQ(cuda::linear_weight_gradient_workspace(linear), 0u);
    ASSERT_EQ(cuda::linear_bias_gradient_workspace(linear), cuda_workspace::tile_sums(rows, sequence, biases));
    kernels::LinearArgs two = linear;
    two.further = &linear;
    ASSERT_EQ(cuda::linear_bias_gradient_workspace(two), cuda_workspace::tile_sums(rows, sequence, 2 * biases));
    two.input_bias_gradient = &buffer_;
    ASSERT_EQ(cuda::linear_input_gradient_workspace(two), cuda_workspace::tile_sums(rows, sequence, two.inputs));
    kernels::AdapterArgs adapter{};
    adapter.rows = rows, adapter.rows_per_sample = sequence, adapter.rank = size(512), adapter.parts = linear.parts;
    for (int p = 0; p < adapter.parts; ++p) adapter.part[p] = {&buffer_, &buffer_, linear.part[p].features, 0};
    ASSERT_EQ(cuda::adapter_workspace(adapter), 0u);
    ASSERT_EQ(cuda::adapter_input_gradient_workspace(adapter), 0u);
    ASSERT_EQ(cuda::adapter_weight_gradient_workspace(adapter), 0u);
    kernels::NormArgs norm{};
    norm.rows = rows, norm.rows_per_sample = sequence, norm.features = features;
    ASSERT_EQ(cuda::norm_gradient_workspace(norm), cuda_workspace::norm_gradient(rows, sequence, features));
    norm.biases = &linear;
    ASSERT_EQ(cuda::norm_gradient_workspace(norm), cuda_workspace::norm_gradient(rows, sequence, features) + cuda_workspace::tile_sums(rows, sequence, biases));
    kernels::QkNormArgs heads{};
    heads.rows = rows, heads.rows_per_sample = sequence, heads.head_dim = static_cast<int>(size(512));
    heads.kv_heads = static_cast<int>(size(16)), heads.query_heads = heads.kv_heads * static_cast<int>(size(8));
    ASSERT_EQ(cuda::qk_norm_gradient_workspace(heads),
              cuda_workspace::qk_norm_gradient(rows, sequence, heads.query_heads, heads.kv_heads, heads.head_dim));
    kernels::AttentionArgs attention{};
    attention.samples = samples, attention.rows_per_sample = sequence, attention.query_heads = 1 + static_cast<int>(random_() % 64);
    attention.kv_heads = attention.query_heads;
    ASSERT_EQ(cuda::attention_workspace(attention), 0u);
    const uint64_t own = cuda_workspace::attention_gradient(rows, attention.query_heads);
    ASSERT_EQ(cuda::attention_gradient_workspace(attention), own);
    const int group = 1 + static_cast<int>(random_() % 8);
    attention.query_heads *= group, attention.head_dim = 8 * (1 + static_cast<int>(random_() % 16));
    attention.products = kernels::ProductKernels::library;
    attention.qkv.dtype = attention.out.dtype = kernels::DType::bf16;
    ASSERT_EQ(cuda::attention_workspace(attention), cuda_workspace::library_attention);
    ASSERT_EQ(cuda::attention_gradient_workspace(attention),
              std::max(group * own, cuda_workspace::library_attention_gradient(samples, sequence, attention.query_heads, attention.kv_heads, attention.head_dim)));
    kernels::EmbeddingArgs embedding{};
    embedding.rows = rows;
    ASSERT_EQ(cuda::embedding_gradient_workspace(embedding), cuda_workspace::embedding_gradient(rows));
    ASSERT_EQ(cuda::cross_entropy_workspace({}), 0u);
    kernels::LossSumArgs loss{};
    loss.samples = samples;
    ASSERT_EQ(cuda::loss_sum_workspace(loss), cuda_workspace::loss_sum(samples));
    kernels::PreferenceArgs pairs{};
    pairs.samples = samples, pairs.rows_per_sample = sequence;
    ASSERT_EQ(cuda::preference_workspace(pairs), cuda_workspace::preference(samples, sequence));
    kernels::SquareSumArgs sum{};
    sum.count = rows;
    ASSERT_EQ(cuda::square_sum_workspace({&sum, 1}), workspace::square_sum(static_cast<uint64_t>(rows)));
    kernels::UpdateArgs update{};
    update.columns = features;
    update.count = size(8192) * features;
    ASSERT_EQ(cuda::muon_workspace(update), cuda_workspace::muon(update.count / features, features, false));
    update.dtype = DType::bf16;
    ASSERT_EQ(cuda::muon_workspace(update), cuda_workspace::muon(update.count / features, features, false));
    for (const kernels::ProductKernels products : {kernels::ProductKernels::tensor, kernels::ProductKernels::library}) {
      update.products = products;
      for (const DType parameter : {DType::f32, DType::bf16, DType::f16}) {
        update.dtype = parameter;
        ASSERT_EQ(cuda::muon_workspace(update), cuda_workspace::muon(update.count / features, features, parameter != DType::f32))
            << update.count / features << "x" << features;
      }
    }
    ASSERT_EQ(cuda::adafactor_workspace(update), 16 + workspace::adafactor(update.count, features));
    update.columns = 0;
    ASSERT_EQ(cuda::adafactor_workspace(update), 16 + workspace::adafactor(update.count, 0));
  }
}

}  // namespace
}  // namespace stw
