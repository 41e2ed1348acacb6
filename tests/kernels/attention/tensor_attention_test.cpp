// Attention on the tensor cores of a device or of the emulated machine. It is compared with the reference in
// double precision. Rows must not depend on other samples or on the order of threads. Shapes that the tensor
// cores do not support must have the CPU's bits.
#include "tests/kernels/attention/attention_cases.h"

namespace stw::kernels::test::tensor_attention_test {
namespace {

AttentionShape on_tensor_cores(AttentionShape s, ProductKernels products = ProductKernels::tensor) {
  s.products = products;
  return s;
}
AttentionShape by_library(AttentionShape s) {
  s.products = ProductKernels::library;
  return s;
}
Outcome compute_on_device(const AttentionShape& s, const AttentionInputs& in, int64_t first_sample = 0) {
  return compute(*cuda_table(), s, in.qkv, in.dout, 1, first_sample);
}

void check(const AttentionShape& s, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << s);
  const AttentionInputs in = inputs(s, seed);
  const Reference expected = reference(s, doubles(in.qkv), doubles(in.dout));
  const Outcome got = compute_on_device(s, in);
  const double limit = tolerance(s.dtype);  // For one rounding to 16 bits; P and dS are rounded too.
  EXPECT_LE(relative_error(got.out.floats(), expected.out), limit);
  EXPECT_LE(relative_error(got.lse, expected.lse), 1e-5);
  for (int part = 0; part < 3 && s.rows > 1; ++part) {  // dQ, dK, dV.
    std::vector<float> values;
    std::vector<double> want;
    const int64_t begin = part == 0 ? 0 : (s.query_heads + (part - 1) * s.kv_heads) * s.head_dim;
    const int64_t end = begin + (part == 0 ? s.query_heads : s.kv_heads) * s.head_dim;
    for (int64_t row = 0; row < s.samples * s.rows; ++row)
      for (int64_t i = row * s.width() + begin; i < row * s.width() + end; ++i)
        values.push_back(got.dqkv.get(i)), want.push_back(expected.dqkv[i]);
    EXPECT_LE(relative_error(values, want), 2 * limit) << "part " << part;
  }
  AttentionShape one = s;
  one.samples = 1;
  for (int64_t sample = 0; sample < s.samples && s.samples > 1; ++sample) {
    const int64_t a = s.rows * s.width(), b = s.rows * s.out_width();
    if (!s.position_ids.empty())
      one.position_ids.assign(s.position_ids.begin() + sample * s.rows,
                              s.position_ids.begin() + (sample + 1) * s.rows);
    const Outcome single =
        compute_on_device(one, {slice(in.qkv, sample * a, a), slice(in.dout, sample * b, b)}, sample);
    EXPECT_TRUE(same_bits(single.out, slice(got.out, sample * b, b)));
    EXPECT_TRUE(same_bits(single.dqkv, slice(got.dqkv, sample * a, a)));
  }
}

// The shape for each of our kernels that supports it with tensor cores.
std::vector<AttentionShape> in_all_ways(const AttentionShape& s) {
  std::vector<AttentionShape> ways;
  for (const ProductKernels products : tensor_kernels())
    if (products != ProductKernels::warpgroup || s.head_dim == 64 || s.head_dim == 128)
      ways.push_back(on_tensor_cores(s, products));
  return ways;
}
void check_in_all_ways(const AttentionShape& s, uint64_t seed) {
  for (const AttentionShape& way : in_all_ways(s)) check(way, seed);
}

// The library computes everything in one part, in parts of whole samples (the last one smaller), or in parts
// of a sample's heads.
TEST(LibraryAttention, AgreesWithDoublePrecision) {
  if (!attention_library()) GTEST_SKIP() << "no cuDNN";
  uint64_t seed = 900;
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const bool causal : {true, false}) {
      check(by_library({2, 65, 4, 2, 16, causal, 0, dtype}), seed++);
      check(by_library({1, 129, 3, 3, 40, causal, 0, dtype}), seed++);
      check(by_library({9, 6, 32, 8, 8, causal, 0, dtype}), seed++);
      check(by_library({2, 5, 300, 300, 8, causal, 0, dtype}), seed++);
      check(by_library({2, 5, 520, 130, 8, causal, 0, dtype}), seed++);
    }
  check(by_library({3, 1, 2, 1, 128, true, 0, DType::bf16}), seed++);
  // The second part's sums begin at an odd multiple of 8 bytes.
  check(by_library({20, 5, 14, 2, 8, true, 0, DType::bf16}), seed++);
}

