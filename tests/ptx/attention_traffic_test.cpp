// Counts memory traffic and instructions of attention for each score that its rule keeps.
#include <algorithm>

#include "tests/kernels/attention/attention_cases.h"
#include "tests/ptx/machine.h"

namespace stw::kernels::test {
namespace {

// Traffic and instructions of attention and its gradient.
ptx::Traffic traffic_of(const AttentionShape& s) {
  const AttentionInputs in = inputs(s, 40);
  ptx::count_traffic(true);
  compute(*cuda_table(), s, in.qkv, in.dout, 1);
  ptx::count_traffic(false);
  ptx::Traffic sum;
  EXPECT_EQ(ptx::traffic().size(), 3u) << s;  // Forward, gradients of queries and of keys.
  for (const auto& [name, t] : ptx::traffic())
    sum.instructions += t.instructions, sum.least_sectors += t.least_sectors;
  return sum;
}

struct Counts {
  double instructions = 0, sectors = 0;
};  // The traffic of one score.

Counts counts_of(const AttentionShape& s) {
  int64_t scores = 0;
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t key = 0; key < s.rows; ++key) scores += s.sees(0, row, key);
  const ptx::Traffic sum = traffic_of(s);
  // least_sectors does not depend on the alignment of the operands.
  return {static_cast<double>(sum.instructions) / static_cast<double>(scores),
          static_cast<double>(sum.least_sectors) / static_cast<double>(scores)};
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

// The rows of a table for the distances of `rows` tokens: each distance has a row of its own.
std::vector<int32_t> rows_of_all_distances(int64_t rows) {
  std::vector<int32_t> list;
  for (int64_t d = 1 - rows; d < rows; ++d) list.push_back(static_cast<int32_t>(d + rows));
  return list;
}
// The 512 rows of DeBERTa-v3: distances to 128, then 127 buckets up to 511, as its authors compute them.
std::vector<int32_t> rows_of_log_buckets(int64_t rows) {
  std::vector<int32_t> list;
  for (int64_t d = 1 - rows; d < rows; ++d) {
    const auto size = static_cast<double>(std::abs(d));
    const double bucket =
        size <= 128 ? size : std::ceil(std::log(size / 128) / std::log(511.0 / 128) * 127) + 128;
    list.push_back(static_cast<int32_t>(std::clamp((d < 0 ? -bucket : bucket) + 256, 0.0, 511.0)));
  }
  return list;
}

// The traffic of one score with relative positions.
Counts counts_with(const AttentionShape& s, const std::vector<int32_t>& rows, int64_t table_rows,
                   bool trained) {
  const int64_t width = 2 * s.out_width();
  const AttentionInputs in = inputs(s, 40);
  Random random(41);
  const Buffer table = Buffer::normal(s.dtype, random, table_rows * width);
  std::vector<float> lse(static_cast<size_t>(s.rows)), gradient(static_cast<size_t>(table_rows * width));
  Buffer out(s.dtype, in.dout.count()), dqkv(s.dtype, in.qkv.count());
  AttentionArgs args = {};
  args.samples = 1, args.rows_per_sample = s.rows, args.products = s.products;
  args.query_heads = args.kv_heads = 1, args.head_dim = s.head_dim, args.scale = s.scale();
  args.relative = {.table = table.const_matrix(),
                   .table_rows = table_rows,
                   .has_keys = true,
                   .has_queries = true,
                   .rows = rows.data(),
                   .gradient = trained ? gradient.data() : nullptr};
  args.qkv = in.qkv.const_matrix(), args.out = out.matrix(), args.lse = lse.data();
  args.dout = in.dout.const_matrix(), args.dqkv = dqkv.matrix();
  ptx::count_traffic(true);
  run(cuda_table()->attention, args, 1, attention_workspace(args, 1));
  run(cuda_table()->attention_gradient, args, 1, attention_gradient_workspace(args, 1));
  ptx::count_traffic(false);
  const auto scores = static_cast<double>(s.rows * s.rows);
  Counts counts;
  for (const auto& [name, t] : ptx::traffic()) {
    counts.instructions += static_cast<double>(t.instructions) / scores;
    counts.sectors += static_cast<double>(t.least_sectors) / scores;
    std::printf("  %s: %.3f instructions and %.3f sectors\n", name.c_str(),
                static_cast<double>(t.instructions) / scores, static_cast<double>(t.least_sectors) / scores);
  }
  return counts;
}

// `most`: how many times the instructions and sectors of attention without positions are allowed.
void check_positions(const AttentionShape& s, const std::vector<int32_t>& rows, int64_t table_rows,
                     bool trained, const Counts& most) {
  const Counts plain = counts_of(s), counts = counts_with(s, rows, table_rows, trained);
  std::printf(
      "%s table: a score takes %.3f instructions and %.3f sectors, without positions %.3f and %.3f: %.2f and "
      "%.2f times\n",
      trained ? "trained" : "frozen", counts.instructions, counts.sectors, plain.instructions, plain.sectors,
      counts.instructions / plain.instructions, counts.sectors / plain.sectors);
  EXPECT_LE(counts.instructions, most.instructions * plain.instructions) << s;
  EXPECT_LE(counts.sectors, most.sectors * plain.sectors) << s;
}

// The table has a row for each distance, so blocks read as many rows as they ever do. A trained table takes
// another pass over the scores.
TEST(AttentionTraffic, OfRelativePositionsIsAFewTimesThatOfAttention) {
  const AttentionShape s = {1, 200, 1, 1, 64, false, 0, DType::bf16};
  check_positions(s, rows_of_all_distances(s.rows), 2 * s.rows, false, {2.1, 2.4});
  check_positions(s, rows_of_all_distances(s.rows), 2 * s.rows, true, {3.0, 4.0});
}

// The shape of DeBERTa-v3-base.
TEST(AttentionTraffic, OfRelativePositionsOnTensorCores) {
  const AttentionShape s = {1, 512, 1, 1, 64, false, 0, DType::bf16, {}, ProductKernels::tensor};
  check_positions(s, rows_of_log_buckets(s.rows), 512, false, {2.5, 2.5});
  check_positions(s, rows_of_log_buckets(s.rows), 512, true, {2.5, 2.5});
}

// A tile of padding, whose rows are documents of one row each, costs less than a tile that sees itself.
TEST(AttentionTraffic, PaddingCostsLessThanOneTile) {
  for (const ProductKernels products : {ProductKernels::tensor, ProductKernels::warpgroup}) {
    AttentionShape s = {1, 128, 1, 1, 64, true, 0, DType::bf16, position_ids_of({128}), products};
    const ptx::Traffic plain = traffic_of(s);
    s.rows = 256;
    s.position_ids.resize(256, 0);
    const ptx::Traffic padded = traffic_of(s);
    std::printf("%d: 128 rows take %.0f instructions and %.0f sectors, 128 rows of padding %.0f and %.0f\n",
                static_cast<int>(products), static_cast<double>(plain.instructions),
                static_cast<double>(plain.least_sectors),
                static_cast<double>(padded.instructions - plain.instructions),
                static_cast<double>(padded.least_sectors - plain.least_sectors));
    EXPECT_LE(2 * padded.instructions, 3 * plain.instructions);
    EXPECT_LE(2 * padded.least_sectors, 4 * plain.least_sectors);
  }
}

}  // namespace
}  // namespace stw::kernels::test
