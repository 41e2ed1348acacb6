// Attention, its gradient and cached attention. They are compared with a naive reference in double precision,
// whose gradient is compared with finite differences. Bits must be the same on every instruction set, for
// every number of threads and every split of the batch. A sample is one document, or several that do not see
// each other.
#include "tests/kernels/attention/attention_cases.h"

namespace stw::kernels::test::attention_test {
namespace {

// The emulated machine and instrumented code are slow: they run fewer rounds, and each kind of shape with one
// storage type only.
#if defined(STW_SANITIZED)
bool slow() { return true; }
#else
bool slow() { return emulated(); }
#endif
int rounds() { return slow() ? 5 : 16; }
bool takes(DType dtype, int kind) { return !slow() || dtype_of(kind) == dtype; }

void check(const AttentionShape& s, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << s);
  Random random(seed);
  const Buffer qkv = Buffer::normal(s.dtype, random, s.samples * s.rows * s.width(), 1.5);
  const Buffer dout = Buffer::normal(s.dtype, random, s.samples * s.rows * s.out_width());
  const Reference expected = reference(s, doubles(qkv), doubles(dout));
  const double limit = tolerance(s.dtype);
  const Outcome first = compute(*tables()[0].table, s, qkv, dout, 1);
  EXPECT_LE(relative_error(first.out.floats(), expected.out), limit);
  EXPECT_LE(relative_error(first.lse, expected.lse), 1e-5);
  if (s.rows > 1) {  // A row that sees only itself has dQ = dK = 0, up to rounding.
    for (int part = 0; part < 3; ++part) {
      std::vector<float> got;
      std::vector<double> want;
      const int64_t begin = part == 0 ? 0 : (s.query_heads + (part - 1) * s.kv_heads) * s.head_dim;
      const int64_t end = begin + (part == 0 ? s.query_heads : s.kv_heads) * s.head_dim;
      for (int64_t row = 0; row < s.samples * s.rows; ++row)
        for (int64_t i = row * s.width() + begin; i < row * s.width() + end; ++i)
          got.push_back(first.dqkv.get(i)), want.push_back(expected.dqkv[i]);
      EXPECT_LE(relative_error(got, want), limit) << "part " << part;
    }
  }
  for (const NamedTable& named : tables())
    for (int threads : {1, 2, 3, 5}) {
      if (named.table == tables()[0].table && threads != 3) continue;   // Slow; the others share its source.
      if (std::string(named.name) == "CUDA" && threads != 1) continue;  // It has its own threads.
      EXPECT_TRUE(same(compute(*named.table, s, qkv, dout, threads), first)) << named.name << " " << threads;
    }
  AttentionShape one = s;
  one.samples = 1;
  for (int64_t sample = 0; sample < s.samples && s.samples > 1; ++sample) {
    if (!s.position_ids.empty())
      one.position_ids.assign(&s.position_ids[sample * s.rows], &s.position_ids[sample * s.rows] + s.rows);
    const int64_t a = s.rows * s.width(), b = s.rows * s.out_width();
    const Outcome single = compute(*tables().back().table, one, slice(qkv, sample * a, a),
                                   slice(dout, sample * b, b), 2, sample);
    EXPECT_TRUE(same_bits(single.out, slice(first.out, sample * b, b)));
    EXPECT_TRUE(same_bits(single.dqkv, slice(first.dqkv, sample * a, a)));
  }
}

TEST(Attention, ReferenceGradientAgreesWithFiniteDifferences) {
  for (const AttentionShape& s :
       {AttentionShape{2, 5, 4, 2, 4, false, 0.3f, DType::f32},
        AttentionShape{2, 5, 4, 2, 4, true, 0.3f, DType::f32},
        AttentionShape{2, 5, 4, 2, 4, true, 0.3f, DType::f32, {0, 1, 0, 1, 2, 0, 0, 1, 2, 3}},
        within(2, {2, 5, 4, 2, 4, true, 0.3f, DType::f32, {0, 1, 0, 1, 2, 0, 1, 2, 3, 4}}),
        within(2, {2, 5, 4, 2, 4, false, 0.3f, DType::f32, {0, 1, 0, 1, 2, 0, 1, 2, 3, 4}}),
        with_alibi({2, 5, 4, 2, 4, true, 0.3f, DType::f32, {0, 1, 0, 1, 2, 0, 1, 2, 3, 4}})}) {
    Random random(1);
    const std::vector<double> qkv =
        doubles(Buffer::normal(DType::f32, random, s.samples * s.rows * s.width()));
    const std::vector<double> dout =
        doubles(Buffer::normal(DType::f32, random, s.samples * s.rows * s.out_width()));
    const Reference r = reference(s, qkv, dout);
    std::vector<double> differences;
    for (size_t i = 0; i < qkv.size(); ++i) {
      const double step = 1e-6;
      double slope = 0;
      for (double sign : {1.0, -1.0}) {
        std::vector<double> moved = qkv;
        moved[i] += sign * step;
        const Reference at = reference(s, moved, {});
        for (size_t j = 0; j < dout.size(); ++j) slope += sign * at.out[j] * dout[j];
      }
      differences.push_back(slope / (2 * step));
    }
    EXPECT_LE(relative_error(differences, r.dqkv), 1e-7);
  }
}

TEST(Attention, AgreesWithDoublePrecision) {
  uint64_t seed = 100;
  for (bool causal : {true, false})
    for (DType dtype : all_dtypes) {
      const AttentionShape shapes[] = {
          {1, 1, 1, 1, 2, causal, 0, dtype},      {2, 63, 2, 2, 32, causal, 0, dtype},
          {2, 64, 2, 1, 64, causal, 0.1f, dtype}, {1, 65, 4, 2, 16, causal, 0.25f, dtype},
          {1, 257, 2, 1, 18, causal, 0, dtype},   {1, 130, 1, 1, 256, causal, 0.1f, dtype}};
      for (int kind = 0; kind < 6; ++kind, ++seed)
        if (takes(dtype, kind)) check(shapes[kind], seed);
    }
}

TEST(Attention, AgreesOnRandomShapes) {
  Random random(77);
  for (int round = 0; round < rounds(); ++round) {
    const int kv_heads = static_cast<int>(random.between(1, 3));
    check({random.between(1, 3), random.between(1, 220), kv_heads * static_cast<int>(random.between(1, 3)),
           kv_heads, 2 * static_cast<int>(random.between(1, 40)), random.between(0, 1) == 1,
           random.between(0, 1) == 1 ? 0.2f : 0.0f, dtype_of(random.between(0, 2))},
          1000 + static_cast<uint64_t>(round));
  }
}

// Scores beyond the range of the exponential; a maximum that grows from block to block.
TEST(Attention, SurvivesLargeScores) {
  const AttentionShape s = {1, 200, 1, 1, 8, true, 0, DType::f32};
  Random random(5);
  Buffer qkv = Buffer::normal(s.dtype, random, s.rows * s.width());
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t d = 0; d < 8; ++d) {
      qkv.set(row * 24 + d, 8.0f);
      qkv.set(row * 24 + 8 + d, static_cast<float>(row % 3 == 0 ? row : -row));
    }
  const Buffer dout = Buffer::normal(s.dtype, random, s.rows * s.out_width());
  const Reference expected = reference(s, doubles(qkv), doubles(dout));
  for (const NamedTable& named : tables()) {
    const Outcome got = compute(*named.table, s, qkv, dout, 2);
    EXPECT_LE(relative_error(got.out.floats(), expected.out), 1e-5);
    EXPECT_LE(relative_error(got.lse, expected.lse), 1e-5);
    for (int64_t i = 0; i < got.dqkv.count(); ++i) ASSERT_TRUE(std::isfinite(got.dqkv.get(i)));
  }
}

