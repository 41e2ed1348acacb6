// Scratch memory: the buffers that kernels place in it never exceed the bytes that the formulas of
// kernels/contract give and the planner allocates.
#include <gtest/gtest.h>

#include <random>

#include "kernels/common/adafactor_layout.h"
#include "kernels/contract/attention_library.h"
#include "kernels/cpu/attention/attention_forward.h"
#include "kernels/cpu/attention/attention_gradient_layout.h"
#include "kernels/cpu/product/adapter_tiles.h"
#include "kernels/cpu/update/muon_layout.h"
#include "kernels/cuda/update/muon_layout.h"

namespace stw::kernels {
namespace {

class Workspace : public testing::Test {
 protected:
  int64_t size(int64_t most) {  // small ones as often as large ones
    const int64_t limit = int64_t{1} << random_() % 14;
    return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(std::min(limit, most)));
  }
  DType dtype() { return random_() % 2 ? DType::f32 : DType::bf16; }
  int threads() { return 1 + static_cast<int>(random_() % 64); }
  static uint64_t of(const TileGrid& grid, int threads) {
    return static_cast<uint64_t>(grid.thread_bytes) * static_cast<uint64_t>(threads);
  }
  std::mt19937 random_{11};
  float buffer_ = 0;
};

TEST_F(Workspace, MatrixProducts) {
  for (int i = 0; i < 20000; ++i) {
    LinearArgs a{};
    a.rows = size(8192);
    a.rows_per_sample = a.rows;
    a.inputs = size(8192);
    a.parts = 1 + static_cast<int>(random_() % max_parts);
    a.transposed = random_() % 2;
    a.gradient_dtype = dtype();
    a.x = {&buffer_, dtype()};
    a.y = {&buffer_, dtype()};
    for (int p = 0; p < a.parts; ++p)
      a.part[p] = {&buffer_, nullptr, random_() % 4 ? &buffer_ : nullptr, nullptr,
                   size(8192)};  // some are frozen
    const int n = threads();
    const auto shape = [&] {
      return testing::Message() << a.rows << " rows, " << a.inputs << " inputs, parts " << a.parts;
    };
    ASSERT_LE(of(linear_grid(a, n), n), linear_workspace(a, n)) << shape();
    ASSERT_LE(of(input_gradient_grid(a, n), n), linear_input_gradient_workspace(a, n)) << shape();
    for (int p = 0; p < a.parts; ++p) {
      const uint64_t bytes =
          a.part[p].weight_gradient == nullptr ? 0 : of(weight_gradient_grid(a, a.part[p].features, n), n);
      ASSERT_LE(bytes, linear_weight_gradient_workspace(a, n)) << shape();
    }
  }
}

// Frozen matrices of codes are multiplied in pieces, in the scratch memory of the whole
// (src/execute/coded_products.cpp).
TEST_F(Workspace, PiecesNeedNoMoreThanTheWhole) {
  for (int i = 0; i < 20000; ++i) {
    LinearArgs whole{};
    whole.rows = size(8192), whole.inputs = size(8192), whole.parts = 1;
    whole.x = {&buffer_, dtype()}, whole.y = {&buffer_, dtype()};
    whole.part[0].features = size(8192);
    LinearArgs piece = whole;
    piece.rows = size(whole.rows), piece.inputs = size(whole.inputs),
    piece.part[0].features = size(whole.part[0].features);
    const int n = threads();
    ASSERT_LE(linear_workspace(piece, n), linear_workspace(whole, n));
    ASSERT_LE(linear_input_gradient_workspace(piece, n), linear_input_gradient_workspace(whole, n));
  }
}

TEST_F(Workspace, Adapters) {
  for (int i = 0; i < 20000; ++i) {
    AdapterArgs a{};
    a.rows = size(8192);
    a.rows_per_sample = a.rows;
    a.rank = size(512);
    a.parts = 1 + static_cast<int>(random_() % max_parts);
    a.low = {&buffer_, dtype()};
    a.y = {&buffer_, dtype()};
    for (int p = 0; p < a.parts; ++p) a.part[p] = {&buffer_, &buffer_, size(8192), 0};
    const int n = threads();
    const auto shape = [&] {
      return testing::Message() << a.rows << " rows, rank " << a.rank << ", parts " << a.parts;
    };
    ASSERT_LE(of(adapter_grid(a, n), n), adapter_workspace(a, n)) << shape();
    ASSERT_LE(of(adapter_input_gradient_grid(a, n), n), adapter_input_gradient_workspace(a, n)) << shape();
    for (int p = 0; p < a.parts; ++p)
      ASSERT_LE(of(adapter_weight_gradient_grid(a, a.part[p].features, n), n),
                adapter_weight_gradient_workspace(a, n))
          << shape();
  }
}

// Each thread has one piece of scratch memory, and the formulas give the exact number of bytes.
TEST_F(Workspace, Attention) {
  for (int i = 0; i < 20000; ++i) {
    AttentionArgs a{};
    a.samples = size(64);
    a.rows_per_sample = size(8192);
    a.kv_heads = 1 + static_cast<int>(random_() % 8);
    a.query_heads = a.kv_heads * (1 + static_cast<int>(random_() % 8));
    a.head_dim = 2 * (1 + static_cast<int>(random_() % 128));
    if (random_() % 4 == 0) a.relative = {.table = {&a, DType::f32}, .table_rows = size(1024)};
    const int n = threads();
    const auto threads_of = [&](int64_t bytes) {
      return static_cast<uint64_t>(bytes) * static_cast<uint64_t>(n);
    };
    const auto shape = [&] {
      return testing::Message() << a.rows_per_sample << " rows, heads " << a.query_heads << "/" << a.kv_heads
                                << " of " << a.head_dim;
    };
    ForwardWorkspace forward;
    GradientWorkspace gradient;
    ASSERT_EQ(threads_of(carve_forward(a.rows_per_sample, a.head_dim, a.relative.table.data != nullptr,
                                       nullptr, &forward)),
              attention_workspace(a, n))
        << shape();
    ASSERT_EQ(threads_of(carve_gradient(a, nullptr, &gradient)), attention_gradient_workspace(a, n))
        << shape();
    AttentionCachedArgs c{};
    c.rows = size(64);
    c.capacity = c.rows + size(8192);
    c.head_dim = a.head_dim;
    ASSERT_EQ(threads_of(carve_forward(c.rows, c.head_dim, false, nullptr, &forward)),
              attention_cached_workspace(c, n))
        << shape();
  }
}

// Every part of a gradient by a library fits. If the library declines, our own kernels fit.
TEST_F(Workspace, AttentionByALibrary) {
  for (int i = 0; i < 20000; ++i) {
    AttentionArgs a{};
    a.samples = size(64);
    a.rows_per_sample = size(8192);
    a.kv_heads = 1 + static_cast<int>(random_() % 64);
    a.query_heads = a.kv_heads * (1 + static_cast<int>(random_() % 8));
    a.head_dim = 8 * (1 + static_cast<int>(random_() % 16));
    a.qkv.dtype = a.out.dtype = DType::bf16;
    const uint64_t own = cuda::attention_gradient_workspace(a);
    ASSERT_EQ(own, static_cast<uint64_t>(a.samples * a.rows_per_sample * a.query_heads) * 8);
    ASSERT_EQ(cuda::attention_workspace(a), 0u);
    a.products = ProductKernels::library;
    ASSERT_EQ(cuda::attention_workspace(a), static_cast<uint64_t>(attention_library_bytes));
    const uint64_t bytes = cuda::attention_gradient_workspace(a);
    ASSERT_GE(bytes, own);
    const AttentionShape shape = shape_of(a);
    const AttentionPart largest = largest_attention_part(shape);
    ASSERT_TRUE(largest.samples >= 1 && largest.samples <= a.samples && largest.kv_heads >= 1 &&
                largest.kv_heads <= a.kv_heads);
    for (const int64_t sample : {int64_t{0}, (a.samples - 1) / largest.samples * largest.samples})
      for (const int64_t head : {int64_t{0}, (a.kv_heads - 1) / largest.kv_heads * largest.kv_heads}) {
        const AttentionScratch s = attention_scratch(shape, attention_part_at(shape, largest, sample, head));
        ASSERT_TRUE(s.dots == 0 && s.dots <= s.keys && s.keys <= s.values && s.values <= s.library &&
                    s.library < s.bytes);
        ASSERT_LE(static_cast<uint64_t>(s.bytes), bytes);
      }
  }
}

TEST_F(Workspace, Updates) {
  for (int i = 0; i < 20000; ++i) {
    const int n = threads();
    UpdateArgs a{};
    const int64_t rows = size(8192);
    a.columns = size(8192);
    a.count = rows * a.columns;
    const auto shape = [&] { return testing::Message() << rows << "x" << a.columns; };
    ASSERT_LE(static_cast<uint64_t>(muon_layout(a, n).bytes), muon_workspace(a, n)) << shape();
    for (const ProductKernels products :
         {ProductKernels::chain, ProductKernels::tensor, ProductKernels::library})
      for (const DType parameter : {DType::f32, DType::bf16, DType::f16}) {
        a.products = products, a.dtype = parameter;
        ASSERT_EQ(static_cast<uint64_t>(cuda::muon_layout(a).bytes), cuda::muon_workspace(a)) << shape();
      }
    for (const int64_t columns : {a.columns, int64_t{0}}) {
      a.columns = columns;
      ASSERT_EQ(static_cast<uint64_t>(adafactor_layout(a).bytes), adafactor_workspace(a, n)) << shape();
      ASSERT_EQ(16 + adafactor_workspace(a, n), cuda::adafactor_workspace(a));
    }
  }
  // The scratch memory of a thread is bounded, and large matrices reach the bound.
  UpdateArgs large{};
  large.count = 4096 * 11008, large.columns = 11008;
  EXPECT_EQ(static_cast<uint64_t>(muon_layout(large, 2).bytes), muon_workspace(large, 2));
}

// The sums of a list's biases lie one after the other. Biases that are given as sums of tiles need no memory.
TEST_F(Workspace, SumsOfTiles) {
  for (int i = 0; i < 5000; ++i) {
    const int64_t samples = size(64), sequence = size(8192), rows = samples * sequence;
    const uint64_t tiles =
        static_cast<uint64_t>(samples) * static_cast<uint64_t>((sequence + token_tile - 1) / token_tile);
    LinearArgs linear{};
    linear.rows = rows, linear.rows_per_sample = sequence, linear.inputs = size(8192);
    linear.parts = 1 + static_cast<int>(random_() % max_parts);
    uint64_t biases = 0;  // features of all
    for (int p = 0; p < linear.parts; ++p) {
      linear.part[p] = {&buffer_, nullptr, &buffer_, random_() % 4 ? &buffer_ : nullptr, size(8192)};
      if (linear.part[p].bias_gradient) biases += static_cast<uint64_t>(linear.part[p].features);
    }
    ASSERT_EQ(cuda::linear_bias_gradient_workspace(linear), 4 * tiles * biases);
    LinearArgs two = linear;
    two.further = &linear;
    ASSERT_EQ(cuda::linear_bias_gradient_workspace(two), 8 * tiles * biases);
    two.tile_sums = &buffer_;
    ASSERT_EQ(cuda::linear_bias_gradient_workspace(two), 4 * tiles * biases);
    ASSERT_EQ(cuda::linear_input_gradient_workspace(linear), 0u);
    linear.input_bias_gradient = &buffer_;
    ASSERT_EQ(cuda::linear_input_gradient_workspace(linear),
              4 * tiles * static_cast<uint64_t>(linear.inputs));
    NormArgs norm{};
    norm.rows = rows, norm.rows_per_sample = sequence, norm.features = size(8192);
    const uint64_t own =
        (static_cast<uint64_t>(rows) * 8 + 15) / 16 * 16 + 8 * tiles * static_cast<uint64_t>(norm.features);
    ASSERT_EQ(cuda::norm_gradient_workspace(norm), own);
    norm.biases = &two;
    ASSERT_EQ(cuda::norm_gradient_workspace(norm), own + 4 * tiles * biases);
    QkNormArgs heads{};
    heads.rows = rows, heads.rows_per_sample = sequence, heads.head_dim = static_cast<int>(size(512));
    heads.kv_heads = static_cast<int>(size(16)),
    heads.query_heads = heads.kv_heads * static_cast<int>(size(8));
    ASSERT_EQ(cuda::qk_norm_gradient_workspace(heads),
              4 * tiles * static_cast<uint64_t>((heads.query_heads + heads.kv_heads) * heads.head_dim));
  }
  // Rows of a part of a sample, of whole samples, and of whole samples and a part of one.
  LinearArgs part{};
  part.rows_per_sample = 100, part.parts = 1;
  part.part[0] = {nullptr, nullptr, nullptr, &buffer_, 3};
  for (const auto& [rows, tiles] :
       {std::pair<int64_t, uint64_t>{64, 1}, {65, 2}, {100, 2}, {164, 3}, {165, 4}, {200, 4}}) {
    part.rows = rows;
    EXPECT_EQ(cuda::linear_bias_gradient_workspace(part), 4 * 3 * tiles) << rows;
  }
}

}  // namespace
}  // namespace stw::kernels