// If the library does not support the dropout, documents, window, bias, size or type, the result has the bits
// of our own kernels.
TEST(LibraryAttention, LeavesTheRestToOurKernels) {
  if (!attention_library()) GTEST_SKIP() << "no cuDNN";
  for (AttentionShape s : {AttentionShape{2, 33, 2, 1, 16, true, 0.2f, DType::bf16},
                           {1, 40, 2, 2, 16, true, 0, DType::bf16, position_ids_of({7, 33})},
                           within(20, {2, 33, 2, 1, 16, true, 0, DType::bf16}),
                           with_alibi({2, 33, 2, 1, 16, true, 0, DType::bf16}),
                           {1, 40, 2, 2, 16, false, 0, DType::bf16, position_ids_of({7, 33})},
                           within(20, {2, 33, 2, 1, 16, false, 0, DType::f16}),
                           {2, 33, 2, 1, 20, true, 0, DType::f16},
                           {1, 9, 1, 1, 136, true, 0, DType::bf16},
                           {2, 33, 2, 1, 16, true, 0, DType::f32}}) {
    const AttentionInputs in = inputs(s, 950);
    EXPECT_TRUE(same(compute_on_device(by_library(s), in), compute_on_device(on_tensor_cores(s), in))) << s;
  }
}

TEST(TensorAttention, AgreesWithDoublePrecision) {
  uint64_t seed = 700;
  for (bool causal : {true, false})
    for (DType dtype : {DType::bf16, DType::f16}) {
      const AttentionShape shapes[] = {
          {1, 200, 2, 2, 64, causal, 0, dtype}, {2, 64, 2, 1, 128, causal, 0, dtype},
          {2, 65, 4, 2, 80, causal, 0, dtype},  {1, 129, 3, 1, 32, causal, 0.2f, dtype},
          {1, 33, 1, 1, 96, causal, 0, dtype},  {2, 20, 2, 2, 8, causal, 0, dtype}};
      for (int kind = 0; kind < 6; ++kind, ++seed)  // Each shape once with each type.
        if ((kind % 2 == 0) == (causal == (dtype == DType::bf16))) check_in_all_ways(shapes[kind], seed);
    }
}

// Blocks of queries begin and end at all places within blocks of keys, and the reverse, with and without
// dropout.
TEST(TensorAttention, AgreesAcrossBlocks) {
  check_in_all_ways({1, 300, 2, 1, 64, false, 0, DType::f16}, 720);
  check_in_all_ways({1, 257, 1, 1, 128, true, 0, DType::bf16}, 721);
  check_in_all_ways({1, 193, 2, 1, 64, true, 0.2f, DType::bf16}, 722);
  check_in_all_ways({1, 130, 1, 1, 128, false, 0.2f, DType::f16}, 723);
}

// The reference computes which probabilities are dropped. If the number of rows is a multiple of four,
// kernels draw the random numbers in blocks, else one by one.
TEST(TensorAttention, DropsWhatTheReferenceDrops) {
  uint64_t seed = 760;
  for (bool causal : {true, false})
    for (int64_t rows : {132, 72, 70, 33})
      for (int head_dim : {16, 64}) {
        const bool small = head_dim == 16;
        check_in_all_ways({small ? 2 : 1, rows, small ? 4 : 2, small ? 2 : 1, head_dim, causal, 0.3f,
                           rows % 8 == 0 ? DType::f16 : DType::bf16},
                          seed++);
      }
}