const std::vector<int64_t> mixed_lengths = {1, 2, 63, 64, 65, 130};  // 325 rows.

TEST(AttentionOfDocuments, AgreesWithDoublePrecision) {
  std::vector<int64_t> samples = mixed_lengths;  // Two samples of mixed documents,
  samples.insert(samples.end(), mixed_lengths.rbegin(), mixed_lengths.rend());
  samples.push_back(325);                 // one that is a single document,
  samples.insert(samples.end(), 325, 1);  // one of single tokens.
  uint64_t seed = 300;
  for (DType dtype : all_dtypes) {
    const AttentionShape shapes[] = {
        {4, 325, 2, 1, 16, true, 0, dtype, position_ids_of(samples)},
        {4, 325, 2, 2, 18, true, 0.2f, dtype, position_ids_of(samples)},
        {1, 325, 4, 2, 32, true, 0.1f, dtype, position_ids_of({128, 5, 59, 128, 1, 4})},
        {2, 6, 2, 1, 8, true, 0, dtype, position_ids_of({1, 2, 3, 5, 1})}};
    for (int kind = 0; kind < 4; ++kind, ++seed)
      if (takes(dtype, kind)) check(shapes[kind], seed);
  }
}

TEST(AttentionOfDocuments, AgreesOnRandomLengths) {
  Random random(78);
  for (int round = 0; round < rounds(); ++round) {
    const int kv_heads = static_cast<int>(random.between(1, 2));
    AttentionShape s = {random.between(1, 3),
                        random.between(2, 420),
                        kv_heads * static_cast<int>(random.between(1, 3)),
                        kv_heads,
                        2 * static_cast<int>(random.between(1, 20)),
                        true,
                        random.between(0, 1) == 1 ? 0.2f : 0.0f,
                        dtype_of(random.between(0, 2))};
    const int64_t longest = random.between(2, s.rows);
    std::vector<int64_t> lengths;
    for (int64_t sample = 0; sample < s.samples; ++sample)
      for (int64_t left = s.rows; left > 0; left -= lengths.back())
        lengths.push_back(std::min(left, lengths.empty() ? 2 : random.between(1, longest)));
    s.position_ids = position_ids_of(lengths);
    check(s, 2000 + static_cast<uint64_t>(round));
  }
}

