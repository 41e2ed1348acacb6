// gradient_sum compared bit by bit with sums in fp32, term after term, on every instruction set and on
// devices. Sums have any number of terms, and may be written over any of them.
#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::gradient_sum_test {
namespace {

TEST(GradientSum, AddsInOrder) {
  Random random(3);
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t count : {1, 15, 16, 33, 1000, 4096, 40001})
      for (const int terms : {1, 2, 3, 4, 5, 8, 9, 12, 31, 32}) {
        if (count > 4096 && terms % 4 != 0) continue;
        std::vector<Buffer> all;
        // Terms differ in size, so that the bits show the order of the additions.
        for (int k = 0; k < terms; ++k)
          all.push_back(Buffer::normal(dtype, random, count, k % 3 == 0 ? 100 : 1));
        Buffer expected(dtype, count);
        for (int64_t i = 0; i < count; ++i) {
          float sum = all[0].get(i);
          for (int k = 1; k < terms; ++k) sum += all[k].get(i);
          expected.set(i, sum);
        }
        const int into = terms / 3;  // The term that the sum overwrites.
        const std::vector<Buffer> sums = everywhere([&](const Table& table, int threads) {
          std::vector<Buffer> copies = all;
          Buffer apart(dtype, count);
          GradientSumArgs args{};
          args.count = count, args.dtype = dtype;
          for (const Buffer& term : copies) args.term[args.terms++] = term.const_matrix().data;
          args.sum = apart.matrix().data;
          run(table.gradient_sum, args, threads, 0);
          args.sum = copies[into].matrix().data;
          run(table.gradient_sum, args, threads, 0);
          return std::vector<Buffer>{apart, copies[into]};
        });
        EXPECT_TRUE(same_bits(sums[0], expected)) << name_of(dtype) << ", " << count << " of " << terms;
        EXPECT_TRUE(same_bits(sums[1], expected))
            << name_of(dtype) << ", " << count << " of " << terms << " in place";
      }
}

}  // namespace
}  // namespace stw::kernels::test::gradient_sum_test