// The warpgroup kernels do not support windows, so mma.sync computes them.
TEST(TensorAttention, AgreesInsideOfWindows) {
  uint64_t seed = 780;
  for (const AttentionShape& s :
       {within(2, {1, 70, 1, 1, 16, true, 0, DType::bf16}),
        within(5, {1, 129, 2, 1, 32, true, 0, DType::f16}),
        within(33, {2, 200, 4, 2, 16, true, 0.2f, DType::bf16}),
        within(64, {1, 260, 2, 2, 64, true, 0, DType::bf16}),
        within(100, {1, 330, 2, 1, 24, true, 0, DType::f16}),
        within(97, {1, 200, 1, 1, 128, true, 0, DType::bf16}),
        within(40, {2, 163, 2, 1, 64, true, 0, DType::f16, position_ids_of({1, 99, 63, 130, 33})})})
    check(on_tensor_cores(s), seed++);
  const AttentionShape s = within(50, {1, 150, 2, 1, 64, true, 0, DType::bf16});
  const AttentionInputs in = inputs(s, seed);
  for (const AttentionShape& way : in_all_ways(s))
    EXPECT_TRUE(same(compute_on_device(way, in), compute_on_device(on_tensor_cores(s), in)));
}

TEST(TensorAttention, AgreesOnRandomShapes) {
  Random random(79);
  for (int round = 0; round < 5; ++round) {
    const int kv_heads = static_cast<int>(random.between(1, 2));
    check_in_all_ways(
        {random.between(1, 2), random.between(2, 200), kv_heads * static_cast<int>(random.between(1, 3)),
         kv_heads, 8 * static_cast<int>(random.between(1, 16)), random.between(0, 1) == 1,
         random.between(0, 2) == 0 ? 0.2f : 0.0f, random.between(0, 1) == 1 ? DType::bf16 : DType::f16},
        3000 + static_cast<uint64_t>(round));
  }
}

const std::vector<int64_t> lengths = {1, 2, 61, 64, 65, 3, 20};  // 216 rows.

TEST(TensorAttention, AgreesWithDoublePrecisionOnDocuments) {
  std::vector<int64_t> two = lengths;
  two.insert(two.end(), lengths.rbegin(), lengths.rend());
  check(on_tensor_cores({2, 216, 2, 1, 24, true, 0, DType::bf16, position_ids_of(two)}), 800);
  check_in_all_ways({1, 216, 2, 2, 64, true, 0.2f, DType::f16, position_ids_of(lengths)}, 801);
  check_in_all_ways({1, 216, 1, 1, 128, true, 0, DType::bf16, position_ids_of(lengths)}, 803);
  // A block of keys ends after the first row of a warp.
  check_in_all_ways({1, 200, 1, 1, 64, true, 0, DType::bf16, position_ids_of({2, 198})}, 804);
  check(on_tensor_cores({1, 150, 4, 2, 16, true, 0, DType::f16, position_ids_of({150})}), 802);
}

// Rows that see keys before and after them, with windows, documents and padding at the end in any
// combination.
TEST(TensorAttention, AgreesOnBothSides) {
  check_in_all_ways({1, 216, 2, 1, 64, false, 0.2f, DType::bf16, position_ids_of(lengths)}, 810);
  check_in_all_ways({1, 216, 1, 1, 128, false, 0, DType::f16, position_ids_of(lengths)}, 811);
  check_in_all_ways({2, 150, 2, 2, 64, false, 0, DType::bf16, position_ids_of({140, 10, 33, 117})}, 812);
  uint64_t seed = 820;
  for (const AttentionShape& s :
       {within(2, {1, 70, 2, 1, 16, false, 0, DType::bf16}),
        within(5, {1, 129, 2, 1, 32, false, 0, DType::f16}),
        within(33, {2, 200, 4, 2, 16, false, 0.2f, DType::bf16}),
        within(65, {1, 260, 2, 2, 64, false, 0, DType::bf16}),
        within(100, {1, 330, 2, 1, 24, false, 0, DType::f16}),
        within(97, {1, 200, 1, 1, 128, false, 0, DType::bf16}),
        within(40, {2, 163, 2, 1, 64, false, 0, DType::f16, position_ids_of({1, 99, 63, 130, 33})}),
        within(20, {1, 216, 3, 1, 40, false, 0.1f, DType::bf16, position_ids_of(lengths)})})
    check(on_tensor_cores(s), seed++);
  const AttentionShape s = within(50, {1, 150, 2, 1, 64, false, 0, DType::bf16});
  const AttentionInputs in = inputs(s, seed);
  for (const AttentionShape& way : in_all_ways(s))
    EXPECT_TRUE(same(compute_on_device(way, in), compute_on_device(on_tensor_cores(s), in)));
}