TEST(AttentionOfDocuments, OneDocumentASampleHasTheBitsWithoutDocuments) {
  for (DType dtype : all_dtypes)
    for (float dropout : {0.0f, 0.2f}) {
      if (!takes(dtype, dropout > 0 ? 1 : 0)) continue;
      const AttentionShape plain = {2, 300, 4, 2, 24, true, dropout, dtype};
      AttentionShape numbered = plain;
      numbered.position_ids = position_ids_of({300, 300});
      Random random(41);
      const Buffer qkv = Buffer::normal(dtype, random, plain.samples * plain.rows * plain.width(), 1.5);
      const Buffer dout = Buffer::normal(dtype, random, plain.samples * plain.rows * plain.out_width());
      for (const NamedTable& named : tables())
        EXPECT_TRUE(
            same(compute(*named.table, plain, qkv, dout, 2), compute(*named.table, numbered, qkv, dout, 2)))
            << plain << " " << named.name;
    }
}

// A token alone sees only itself: the output is its value, and the gradients of its query and key are 0.
TEST(AttentionOfDocuments, SingleTokensPassTheirValues) {
  const AttentionShape alone = {1, 200, 2, 2, 16, true, 0, DType::f32, std::vector<int32_t>(200, 0)};
  const AttentionShape by_window = within(1, {1, 200, 2, 2, 16, true, 0, DType::f32}),
                       by_both = within(1, {1, 200, 2, 2, 16, false, 0, DType::f32});
  Random random(42);
  const Buffer qkv = Buffer::normal(alone.dtype, random, alone.rows * alone.width());
  const Buffer dout = Buffer::normal(alone.dtype, random, alone.rows * alone.out_width());
  for (const NamedTable& named : tables())
    for (const AttentionShape& s : {alone, by_window, by_both}) {
      const Outcome got = compute(*named.table, s, qkv, dout, 2);
      for (int64_t row = 0; row < s.rows; ++row)
        for (int64_t i = 0; i < 32; ++i) {
          ASSERT_EQ(got.out.get(row * 32 + i), qkv.get(row * 96 + 64 + i)) << named.name;
          ASSERT_EQ(got.dqkv.get(row * 96 + 64 + i), dout.get(row * 32 + i)) << named.name;
          ASSERT_NEAR(got.dqkv.get(row * 96 + i), 0, 1e-5) << named.name;
          ASSERT_NEAR(got.dqkv.get(row * 96 + 32 + i), 0, 1e-5) << named.name;
        }
    }
}

