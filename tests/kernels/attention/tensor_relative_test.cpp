// Attention with relative positions on the tensor cores of a device or of the emulated machine, against the
// reference in double precision. No split of the batch changes a bit. dqkv has the same bits whether or not
// the table is trained. What the tensor cores do not support has the CPU's bits.
#include "tests/kernels/attention/relative_cases.h"

namespace stw::kernels::test::relative_test {
namespace {

Shape on_tensor_cores(Shape s, ProductKernels products = ProductKernels::tensor) {
  s.products = products;
  return s;
}

// dQ, dK or dV, all samples.
template <class Values>
auto part_of(const Shape& s, const Values& dqkv, int part) {
  std::vector<std::decay_t<decltype(dqkv[0])>> values;
  for (int64_t row = 0; row < s.samples * s.rows; ++row)
    for (int64_t i = 0; i < s.out_width(); ++i)
      values.push_back(dqkv[static_cast<size_t>(row * s.width() + part * s.out_width() + i)]);
  return values;
}

void check_on_tensor_cores(Shape s, uint64_t seed) {
  s = on_tensor_cores(s);
  SCOPED_TRACE(testing::Message() << s);
  const Table& table = *cuda_table();
  const Inputs in = inputs_of(s, seed);
  const Result expected = expected_of(s, doubles(in.qkv), doubles(in.table), doubles(in.dout));
  const Got first = compute(table, s, in, 1, s.samples);
  const double limit = tolerance(s.dtype);  // For one rounding to 16 bits; P and dS are rounded too.
  EXPECT_LE(relative_error(first.out.floats(), expected.out), limit);
  for (int part = 0; part < 3; ++part)
    EXPECT_LE(relative_error(part_of(s, first.dqkv.floats(), part), part_of(s, expected.dqkv, part)),
              2 * limit)
        << "part " << part;
  EXPECT_LE(relative_error(first.dtable, expected.dtable), 2 * limit);
  EXPECT_TRUE(same_bits(compute(table, s, in, 1, s.samples, false).dqkv, first.dqkv)) << "frozen";
  EXPECT_TRUE(same(compute(table, s, in, 1, 1), first)) << "one by one";
  for (const ProductKernels products : tensor_kernels())
    EXPECT_TRUE(same(compute(table, on_tensor_cores(s, products), in, 1, 2), first));
}

TEST(TensorRelativePositions, AgreeWithDoublePrecision) {
  uint64_t seed = 100;
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const auto& [keys, queries] : {std::pair{true, true}, {true, false}, {false, true}}) {
      check_on_tensor_cores({2, 70, 2, 64, 80, 0, keys, queries, 0, dtype}, ++seed);
      check_on_tensor_cores({3, 33, 2, 16, 6, 6, keys, queries, 0.2f, dtype}, ++seed);
    }
}

// Distances beyond the table's reach, all blocks of a head, several tiles of one block.
TEST(TensorRelativePositions, LongSamples) {
  check_on_tensor_cores({1, 300, 1, 64, 64, 64, true, true, 0, DType::bf16}, 151);
  check_on_tensor_cores({1, 390, 1, 40, 400, 0, true, true, 0.1f, DType::f16}, 152);
  check_on_tensor_cores({1, 450, 1, 64, 9, 8, true, true, 0, DType::f16}, 153);
  check_on_tensor_cores({2, 2, 1, 8, 2, 0, true, true, 0, DType::bf16}, 154);
}

// Documents that begin and end at all places of tiles, and documents of one row.
TEST(TensorRelativePositions, Documents) {
  check_on_tensor_cores({2, 150, 2, 24, 24, 16, true, true, 0.1f, DType::bf16, {1, 63, 65, 21, 64, 85, 1}},
                        161);
  check_on_tensor_cores({2, 150, 1, 64, 200, 0, true, true, 0, DType::f16, {150, 5, 5, 130, 10}}, 162);
  check_on_tensor_cores({1, 330, 1, 64, 200, 64, true, true, 0, DType::bf16, {20, 290, 1, 1, 18}}, 163);
}

TEST(TensorRelativePositions, LeaveUnsupportedShapesToOtherKernels) {
  for (const Shape& s : {Shape{1, 70, 2, 16, 20, 0, true, true, 0, DType::f32},
                         {1, 40, 1, 72, 20, 0, true, true, 0, DType::bf16},
                         {1, 40, 1, 12, 20, 0, true, true, 0, DType::f16}}) {
    const Inputs in = inputs_of(s, 171);
    const Got expected = compute(*tables()[0].table, s, in, 1, 1);
    for (const ProductKernels products : tensor_kernels())
      EXPECT_TRUE(same(compute(*cuda_table(), on_tensor_cores(s, products), in, 1, 1), expected)) << s;
  }
}

}  // namespace
}  // namespace stw::kernels::test::relative_test