TEST(TensorAttention, OneDocumentChangesNoBitOnBothSides) {
  for (const AttentionShape& s : in_all_ways({1, 150, 1, 1, 64, false, 0, DType::bf16})) {
    const AttentionInputs in = inputs(s, 830);
    AttentionShape numbered = s;
    numbered.position_ids = position_ids_of({150});
    EXPECT_TRUE(same(compute_on_device(s, in), compute_on_device(numbered, in))) << s;
  }
}

TEST(TensorAttention, AgreesWithAlibi) {
  check_in_all_ways(with_alibi({1, 200, 4, 2, 64, true, 0, DType::bf16}), 840);
  check_in_all_ways(with_alibi({1, 150, 3, 1, 128, true, 0, DType::f16}), 841);
  check_in_all_ways(with_alibi({1, 216, 6, 3, 64, true, 0.2f, DType::bf16, position_ids_of(lengths)}), 842);
  check(on_tensor_cores(with_alibi(within(40, {2, 130, 3, 1, 16, true, 0.1f, DType::bf16}))), 843);
  check(on_tensor_cores(with_alibi({2, 130, 5, 5, 40, true, 0, DType::f16})), 844);
}

// The contents of other documents, even NaN, change no bit of a document. If it is alone in its sample, it
// has the same outputs.
void expect_documents_apart(const AttentionShape& s) {
  SCOPED_TRACE(testing::Message() << s);
  const AttentionInputs in = inputs(s, 12);
  const Outcome before = compute_on_device(s, in);
  int64_t first = 0;
  for (int64_t length : lengths) {
    AttentionInputs strange = in;
    for (int64_t i = 0; i < s.rows * s.width(); ++i)
      if (i < first * s.width() || i >= (first + length) * s.width())
        strange.qkv.set(i, i % 3 == 0 ? NAN : INFINITY);
    for (int64_t i = 0; i < s.rows * s.out_width(); ++i)
      if (i < first * s.out_width() || i >= (first + length) * s.out_width()) strange.dout.set(i, NAN);
    const Outcome after = compute_on_device(s, strange);
    const auto part_of = [&](const Buffer& all, int64_t width) {
      return slice(all, first * width, length * width);
    };
    EXPECT_TRUE(same_bits(part_of(before.out, s.out_width()), part_of(after.out, s.out_width()))) << length;
    EXPECT_TRUE(same_bits(part_of(before.dqkv, s.width()), part_of(after.dqkv, s.width()))) << length;
    AttentionShape alone = s;
    alone.rows = length, alone.position_ids.clear();
    const Outcome got =
        compute_on_device(alone, {part_of(in.qkv, s.width()), part_of(in.dout, s.out_width())});
    EXPECT_TRUE(same_bits(part_of(before.out, s.out_width()), got.out)) << length;
    first += length;
  }
}
TEST(TensorAttention, DocumentsDoNotTouchEachOther) {
  for (int head_dim : {16, 64})
    for (bool causal : {true, false})
      for (const AttentionShape& s : in_all_ways({1, 216, head_dim == 16 ? 2 : 1, 1, head_dim, causal, 0,
                                                  DType::bf16, position_ids_of(lengths)}))
        expect_documents_apart(s);
  expect_documents_apart(
      on_tensor_cores(within(20, {1, 216, 1, 1, 16, false, 0, DType::bf16, position_ids_of(lengths)})));
}