// Rows [first, first + count) of every output of a sample.
struct DocumentOutcome {
  Buffer out, dqkv;
  std::vector<float> lse;
};
DocumentOutcome rows_of(const Outcome& from, const AttentionShape& s, int64_t first, int64_t count) {
  DocumentOutcome part{slice(from.out, first * s.out_width(), count * s.out_width()),
                       slice(from.dqkv, first * s.width(), count * s.width()),
                       {}};
  for (int64_t head = 0; head < s.query_heads; ++head)
    for (int64_t row = first; row < first + count; ++row) part.lse.push_back(from.lse[head * s.rows + row]);
  return part;
}

TEST(AttentionOfDocuments, AgreesWithEachDocumentAlone) {
  int kind = 0;
  for (DType dtype : all_dtypes) {
    const AttentionShape s = {1, 325, 4, 2, 24, ++kind % 2 == 1, 0, dtype, position_ids_of(mixed_lengths)};
    Random random(43);
    const Buffer qkv = Buffer::normal(dtype, random, s.rows * s.width());
    const Buffer dout = Buffer::normal(dtype, random, s.rows * s.out_width());
    const Outcome packed = compute(*tables().back().table, s, qkv, dout, 2);
    int64_t first = 0;
    for (int64_t length : mixed_lengths) {
      AttentionShape alone = s;
      alone.rows = length, alone.position_ids.clear();
      const Outcome expected =
          compute(*tables().back().table, alone, slice(qkv, first * s.width(), length * s.width()),
                  slice(dout, first * s.out_width(), length * s.out_width()), 2);
      const DocumentOutcome got = rows_of(packed, s, first, length);
      EXPECT_LE(relative_error(got.out.floats(), doubles(expected.out)), tolerance(dtype))
          << s << " " << length;
      EXPECT_LE(relative_error(got.dqkv.floats(), doubles(expected.dqkv)), tolerance(dtype))
          << s << " " << length;
      EXPECT_LE(relative_error(got.lse, {expected.lse.begin(), expected.lse.end()}), 1e-5)
          << s << " " << length;
      first += length;
    }
  }
}

// The contents of other documents, even NaN, change no bit of a document.
void check_documents_apart(AttentionShape s, const std::vector<int64_t>& lengths) {
  s.position_ids = position_ids_of(lengths);
  const float strange[] = {NAN, INFINITY, -INFINITY, 3e4f};
  Random random(44);
  const Buffer qkv = Buffer::normal(s.dtype, random, s.rows * s.width());
  const Buffer dout = Buffer::normal(s.dtype, random, s.rows * s.out_width());
  for (const NamedTable& named : tables()) {
    const Outcome before = compute(*named.table, s, qkv, dout, 2);
    int64_t first = 0;
    for (int64_t length : lengths) {
      Buffer other_qkv = qkv, other_dout = dout;
      const auto fill_others = [&](Buffer& values, int64_t width) {
        for (int64_t i = 0; i < values.count(); ++i)
          if (i < first * width || i >= (first + length) * width)
            values.set(i, strange[random.between(0, 3)]);
      };
      fill_others(other_qkv, s.width()), fill_others(other_dout, s.out_width());
      const Outcome after = compute(*named.table, s, other_qkv, other_dout, 2);
      const DocumentOutcome x = rows_of(before, s, first, length), y = rows_of(after, s, first, length);
      EXPECT_TRUE(same_bits(x.out, y.out)) << s << " " << named.name << " " << length;
      EXPECT_TRUE(same_bits(x.lse, y.lse)) << s << " " << named.name << " " << length;
      EXPECT_TRUE(same_bits(x.dqkv, y.dqkv)) << s << " " << named.name << " " << length;
      first += length;
    }
  }
}
TEST(AttentionOfDocuments, DoNotTouchEachOther) {
  const std::vector<int64_t> lengths = {1, 2, 63, 64, 65, 3, 130, 7, 90};
  for (DType dtype : all_dtypes) {
    for (float dropout : {0.0f, 0.2f})
      if (takes(dtype, dropout > 0 ? 2 : 0))
        check_documents_apart({1, 425, 2, 1, 18, true, dropout, dtype}, lengths);
    if (takes(dtype, 1)) check_documents_apart({1, 425, 2, 1, 18, false, 0.2f, dtype}, lengths);
    if (takes(dtype, 0)) check_documents_apart(within(40, {1, 425, 2, 1, 18, false, 0, dtype}), lengths);
  }
}

