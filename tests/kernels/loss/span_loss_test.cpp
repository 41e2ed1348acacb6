// span_loss compared with double precision and its definition. Bits must be the same on every instruction
// set, number of threads and device.
#include "tests/kernels/update/update.h"

namespace stw::kernels::test::span_loss_test {
namespace {

// Documents end to end. Some have no answer, and padding follows them.
struct Documents {
  std::vector<int32_t> targets, positions, following;
  std::vector<float> values, weights;
  DType dtype;
  Buffer logits;

  Documents(DType stored, const std::vector<int64_t>& lengths, uint64_t seed)
      : dtype(stored), logits(stored, 0) {
    Random random(seed);
    for (size_t d = 0; d < lengths.size(); ++d)
      for (int64_t i = 0; i < lengths[d]; ++i) {
        const bool counts = i == 0 && d % 4 != 2;
        targets.push_back(counts ? 0 : ignored_target);
        positions.push_back(static_cast<int32_t>(i));
        following.push_back(static_cast<int32_t>(lengths[d] - 1 - i));
        // Only numbers in first rows are read.
        for (int c = 0; c < 2; ++c)
          values.push_back(i > 0 ? NAN : static_cast<float>(random.between(0, lengths[d] - 1)));
        weights.push_back(i > 0 ? NAN : static_cast<float>(d % 3));
      }
    logits = Buffer::normal(dtype, random, 2 * rows(), 2);
  }
  int64_t rows() const { return static_cast<int64_t>(targets.size()); }
};

struct Outcome {
  std::vector<float> loss;
  Buffer logits;
};
Outcome compute(const Table& table, const Documents& in, const Buffer& logits, bool gradient, int threads,
                bool weighted = false, int64_t stride = 2, double scale = 1) {
  StepState state = unscaled_state();
  state.loss_scale = scale * 1024, state.batch_factor = 1.0 / 1024;
  Outcome outcome{std::vector<float>(in.targets.size(), NAN), logits};
  SpanLossArgs args = {};
  args.rows = in.rows(), args.targets = in.targets.data(), args.values = in.values.data();
  args.positions = in.positions.data(), args.following = in.following.data();
  args.logits = outcome.logits.matrix(), args.gradient = gradient, args.row_loss = outcome.loss.data();
  args.weights = weighted ? in.weights.data() : nullptr, args.state = &state, args.stride = stride;
  run(table.span_loss, args, threads, 0);
  return outcome;
}

// A document's loss and gradient from their definitions in kernels.h, without its weight and the scale.
struct Expected {
  double loss = 0;
  std::vector<double> gradient;
};
Expected reference(const Documents& in, const std::vector<double>& x, int64_t first) {
  const int64_t count = in.following[first] + 1;
  Expected e{0, std::vector<double>(static_cast<size_t>(2 * count))};
  for (int c = 0; c < 2; ++c) {
    const auto at = [&](int64_t i) { return x[static_cast<size_t>(2 * (first + i) + c)]; };
    const double value = static_cast<double>(in.values[2 * first + c]);
    if (!(value >= 0 && value < static_cast<double>(count))) continue;
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; ++i) largest = std::fmax(largest, at(i));
    for (int64_t i = 0; i < count; ++i) sum += std::exp(at(i) - largest);
    e.loss += (std::log(sum) + largest - at(static_cast<int64_t>(value))) / 2;
    for (int64_t i = 0; i < count; ++i)
      e.gradient[static_cast<size_t>(2 * i + c)] =
          (std::exp(at(i) - largest) / sum - (i == static_cast<int64_t>(value))) / 2;
  }
  return e;
}

const std::vector<int64_t> some_lengths = {1,  2,  15, 16, 17, 1, 63,  64, 65, 130,
                                           31, 33, 1,  1,  1,  9, 250, 4,  1,  1};

void check(const Documents& in, bool weighted, double scale) {
  const std::vector<double> x = [&] {
    std::vector<double> list;
    for (int64_t i = 0; i < 2 * in.rows(); ++i) list.push_back(in.logits.get(i));
    return list;
  }();
  std::vector<double> loss, gradient;
  for (int64_t first = 0; first < in.rows(); first += in.following[first] + 1) {
    const Expected e = reference(in, x, first);
    const double weight = in.targets[first] == ignored_target ? 0
                          : weighted                          ? static_cast<double>(in.weights[first])
                                                              : 1;
    loss.push_back(e.loss * weight);
    loss.resize(static_cast<size_t>(first + in.following[first] + 1));
    for (const double slope : e.gradient) gradient.push_back(slope * weight * scale);
  }
  const Outcome first = compute(*tables()[0].table, in, in.logits, true, 1, weighted, 2, scale);
  EXPECT_LE(relative_error(first.loss, loss), 1e-6);
  EXPECT_LE(relative_error(first.logits.floats(), gradient), tolerance(in.dtype));
  for (size_t row = 0; row < loss.size(); ++row)
    if (loss[row] == 0) { EXPECT_EQ(first.loss[row], 0.0f) << row; }
  for (const NamedTable& named : tables())
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << named.name << " " << threads);
      const Outcome both = compute(*named.table, in, in.logits, true, threads, weighted, 2, scale);
      EXPECT_TRUE(same_bits(both.loss, first.loss));
      EXPECT_TRUE(same_bits(both.logits, first.logits));
      const Outcome only_loss = compute(*named.table, in, in.logits, false, threads, weighted, 2, scale);
      EXPECT_TRUE(same_bits(only_loss.loss, first.loss));
      EXPECT_TRUE(same_bits(only_loss.logits, in.logits));
      // Rows of a plan are further apart; zeros follow a gradient.
      const Buffer apart = spread(in.logits, 2, 16, [](int64_t) { return NAN; });
      const Outcome padded = compute(*named.table, in, apart, true, threads, weighted, 16, scale);
      EXPECT_TRUE(same_bits(padded.loss, first.loss));
      EXPECT_TRUE(same_bits(columns_of(padded.logits, 0, 2, 16), first.logits));
      EXPECT_TRUE(same_bits(columns_of(padded.logits, 2, 16, 16), Buffer(in.dtype, 14 * in.rows())));
    }
}

