// Counts memory traffic and instructions of attention for each score that its rule keeps.
#include "tests/kernels/attention/attention_cases.h"
#include "tests/ptx/machine.h"

namespace stw::kernels::test {
namespace {

struct Counts {
  double instructions = 0, sectors = 0;
};  // The traffic of one score.

Counts counts_of(const AttentionShape& s) {
  const AttentionInputs in = inputs(s, 40);
  ptx::count_traffic(true);
  compute(*cuda_table(), s, in.qkv, in.dout, 1);
  const auto kernels = ptx::traffic();
  ptx::count_traffic(false);
  int64_t scores = 0;
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t key = 0; key < s.rows; ++key) scores += s.sees(0, row, key);
  Counts sum;
  for (const auto& [name, t] : kernels) {
    sum.instructions += static_cast<double>(t.instructions) / static_cast<double>(scores);
    // least_sectors does not depend on the alignment of the operands.
    sum.sectors += static_cast<double>(t.least_sectors) / static_cast<double>(scores);
  }
  EXPECT_EQ(kernels.size(), 3u) << s;  // Forward, gradients of queries and of keys.
  return sum;
}

// Blocks of keys that no row sees are skipped at both ends.
TEST(AttentionTraffic, OfBothSidesIsNoMoreForAScoreThanOfCausal) {
  for (const ProductKernels products :
       {ProductKernels::chain, ProductKernels::tensor, ProductKernels::warpgroup})
    for (int64_t window : {0, 65}) {
      if (window > 0 && products == ProductKernels::warpgroup) continue;  // mma.sync computes these.
      const int64_t rows = products == ProductKernels::chain ? 200 : 390;
      const AttentionShape causal = within(window, {1, rows, 1, 1, 64, true, 0, DType::bf16, {}, products});
      AttentionShape both = causal;
      both.causal = false;
      const Counts of_causal = counts_of(causal), of_both = counts_of(both);
      std::printf(
          "%d, window %d: a score takes %.3f instructions and %.3f sectors where causal, %.3f and %.3f on "
          "both sides\n",
          static_cast<int>(products), static_cast<int>(window), of_causal.instructions, of_causal.sectors,
          of_both.instructions, of_both.sectors);
      EXPECT_LE(of_both.instructions, of_causal.instructions) << both;
      EXPECT_LE(of_both.sectors, of_causal.sectors) << both;
    }
}

}  // namespace
}  // namespace stw::kernels::test
