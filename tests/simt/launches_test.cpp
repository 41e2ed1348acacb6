// The declarations of tests/launches.h compared with the launches of the emulated device.
#include "tests/launches.h"

#include <gtest/gtest.h>

#include "tests/device/cuda_device.h"
#include "tests/simt/machine.h"

namespace stw {
namespace {

using namespace testing_tools;

constexpr int64_t multiprocessors = 4;  // tests/simt/runtime.cpp.

// Counts the launches of the second step, when all programs are recorded. Steps of two and of three
// micro-steps are compared, so that the difference is the launches of one micro-step.
TEST(Launches, AgreeWithTheirDeclarations) {
  const std::string longer =
      R"({"model_type": "gpt2", "vocab_size": 300, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 1,
                                 "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})";
  const struct {
    std::string model;
    int64_t micro_batch, sequence;
  } cases[] = {{longer, 4, 64}, {small_gpt2("0.1"), 1, 33}, {small_llama(), 1, 33}, {small_qwen2(), 1, 40}};
  for (const auto& c : cases)
    for (Recompute recompute : {Recompute::none, Recompute::full}) {
      if (c.micro_batch == 1 && recompute == Recompute::none) continue;
      const auto model = model_of(c.model);
      uint64_t launches[2] = {};
      int64_t declared = 0;
      for (int more = 0; more < 2; ++more) {
        Request r = request_for((2 + more) * c.micro_batch, c.sequence, 1);
        r.device = "rtx4090", r.precision = Precision::bf16, r.reserve_bytes = 0,
        r.micro_batch = c.micro_batch, r.recompute = recompute;
        const auto planned = plan_for(*model, r);
        ASSERT_TRUE(planned);
        declared = launches_of(planned->graph, planned->programs.micro_next, multiprocessors);
        const auto trainer = trainer_for(model, planned, {}, cuda_device());
        for (uint64_t step = 1; step <= 2; ++step) {
          const uint64_t before = simt::counters.launches;
          // Tokens below 61, whatever the vocabulary.
          GlobalBatch batch = random_batch(step, r.global_batch, c.sequence);
          const auto result = trainer->step(batch.source(), static_cast<uint64_t>(r.global_batch), 1e-3);
          ASSERT_TRUE(result) << result.error().message;
          launches[more] = simt::counters.launches - before;
        }
      }
      EXPECT_EQ(static_cast<int64_t>(launches[1] - launches[0]), declared) << c.model << ", " << c.sequence;
    }
}

}  // namespace
}  // namespace stw
