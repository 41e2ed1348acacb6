// hit_count compared with its definition, on every instruction set and on devices: of equal logits the first
// one counts, and a row with a NaN does not count.
#include "tests/kernels/update/update.h"

namespace stw::kernels::test::hit_count_test {
namespace {

uint32_t reference(const std::vector<float>& logits, int64_t classes, int64_t stride,
                   const std::vector<int32_t>& targets) {
  uint32_t hits = 0;
  for (size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] == ignored_target) continue;
    const float* x = logits.data() + static_cast<int64_t>(row) * stride;
    int64_t best = 0;
    bool finite = !std::isnan(x[0]);
    for (int64_t j = 1; j < classes; ++j) {
      finite = finite && !std::isnan(x[j]);
      if (x[j] > x[best]) best = j;
    }
    hits += finite && best == targets[row];
  }
  return hits;
}

uint32_t count(const Table& table, const Buffer& logits, int64_t classes, int64_t stride,
               const std::vector<int32_t>& targets, uint32_t before, int threads) {
  StepState state{};
  state.hits = before;
  Buffer copy = logits;
  HitCountArgs args{};
  args.rows = static_cast<int64_t>(targets.size()), args.classes = classes, args.stride = stride;
  args.targets = targets.data(), args.logits = {copy.matrix().data, copy.matrix().dtype}, args.state = &state;
  run(table.hit_count, args, threads, 0);
  return state.hits;
}

TEST(HitCount, CountsRowsWhoseTargetIsTheFirstLargestLogit) {
  Random random(5);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const auto& [rows, classes, padding] :
         {std::tuple{1, 2, 0}, {7, 3, 13}, {300, 5, 11}, {1100, 77, 3}, {33, 1000, 8}}) {
      const int64_t stride = classes + padding;
      std::vector<float> values;
      for (int64_t i = 0; i < rows * stride; ++i) {
        // Few different numbers, so that many are equal. After the end of a row come larger ones, which must
        // not be read.
        const bool is_past = i % stride >= classes;
        values.push_back(is_past        ? 100.0f
                         : classes <= 5 ? static_cast<float>(random.between(-1, 2))
                                        : static_cast<float>(random.between(-400, 400)) / 16);
      }
      for (int64_t row = 0; row < rows; row += 9)
        values[row * stride + random.between(0, classes - 1)] = row % 2 ? NAN : -INFINITY;
      std::vector<int32_t> targets;
      for (int64_t row = 0; row < rows; ++row) {
        const float* x = values.data() + row * stride;
        const auto best = static_cast<int32_t>(std::max_element(x, x + classes) - x);
        const int64_t kind = random.between(0, 3);
        targets.push_back(kind == 0   ? ignored_target
                          : kind == 1 ? best
                                      : static_cast<int32_t>(random.between(0, classes - 1)));
      }
      const Buffer logits(dtype, values);
      const uint32_t expected = reference(logits.floats(), classes, stride, targets);
      if (rows > 100) {
        EXPECT_GT(expected, 0u);
        EXPECT_LT(expected, static_cast<uint32_t>(rows));
      }
      for (const NamedTable& named : tables())
        for (const int threads : {1, 3})
          EXPECT_EQ(count(*named.table, logits, classes, stride, targets, 40, threads), 40 + expected)
              << named.name << " " << rows << " x " << classes;
    }
}

}  // namespace
}  // namespace stw::kernels::test::hit_count_test
