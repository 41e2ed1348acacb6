// Counts memory traffic of cross-entropy in the device's order.
#include "tests/kernels/update/update.h"
#include "tests/ptx/machine.h"
#include "tests/simt/runtime.h"

namespace stw::kernels::test {
namespace {

struct Counts {
  double sectors, instructions;
};
// Accesses to sectors, whatever their alignment, and instructions, for each sector of logits.
Counts counts_of(int64_t rows, int64_t vocabulary, int shared_bytes) {
  Random random(22);
  Buffer logits = Buffer::normal(DType::bf16, random, rows * vocabulary, 2);
  std::vector<float> loss(static_cast<size_t>(rows));
  const std::vector<int32_t> targets(static_cast<size_t>(rows), 5);
  const StepState state = unscaled_state();
  CrossEntropyArgs args = {};
  args.rows = rows, args.vocabulary = args.stride = vocabulary, args.targets = targets.data();
  args.fast = args.gradient = true, args.logits = logits.matrix(), args.token_loss = loss.data(),
  args.state = &state;
  const simt::Faults before = simt::faults;
  simt::faults.shared_bytes = shared_bytes;
  ptx::count_traffic(true);
  run(tables().back().table->cross_entropy, args, 1, 0);
  finish_kernels();
  ptx::count_traffic(false);
  simt::faults = before;
  const auto kernels = ptx::traffic();
  EXPECT_EQ(kernels.size(), 1u);
  const double of_logits = static_cast<double>(rows * vocabulary / 16);
  return {static_cast<double>(kernels.front().second.least_sectors) / of_logits,
          static_cast<double>(kernels.front().second.instructions) / of_logits};
}

// A row is read once, and its gradient is written once. In the time in which an H200 moves a sector, it
// issues six instructions of a warp (traffic_test.cpp).
TEST(CrossEntropyTraffic, ReadsARowOnce) {
  EXPECT_LE(counts_of(20, 4000, 228 << 10).sectors, 2.1);
  for (const int shared_bytes : {228 << 10, 100 << 10}) {  // Compute capability 9.0; 8.9 and 12.0.
    const Counts counts = counts_of(2, 50256, shared_bytes);
    std::printf("a sector of logits takes %.2f accesses to sectors and %.2f instructions\n", counts.sectors,
                counts.instructions);
    EXPECT_LE(counts.sectors, 2.1);
    EXPECT_LE(counts.instructions, 6 * counts.sectors);
  }
  EXPECT_GE(counts_of(2, 50256, 90 << 10).sectors, 3);  // It does not fit.
}

}  // namespace
}  // namespace stw::kernels::test