// Windows shorter and longer than the blocks of keys, of queries and of a task, beginning at all places in
// them.
TEST(AttentionOfWindows, AgreesWithDoublePrecision) {
  uint64_t seed = 400;
  for (DType dtype : all_dtypes) {
    const AttentionShape shapes[] = {
        within(3, {1, 150, 2, 1, 16, true, 0, dtype}),  within(2, {1, 130, 1, 1, 18, true, 0, dtype}),
        within(17, {2, 200, 4, 2, 16, true, 0, dtype}), within(64, {1, 325, 2, 2, 16, true, 0.2f, dtype}),
        within(65, {1, 257, 2, 1, 32, true, 0, dtype}), within(100, {2, 230, 3, 1, 20, true, 0.1f, dtype}),
        within(200, {1, 410, 2, 1, 16, true, 0, dtype})};
    for (int kind = 0; kind < 7; ++kind, ++seed)
      if (takes(dtype, kind)) check(shapes[kind], seed);
  }
}

TEST(AttentionOfWindows, AgreesOnRandomShapesAndDocuments) {
  Random random(79);
  for (int round = 0; round < rounds(); ++round) {
    const int kv_heads = static_cast<int>(random.between(1, 2));
    AttentionShape s = {random.between(1, 2),
                        random.between(2, 420),
                        kv_heads * static_cast<int>(random.between(1, 3)),
                        kv_heads,
                        2 * static_cast<int>(random.between(1, 16)),
                        true,
                        random.between(0, 1) == 1 ? 0.2f : 0.0f,
                        dtype_of(random.between(0, 2))};
    s.window = random.between(2, random.between(0, 1) == 1 ? 70 : s.rows);
    std::vector<int64_t> lengths;
    for (int64_t sample = 0; sample < s.samples; ++sample)
      for (int64_t left = s.rows; left > 0; left -= lengths.back())
        lengths.push_back(std::min(left, random.between(1, s.rows)));
    if (random.between(0, 1) == 1) s.position_ids = position_ids_of(lengths);
    check(s, 5000 + static_cast<uint64_t>(round));
  }
}

TEST(AttentionOfWindows, OneThatHoldsTheSampleChangesNoBit) {
  for (DType dtype : all_dtypes) {
    const AttentionShape plain = {1, 300, 4, 2, 24, true, 0.2f, dtype};
    const AttentionInputs in = inputs(plain, 46);
    for (const NamedTable& named : tables()) {
      const auto whole = compute(*named.table, plain, in.qkv, in.dout, 2);
      for (int64_t window : {300, 1000})
        EXPECT_TRUE(same(whole, compute(*named.table, within(window, plain), in.qkv, in.dout, 2)))
            << plain << " " << named.name;
    }
  }
}

// Rows that see keys before and after them, in any combination of whole samples, windows on both sides,
// documents, and padding at the end.
TEST(AttentionOfBothSides, AgreesWithDoublePrecision) {
  uint64_t seed = 600;
  for (DType dtype : all_dtypes) {
    const AttentionShape shapes[] = {
        {2, 67, 4, 2, 16, false, 0, dtype, position_ids_of({30, 37, 1, 66})},
        {1, 325, 2, 1, 18, false, 0.2f, dtype, position_ids_of(mixed_lengths)},
        {1, 330, 2, 2, 16, false, 0, dtype, position_ids_of({5, 200, 3, 62, 60})},
        within(2, {1, 130, 2, 1, 16, false, 0, dtype}),
        within(5, {1, 70, 3, 3, 8, false, 0, dtype}),
        within(17, {2, 200, 4, 2, 16, false, 0.1f, dtype}),
        within(65, {1, 257, 2, 1, 32, false, 0, dtype}),
        within(100, {1, 410, 2, 1, 18, false, 0, dtype}),
        within(33, {1, 325, 4, 2, 16, false, 0.2f, dtype, position_ids_of(mixed_lengths)}),
        within(65, {2, 290, 2, 1, 16, false, 0, dtype, position_ids_of({200, 90, 3, 279, 8})})};
    for (int kind = 0; kind < 10; ++kind, ++seed)
      if (dtype_of(kind) == dtype) check(shapes[kind], seed);
  }
}