TEST(SpanLoss, AgreesWithDoublePrecision) {
  uint64_t seed = 1;
  for (const DType dtype : all_dtypes) {
    check(Documents(dtype, some_lengths, seed++), false, 1);
    check(Documents(dtype, some_lengths, seed++), true, 0.125);
    check(Documents(dtype, {loss_columns + 77}, seed++), false, 1);
  }
}

TEST(SpanLoss, GradientsAgreeWithFiniteDifferences) {
  const Documents in(DType::f32, {7, 3, 20}, 9);
  std::vector<double> x, slopes;
  for (int64_t i = 0; i < 2 * in.rows(); ++i) x.push_back(in.logits.get(i));
  const auto total = [&] {
    double sum = 0;
    for (int64_t first = 0; first < in.rows(); first += in.following[first] + 1)
      if (in.targets[first] != ignored_target) sum += reference(in, x, first).loss;
    return sum;
  };
  for (double& value : x) {
    const double kept = value;
    value = kept + 1e-5;
    const double above = total();
    value = kept - 1e-5;
    slopes.push_back((above - total()) / 2e-5);
    value = kept;
  }
  for (const NamedTable& named : tables())
    EXPECT_LE(relative_error(compute(*named.table, in, in.logits, true, 1).logits.floats(), slopes), 1e-6)
        << named.name;
}

// A target outside of the document has no part in loss and gradient, as in transformers.
TEST(SpanLoss, IgnoresTargetsOutsideOfTheDocument) {
  for (const float outside : {12.0f, 1e30f, -1.0f, static_cast<float>(NAN), INFINITY}) {
    Documents in(DType::f32, {12}, 3);
    in.values[1] = outside;
    for (const NamedTable& named : tables()) {
      const Outcome found = compute(*named.table, in, in.logits, true, 1);
      EXPECT_TRUE(std::isfinite(found.loss[0])) << named.name;
      EXPECT_GT(found.loss[0], 0);
      for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(found.logits.get(2 * i + 1), 0) << named.name;
    }
    in.values[0] = outside;
    for (const NamedTable& named : tables())
      EXPECT_EQ(compute(*named.table, in, in.logits, true, 1).loss[0], 0.0f) << named.name;
  }
}

// A logit that is not finite makes the result of its document not finite, and changes no other document.
TEST(SpanLoss, HidesNoNumberThatIsNotFinite) {
  for (const DType dtype : all_dtypes)
    for (const NamedTable& named : tables())
      for (const float odd : {INFINITY, static_cast<float>(NAN)}) {
        const Documents in(dtype, {20, 20, 20, 20}, 5);  // the third one has no answer
        Buffer logits = in.logits;
        logits.set(2 * 27, odd), logits.set(2 * 47, odd);
        const Outcome found = compute(*named.table, in, logits, true, 1),
                      before = compute(*named.table, in, in.logits, true, 1);
        EXPECT_FALSE(std::isfinite(found.loss[20])) << named.name << " " << odd;
        EXPECT_EQ(found.loss[40], 0.0f);
        for (int64_t i = 0; i < 160; ++i)
          if (i < 40 || i >= 80) { ASSERT_EQ(found.logits.get(i), before.logits.get(i)) << named.name; }
      }
}

}  // namespace
}  // namespace stw::kernels::test::span_loss_test