// Later rows change no bit of a row's output or of its query's gradient. Queries before a key change no bit
// of the key's gradients. This holds wherever the blocks of queries and keys end.
TEST(TensorAttention, RowsDoNotSeeWhatTheMaskHides) {
  for (const std::vector<int64_t>& documents : {std::vector<int64_t>{2, 141}, {14, 129}})
    for (const AttentionShape& s :
         in_all_ways({1, 143, 1, 1, 64, true, 0, DType::bf16, position_ids_of(documents)})) {
      const AttentionInputs in = inputs(s, 14);
      const Outcome before = compute_on_device(s, in);
      const int64_t width = s.out_width();
      // part: dQ, dK or dV.
      const auto part_of = [&](const Outcome& o, int part, int64_t first, int64_t end) {
        std::vector<float> numbers;
        for (int64_t row = first; row < end; ++row)
          for (int64_t i = 0; i < width; ++i)
            numbers.push_back(o.dqkv.get(row * s.width() + part * width + i));
        return numbers;
      };
      for (int64_t row : {15, 65, 81, 129}) {
        AttentionInputs later = in, earlier = in;
        for (int64_t i = row * s.width(); i < s.rows * s.width(); ++i) later.qkv.set(i, 3);
        for (int64_t i = 0; i < row * width; ++i)
          earlier.qkv.set(i / width * s.width() + i % width, 3), earlier.dout.set(i, -3);
        const Outcome after_later = compute_on_device(s, later),
                      after_earlier = compute_on_device(s, earlier);
        EXPECT_TRUE(same_bits(slice(before.out, 0, row * width), slice(after_later.out, 0, row * width)))
            << s << ", row " << row;
        EXPECT_TRUE(same_bits(part_of(before, 0, 0, row), part_of(after_later, 0, 0, row)))
            << s << ", row " << row;
        for (int part : {1, 2})
          EXPECT_TRUE(
              same_bits(part_of(before, part, row, s.rows), part_of(after_earlier, part, row, s.rows)))
              << s << ", row " << row;
      }
    }
}

// A sample of one token: the output is its value, whose gradient is the output's; query and key have zero
// gradients.
TEST(TensorAttention, SingleTokensPassTheirValues) {
  for (int head_dim : {16, 64})
    for (const AttentionShape& s : in_all_ways({70, 1, 2, 2, head_dim, true, 0, DType::bf16})) {
      const AttentionInputs in = inputs(s, 8);
      const Outcome got = compute_on_device(s, in);
      for (int64_t row = 0; row < s.samples; ++row)
        for (int64_t i = 0; i < s.out_width(); ++i) {
          const auto of_row = [&](int part) { return row * s.width() + part * s.out_width() + i; };
          ASSERT_EQ(got.out.get(row * s.out_width() + i), in.qkv.get(of_row(2)));
          ASSERT_EQ(got.dqkv.get(of_row(2)), in.dout.get(row * s.out_width() + i));
          ASSERT_NEAR(got.dqkv.get(of_row(0)), 0, 1e-4);
          ASSERT_NEAR(got.dqkv.get(of_row(1)), 0, 1e-4);
        }
    }
}

// A row alone in its document has the output and lse of the first row of a longer causal document, which also
// sees only itself but is computed with the tile's other rows.
TEST(TensorAttention, SingleRowsHaveTheBitsOfFirstRows) {
  const int64_t rows = 72;
  for (const auto& [head_dim, dropout] : {std::pair{64, 0.0f}, {64, 0.3f}, {40, 0.0f}, {128, 0.0f}})
    for (AttentionShape s : in_all_ways({1, rows, 2, 1, head_dim, true, dropout, DType::bf16})) {
      AttentionInputs in = inputs(s, 830);
      in.qkv.set(3 * head_dim + 5, -0.0f);  // A value.
      s.position_ids = position_ids_of(std::vector<int64_t>(rows / 2, 2));
      const Outcome pairs = compute_on_device(s, in);
      s.position_ids = position_ids_of(std::vector<int64_t>(rows, 1));
      const Outcome single = compute_on_device(s, in);
      for (int64_t row = 0; row < rows; row += 2) {
        ASSERT_TRUE(same_bits(slice(single.out, row * s.out_width(), s.out_width()),
                              slice(pairs.out, row * s.out_width(), s.out_width())))
            << s << ", row " << row;
        for (const int64_t at : {row, rows + row}) ASSERT_EQ(single.lse[at], pairs.lse[at]) << s;
      }
    }
}

