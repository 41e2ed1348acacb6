// Cross-entropy in the device's order: rows in shared memory, and rows that do not fit there.
#include "tests/kernels/update/update.h"
#include "tests/simt/machine.h"
#include "tests/simt/runtime.h"

namespace stw::kernels::test {
namespace {

struct Result {
  std::vector<float> loss;
  Buffer gradient;
  uint64_t blocks;
};

// On a device with so much shared memory a multiprocessor.
Result compute(const Buffer& logits, int64_t vocabulary, const std::vector<int32_t>& targets,
               int shared_bytes, int cache_bytes = 50 << 20) {
  Result result{std::vector<float>(targets.size(), NAN), logits, 0};
  const StepState state = unscaled_state();
  CrossEntropyArgs args = {};
  args.rows = static_cast<int64_t>(targets.size()), args.vocabulary = vocabulary;
  args.stride = logits.count() / args.rows, args.targets = targets.data(), args.fast = true;
  args.logits = result.gradient.matrix(), args.gradient = true, args.token_loss = result.loss.data(),
  args.state = &state;
  const simt::Faults before = simt::faults;
  simt::faults.shared_bytes = shared_bytes, simt::faults.cache_bytes = cache_bytes;
  simt::counters = {};
  run(tables().back().table->cross_entropy, args, 1, 0);
  finish_kernels();
  simt::faults = before;
  result.blocks = simt::counters.blocks;
  return result;
}

// More rows than blocks, so that a block copies the next row during the pass over the current one. Some rows
// have no target.
TEST(BlockCrossEntropy, RowsInSharedMemoryHaveTheSameBits) {
  Random random(21);
  for (const auto& [vocabulary, stride] :
       {std::pair<int64_t, int64_t>{203, 208}, {2600, 2600}, {20000, 20008}})
    for (DType dtype : {DType::bf16, DType::f16}) {
      const int64_t rows = vocabulary > 10000 ? 9 : 90;
      const Buffer logits = Buffer::normal(dtype, random, rows * stride, 2);
      std::vector<int32_t> targets;
      for (int64_t row = 0; row < rows; ++row)
        targets.push_back(random.between(0, 3) == 0
                              ? ignored_target
                              : static_cast<int32_t>(random.between(0, vocabulary - 1)));
      const int row_bytes = static_cast<int>(stride) * 2 + 2048;
      const Result apart = compute(logits, vocabulary, targets, 2048),
                   kept = compute(logits, vocabulary, targets, row_bytes);
      EXPECT_LT(kept.blocks, static_cast<uint64_t>(rows)) << vocabulary;
      EXPECT_TRUE(same_bits(kept.loss, apart.loss)) << vocabulary;
      EXPECT_TRUE(same_bits(kept.gradient, apart.gradient)) << vocabulary;
    }
}

// The emulated device has four multiprocessors.
TEST(BlockCrossEntropy, LongRowsInProgressFitHalfOfTheCache) {
  const int64_t rows = 20, vocabulary = 5000;
  const Buffer logits(DType::bf16, rows * vocabulary);
  const std::vector<int32_t> targets(static_cast<size_t>(rows), 7);
  const int of_eight = 8 * 2 * 5000;
  EXPECT_EQ(compute(logits, vocabulary, targets, 2048, 2 * of_eight).blocks, 8u);
  EXPECT_EQ(compute(logits, vocabulary, targets, 2048, 2 * of_eight - 1).blocks, 4u);
  // Where two rows fit a multiprocessor's shared memory, or one, there are as many blocks.
  EXPECT_EQ(compute(logits, vocabulary, targets, 2 * 12000).blocks, 8u);
  EXPECT_EQ(compute(logits, vocabulary, targets, 12000, 2048).blocks, 4u);
}

}  // namespace
}  // namespace stw::kernels::test
