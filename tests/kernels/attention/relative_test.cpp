// Attention with relative positions, against a naive reference in double precision whose gradients are
// compared with finite differences. Bits must be the same on every instruction set, for every number of
// threads and every split of the batch.
#include "tests/kernels/attention/relative_cases.h"

namespace stw::kernels::test::relative_test {
namespace {

void check(const Shape& s, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << s);
  const Inputs in = inputs_of(s, seed);
  const Result expected = expected_of(s, doubles(in.qkv), doubles(in.table), doubles(in.dout));
  const Got first = compute(*tables()[0].table, s, in, 1, s.samples);
  const double limit = tolerance(s.dtype);
  EXPECT_LE(relative_error(first.out.floats(), expected.out), limit);
  EXPECT_LE(relative_error(first.dqkv.floats(), expected.dqkv), limit);
  EXPECT_LE(relative_error(first.dtable, expected.dtable), limit);
  for (const NamedTable& named : tables())
    for (const int threads : {1, 3}) {
      EXPECT_TRUE(same(compute(*named.table, s, in, threads, s.samples), first))
          << named.name << " " << threads;
      EXPECT_TRUE(same(compute(*named.table, s, in, threads, 1), first)) << named.name << " one by one";
      EXPECT_TRUE(same_bits(compute(*named.table, s, in, threads, 2, false).dqkv, first.dqkv))
          << named.name << " frozen";
    }
}

TEST(RelativePositions, ReferenceGradientsAgreeWithFiniteDifferences) {
  for (const Shape& s : {Shape{2, 5, 2, 2, 3, 0, true, true, 0.3f}, Shape{1, 7, 1, 2, 4, 4, true, false},
                         Shape{1, 7, 1, 2, 4, 4, false, true, 0, DType::f32, {3, 4}}}) {
    const Inputs in = inputs_of(s, 1);
    const std::vector<double> qkv = doubles(in.qkv), table = doubles(in.table), dout = doubles(in.dout);
    const Result r = expected_of(s, qkv, table, dout);
    for (const bool of_table : {false, true}) {
      const std::vector<double>& gradient = of_table ? r.dtable : r.dqkv;
      std::vector<double> differences;
      for (size_t i = 0; i < gradient.size(); ++i) {
        const double step = 1e-6;
        double slope = 0;
        for (const double sign : {1.0, -1.0}) {
          std::vector<double> moved_qkv = qkv, moved_table = table;
          (of_table ? moved_table : moved_qkv)[i] += sign * step;
          const Result at = expected_of(s, moved_qkv, moved_table, {});
          for (size_t j = 0; j < dout.size(); ++j) slope += sign * at.out[j] * dout[j];
        }
        differences.push_back(slope / (2 * step));
      }
      EXPECT_LE(relative_error(differences, gradient), 1e-7) << s;
    }
  }
}

TEST(RelativePositions, AgreeWithDoublePrecision) {
  uint64_t seed = 1;
  for (const DType dtype : all_dtypes)
    for (const auto& [keys, queries] : {std::pair{true, true}, {true, false}, {false, true}}) {
      check({2, 70, 2, 16, 20, 0, keys, queries, 0.2f, dtype}, ++seed);
      check({3, 33, 3, 10, 6, 6, keys, queries, 0, dtype}, ++seed);
    }
}

// Distances beyond the table's reach, chunks of queries, and blocks of keys.
TEST(RelativePositions, LongSamples) {
  check({1, 270, 1, 8, 16, 16, true, true}, 51);
  check({1, 270, 1, 8, 300, 0, true, true, 0.1f}, 52);
  check({2, 2, 1, 4, 2, 0, true, true}, 53);
}

TEST(RelativePositions, Documents) {
  check({2, 150, 2, 18, 24, 16, true, true, 0.1f, DType::f32, {1, 63, 65, 21, 64, 86}}, 61);
  check({2, 150, 1, 16, 200, 0, true, true, 0, DType::bf16, {150, 5, 5, 130, 10}}, 62);
}

// As in AttentionOfBothSides.RowsWithoutAGradientChangeNoBit.
TEST(RelativePositions, RowsWithoutAGradientChangeNoBit) {
  for (const auto& [keys, queries] : {std::pair{true, true}, {true, false}, {false, true}}) {
    const Shape s{2, 150, 2, 18, 24, 16, keys, queries, 0.1f, DType::f32, {1, 63, 65, 21, 64, 86}};
    const AttentionShape rule = s.attention();
    Inputs in = inputs_of(s, 71), tiny = inputs_of(s, 71);
    for (int64_t row = 0; row < s.samples * s.rows; ++row)
      for (int64_t i = row * s.out_width(); rule.position_ids[row] > 0 && i < (row + 1) * s.out_width();
           ++i) {
        in.dout.set(i, i % 3 == 0 ? -0.0f : 0.0f);
        tiny.dout.set(i, 1e-30f);
      }
    for (const NamedTable& named : tables()) {
      const Got left_out = compute(*named.table, s, in, 2, s.samples),
                whole = compute(*named.table, s, tiny, 2, s.samples);
      int64_t others = 0;
      const auto compare = [&](float a, float b) {
        others += std::memcmp(&a, &b, sizeof a) != 0 && !(a == 0 && std::abs(b) < 1e-25f);
      };
      for (int64_t i = 0; i < in.qkv.count(); ++i) compare(left_out.dqkv.get(i), whole.dqkv.get(i));
      for (size_t i = 0; i < whole.dtable.size(); ++i) compare(left_out.dtable[i], whole.dtable[i]);
      EXPECT_EQ(others, 0) << s << " " << named.name;
    }
  }
}

}  // namespace
}  // namespace stw::kernels::test::relative_test