TEST(AttentionOfBothSides, AgreesOnRandomShapesAndDocuments) {
  Random random(80);
  for (int round = 0; round < rounds(); ++round) {
    const int kv_heads = static_cast<int>(random.between(1, 2));
    AttentionShape s = {random.between(1, 2),
                        random.between(2, 420),
                        kv_heads * static_cast<int>(random.between(1, 3)),
                        kv_heads,
                        2 * static_cast<int>(random.between(1, 16)),
                        false,
                        random.between(0, 1) == 1 ? 0.2f : 0.0f,
                        dtype_of(random.between(0, 2))};
    if (random.between(0, 2) > 0) s.window = random.between(2, random.between(0, 1) == 1 ? 70 : s.rows);
    std::vector<int64_t> lengths;
    for (int64_t sample = 0; sample < s.samples; ++sample)
      for (int64_t left = s.rows; left > 0; left -= lengths.back())
        lengths.push_back(std::min(left, random.between(1, s.rows)));
    if (random.between(0, 2) > 0) s.position_ids = position_ids_of(lengths);
    check(s, 6000 + static_cast<uint64_t>(round));
  }
}

// Rows without a gradient are left out, which must change no bit. Gradients so small that they vanish in
// every sum serve as the reference, since no row is left out for them.
TEST(AttentionOfBothSides, RowsWithoutAGradientChangeNoBit) {
  const AttentionShape shapes[] = {
      {2, 150, 2, 1, 24, false, 0.2f, DType::f32, position_ids_of({20, 130, 64, 1, 70, 15})},
      {1, 200, 2, 2, 40, false, 0, DType::bf16},
      within(17, {2, 200, 4, 2, 16, false, 0.1f, DType::f32}),
      within(65, {1, 290, 2, 1, 16, false, 0, DType::bf16, position_ids_of({200, 90})})};
  const auto is_first = [](const AttentionShape& s, int64_t row) {
    return s.document_start(row / s.rows, row % s.rows) == row % s.rows;
  };
  for (const AttentionShape& s : shapes)
    for (int pattern = 0; pattern < 3; ++pattern) {
      AttentionInputs in = inputs(s, 700);
      Buffer tiny = in.dout;
      for (int64_t row = 0; row < s.samples * s.rows; ++row) {
        const bool is_zero = pattern == 0   ? !is_first(s, row)
                             : pattern == 1 ? row % 64 < 30 || row % 5 > 0
                                            : row % s.rows < 100;
        for (int64_t i = row * s.out_width(); is_zero && i < (row + 1) * s.out_width(); ++i) {
          in.dout.set(i, i % 3 == 0 ? -0.0f : 0.0f);
          tiny.set(i, 1e-30f);
        }
      }
      for (const NamedTable& named : tables()) {
        const Outcome left_out = compute(*named.table, s, in.qkv, in.dout, 2),
                      whole = compute(*named.table, s, in.qkv, tiny, 2);
        int64_t others = 0;
        for (int64_t i = 0; i < in.qkv.count(); ++i) {
          const float a = left_out.dqkv.get(i), b = whole.dqkv.get(i);
          others += std::memcmp(&a, &b, sizeof a) != 0 && !(a == 0 && std::abs(b) < 1e-25f);
        }
        EXPECT_EQ(others, 0) << s << " pattern " << pattern << " " << named.name;
      }
    }
}

TEST(AttentionOfBothSides, OneDocumentOrALongWindowChangesNoBit) {
  for (DType dtype : all_dtypes) {
    if (!takes(dtype, 1)) continue;
    const AttentionShape plain = {2, 150, 2, 1, 24, false, 0.2f, dtype};
    AttentionShape numbered = plain;
    numbered.position_ids = position_ids_of({150, 150});
    const AttentionInputs in = inputs(plain, 47);
    for (const NamedTable& named : tables()) {
      const Outcome whole = compute(*named.table, plain, in.qkv, in.dout, 2);
      for (const AttentionShape& s : {numbered, within(150, plain), within(1000, numbered)})
        EXPECT_TRUE(same(whole, compute(*named.table, s, in.qkv, in.dout, 2))) << s << " " << named.name;
    }
  }
}

