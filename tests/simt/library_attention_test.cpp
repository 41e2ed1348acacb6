// Attention by the vendor's library on the emulated machine: the calls that go to it, their number, and their
// results.
#include "tests/kernels/attention/attention_cases.h"
#include "tests/simt/runtime.h"

namespace stw::kernels::test {
namespace {

struct Case {
  AttentionShape shape;
  uint64_t calls;
};

TEST(EmulatedAttention, AsksTheLibraryForParts) {
  const DType bf16 = DType::bf16;
  for (const auto& [shape, calls] :
       {Case{{3, 9, 2, 1, 8, true, 0, bf16}, 2}, Case{{9, 6, 32, 8, 8, true, 0, bf16}, 3},
        Case{{2, 5, 300, 300, 8, true, 0, bf16}, 5}, Case{{2, 9, 2, 1, 8, true, 0, DType::f32}, 0},
        Case{{2, 9, 2, 1, 8, true, 0.1f, bf16}, 0}}) {
    AttentionShape s = shape;
    s.products = ProductKernels::library;
    Random random(3);
    const Buffer qkv = Buffer::normal(s.dtype, random, s.samples * s.rows * s.width()),
                 dout = Buffer::normal(s.dtype, random, s.samples * s.rows * s.out_width());
    const uint64_t before = simt::library_attentions;
    compute(*cuda_table(), s, qkv, dout, 1);
    EXPECT_EQ(simt::library_attentions - before, calls) << s;
    const int64_t descriptors = simt::cudnn_descriptors;
    compute(*cuda_table(), s, qkv, dout, 1);
    EXPECT_EQ(simt::cudnn_descriptors, descriptors) << "a call keeps descriptors, " << s;
  }
}

// The number of rows is new, because a library that has answered once for a shape is not asked again.
TEST(EmulatedAttention, UsesOurKernelsIfTheLibraryHasNoEngine) {
  AttentionShape s{2, 77, 4, 2, 24, true, 0, DType::bf16};
  Random random(4);
  const Buffer qkv = Buffer::normal(s.dtype, random, s.samples * s.rows * s.width()),
               dout = Buffer::normal(s.dtype, random, s.samples * s.rows * s.out_width());
  s.products = ProductKernels::tensor;
  const Outcome own = compute(*cuda_table(), s, qkv, dout, 1);
  s.products = ProductKernels::library;
  const uint64_t before = simt::library_attentions;
  simt::faults.declines_attention = true;
  EXPECT_TRUE(same(compute(*cuda_table(), s, qkv, dout, 1), own));
  simt::faults.declines_attention = false;
  EXPECT_TRUE(same(compute(*cuda_table(), s, qkv, dout, 1), own)) << "the library was asked again";
  EXPECT_EQ(simt::library_attentions, before);
}

// With library_or_warpgroup, warpgroups compute the attention that the library declines. Their bits differ
// from those of mma.sync.
TEST(EmulatedAttention, UsesWarpgroupsIfTheLibraryHasNoEngine) {
  AttentionShape s{1, 79, 2, 1, 64, true, 0, DType::bf16};
  Random random(5);
  const Buffer qkv = Buffer::normal(s.dtype, random, s.samples * s.rows * s.width()),
               dout = Buffer::normal(s.dtype, random, s.samples * s.rows * s.out_width());
  const auto by = [&](ProductKernels products) {
    s.products = products;
    return compute(*cuda_table(), s, qkv, dout, 1);
  };
  const Outcome own = by(ProductKernels::warpgroup);
  EXPECT_FALSE(same(by(ProductKernels::tensor), own));
  const uint64_t before = simt::library_attentions;
  simt::faults.declines_attention = true;
  EXPECT_TRUE(same(by(ProductKernels::library_or_warpgroup), own));
  simt::faults.declines_attention = false;
  EXPECT_EQ(simt::library_attentions, before);
  s.rows = 80;  // The library supports this.
  const Buffer more = Buffer::normal(s.dtype, random, s.rows * s.width()),
               dmore = Buffer::normal(s.dtype, random, s.rows * s.out_width());
  compute(*cuda_table(), s, more, dmore, 1);
  EXPECT_GT(simt::library_attentions, before);
}

}  // namespace
}  // namespace stw::kernels::test