// Padding behind a document, and rows alone before and between longer ones. Rows of padding have no gradient
// of their outputs.
TEST(TensorAttention, PaddingHasNoGradientAndChangesNoDocument) {
  const std::vector<int64_t> before = {1, 1, 70, 1, 40};
  const int64_t used = 113, rows = 300;
  for (const auto& [head_dim, causal] : {std::pair{64, true}, {128, true}, {64, false}, {24, true}})
    for (AttentionShape s : in_all_ways({1, rows, 4, 2, head_dim, causal, 0, DType::f16})) {
      std::vector<int64_t> lengths = before;
      lengths.resize(before.size() + rows - used, 1);
      s.position_ids = position_ids_of(lengths);
      AttentionInputs in = inputs(s, 840);
      for (int64_t i = used * s.out_width(); i < in.dout.count(); ++i)
        in.dout.set(i, i % 2 == 0 ? 0.0f : -0.0f);
      const Outcome padded = compute_on_device(s, in);
      const Buffer rest = slice(padded.dqkv, used * s.width(), (rows - used) * s.width());
      EXPECT_TRUE(same_bits(rest, Buffer(s.dtype, rest.count()))) << s;
      s.rows = used, s.position_ids = position_ids_of(before);
      const Outcome alone =
          compute_on_device(s, {slice(in.qkv, 0, used * s.width()), slice(in.dout, 0, used * s.out_width())});
      EXPECT_TRUE(same_bits(slice(padded.out, 0, used * s.out_width()), alone.out)) << s;
      EXPECT_TRUE(same_bits(slice(padded.dqkv, 0, used * s.width()), alone.dqkv)) << s;
    }
}

// Scores beyond the range of the exponential; a maximum that grows from block to block.
TEST(TensorAttention, SurvivesLargeScores) {
  for (int head_dim : {16, 64})
    for (const AttentionShape& s : in_all_ways({1, 200, 1, 1, head_dim, true, 0, DType::bf16})) {
      SCOPED_TRACE(testing::Message() << s);
      AttentionInputs in = inputs(s, 9);
      for (int64_t row = 0; row < s.rows; ++row)
        for (int64_t d = 0; d < head_dim; ++d) {
          in.qkv.set(row * s.width() + d, 8.0f);
          in.qkv.set(row * s.width() + head_dim + d, static_cast<float>(row % 3 == 0 ? row : -row));
        }
      const Reference expected = reference(s, doubles(in.qkv), doubles(in.dout));
      const Outcome got = compute_on_device(s, in);
      EXPECT_LE(relative_error(got.out.floats(), expected.out), tolerance(s.dtype));
      EXPECT_LE(relative_error(got.lse, expected.lse), 1e-5);
      for (int64_t i = 0; i < got.dqkv.count(); ++i) ASSERT_TRUE(std::isfinite(got.dqkv.get(i)));
    }
}

TEST(TensorAttention, LeavesUnsupportedShapesToOtherKernels) {
  const AttentionShape shapes[] = {{1, 70, 2, 1, 16, true, 0, DType::f32},
                                   {1, 70, 2, 1, 18, true, 0, DType::bf16},
                                   {1, 40, 1, 1, 136, false, 0, DType::f16}};
  for (const AttentionShape& s : shapes) {
    const AttentionInputs in = inputs(s, 11);
    const Outcome expected = compute(*tables()[0].table, s, in.qkv, in.dout, 1);
    for (const ProductKernels products : tensor_kernels())
      EXPECT_TRUE(same(compute_on_device(on_tensor_cores(s, products), in), expected)) << s;
  }
  if (!has_warpgroups()) return;
  for (int head_dim : {8, 32, 64, 96, 128}) {  // Warpgroups take two of these, with bits of their own.
    const AttentionShape s = {1, 70, 2, 1, head_dim, true, 0, DType::bf16};
    const AttentionInputs in = inputs(s, 13);
    EXPECT_EQ(same(compute_on_device(on_tensor_cores(s, ProductKernels::warpgroup), in),
                   compute_on_device(on_tensor_cores(s), in)),
              head_dim != 64 && head_dim != 128)
        << s;
  }
}

}  // namespace
}  // namespace stw::kernels::test::tensor_attention_test
