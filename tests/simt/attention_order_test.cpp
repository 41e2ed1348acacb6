// Attention while the emulated machine runs its threads in other orders. No bit may change.
#include "tests/kernels/attention/relative_cases.h"
#include "tests/simt/orders.h"

namespace stw::kernels::test {
namespace {

// Expects the device's bits in every order, and the CPU's bits if chains are chosen.
void check_in_every_order(const AttentionShape& s, uint64_t seed) {
  const AttentionInputs in = inputs(s, seed);
  const Outcome expected = compute(s.products != ProductKernels::chain ? *cuda_table() : *tables()[0].table,
                                   s, in.qkv, in.dout, 1);
  EXPECT_TRUE(same(compute(*cuda_table(), s, in.qkv, in.dout, 1), expected)) << s;
  for (const simt::Options& order : simt::other_orders) {
    const simt::InOrder in_order(order);
    EXPECT_TRUE(same(compute(*cuda_table(), s, in.qkv, in.dout, 1), expected))
        << s << ", order " << static_cast<int>(order.order);
  }
}

TEST(AttentionOrder, ChainsStayTheSame) {
  check_in_every_order({1, 70, 4, 2, 17, true, 0.2f, DType::f32}, 500);
  check_in_every_order({1, 65, 1, 1, 80, false, 0, DType::bf16}, 501);
  check_in_every_order({2, 70, 2, 1, 16, true, 0, DType::f16, position_ids_of({3, 64, 3, 70})}, 502);
  check_in_every_order(within(20, {2, 70, 2, 1, 16, false, 0, DType::f16, position_ids_of({3, 64, 3, 70})}),
                       504);
}

TEST(AttentionOrder, TensorCoresStayTheSame) {
  check_in_every_order({1, 100, 2, 1, 64, true, 0.1f, DType::bf16, {}, ProductKernels::tensor}, 10);
  check_in_every_order({2, 70, 2, 2, 40, false, 0, DType::f16, {}, ProductKernels::tensor}, 10);
  check_in_every_order(within(20, {1, 100, 2, 1, 64, false, 0, DType::bf16, position_ids_of({3, 64, 33}),
                                   ProductKernels::tensor}),
                       10);
  check_in_every_order(with_alibi({1, 150, 2, 1, 64, true, 0, DType::bf16, {}, ProductKernels::warpgroup}),
                       10);
  check_in_every_order({1, 150, 1, 1, 64, true, 0.1f, DType::bf16, {}, ProductKernels::warpgroup}, 10);
  check_in_every_order({1, 150, 1, 1, 128, false, 0, DType::f16, {}, ProductKernels::warpgroup}, 10);
}

TEST(AttentionOrder, RelativePositionsStayTheSame) {
  using relative_test::Shape;
  for (const Shape& s :
       {Shape{1, 300, 1, 64, 64, 64, true, true, 0.1f, DType::bf16, {}, ProductKernels::tensor},
        {1, 100, 2, 24, 100, 0, true, false, 0, DType::f16, {}, ProductKernels::tensor},
        {1, 70, 1, 17, 20, 0, true, true, 0, DType::f32}}) {
    const relative_test::Inputs in = relative_test::inputs_of(s, 520);
    const relative_test::Got expected = relative_test::compute(*cuda_table(), s, in, 1, 1);
    for (const simt::Options& order : simt::other_orders) {
      const simt::InOrder in_order(order);
      EXPECT_TRUE(same(relative_test::compute(*cuda_table(), s, in, 1, 1), expected))
          << s << ", order " << static_cast<int>(order.order);
    }
  }
}

TEST(AttentionOrder, TheCacheStaysTheSame) {
  const AttentionShape s = {1, 70, 2, 1, 24, true, 0, DType::f16};
  const AttentionInputs in = inputs(s, 503);
  const Outcome whole = compute(*tables()[0].table, s, in.qkv, in.dout, 1);
  for (const simt::Options& order : simt::other_orders)
    for (int64_t largest : {1, 40}) {
      const simt::InOrder in_order(order);
      EXPECT_TRUE(same_bits(compute_cached(*cuda_table(), s, in.qkv, largest), whole.out))
          << "steps of " << largest;
    }
}

}  // namespace
}  // namespace stw::kernels::test