TEST(Alibi, HasThePublishedSlopes) {
  // build_alibi_tensor of transformers gives these for 8 heads and for 6.
  const std::vector<double> eight = {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625};
  const std::vector<double> six = {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125};
  AttentionShape s = {1, 1, 8, 8, 2, true, 0, DType::f32};
  s.alibi = true;
  for (int64_t head = 0; head < 8; ++head) EXPECT_EQ(s.slope(head), eight[head]);
  s.query_heads = 6;
  for (int64_t head = 0; head < 6; ++head) EXPECT_EQ(s.slope(head), six[head]);
}

// If all products are 0, the second row's log of the sum of exponentials is log(1 + exp(-slope)).
TEST(Alibi, TakesTheSlopeOfEveryNumberOfHeads) {
  for (int heads : {1, 2, 3, 5, 8, 12, 16, 71, 112}) {
    const AttentionShape s = with_alibi({1, 2, heads, heads, 2, true, 0, DType::f32});
    Buffer qkv(s.dtype, s.rows * s.width()), dout(s.dtype, s.rows * s.out_width());  // All scores are 0.
    for (const NamedTable& named : tables()) {
      const Outcome got = compute(*named.table, s, qkv, dout, 1);
      for (int64_t head = 0; head < heads; ++head)
        EXPECT_NEAR(static_cast<double>(got.lse[head * 2 + 1]), std::log1p(std::exp(-s.slope(head))), 3e-7)
            << heads << " " << head << " " << named.name;
    }
  }
}

TEST(Alibi, AgreesWithDoublePrecision) {
  uint64_t seed = 650;
  for (DType dtype : all_dtypes) {
    const AttentionShape shapes[] = {
        with_alibi({2, 130, 4, 2, 16, true, 0, dtype}), with_alibi({1, 257, 3, 1, 18, true, 0.2f, dtype}),
        with_alibi({1, 325, 6, 2, 16, true, 0, dtype, position_ids_of(mixed_lengths)}),
        with_alibi(within(33, {1, 200, 5, 1, 8, true, 0.1f, dtype, position_ids_of({70, 130})}))};
    for (int kind = 0; kind < 4; ++kind, ++seed)
      if (dtype_of(kind) == dtype) check(shapes[kind], seed);
  }
}

// The whole sequence at once, and the same sequence in steps of several sizes over a cache, give the same
// bits.
void check_cached(const AttentionShape& s, const std::vector<int64_t>& steps) {
  Random random(31);
  const Buffer qkv = Buffer::normal(s.dtype, random, s.rows * s.width(), 1.5);
  const Buffer dout(s.dtype, s.rows * s.out_width());
  const Outcome whole = compute(*tables()[0].table, s, qkv, dout, 1);
  for (const NamedTable& named : tables())
    for (int64_t largest : steps)
      EXPECT_TRUE(same_bits(compute_cached(*named.table, s, qkv, largest), whole.out))
          << s << ", steps of " << largest << ", " << named.name;
}
TEST(AttentionCached, AgreesWithTheWholeSequenceBitForBit) {
  check_cached({1, 150, 4, 2, 32, true, 0, DType::f32}, {1, 7, 90, 150});
  check_cached({1, 300, 2, 2, 18, true, 0, DType::bf16}, {1, 7, 90, 300});
  check_cached({1, 130, 2, 1, 24, true, 0, DType::f16}, {1, 7, 90, 130});
  check_cached(within(70, {1, 300, 2, 1, 18, true, 0, DType::f32}), {1, 7, 90, 300});
  check_cached(within(9, {1, 200, 2, 2, 16, true, 0, DType::bf16}), {1, 7, 90, 200});
  check_cached(with_alibi({1, 150, 6, 2, 16, true, 0, DType::f32}), {1, 7, 90, 150});
}

}  // namespace
}  // namespace stw::kernels::test::attention_test
