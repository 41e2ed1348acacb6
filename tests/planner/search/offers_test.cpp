// Relaxations as text, and which of them contain others.
#include "planner/search/offers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stw {
namespace {

TEST(Offers, TextsAreFlags) {
  Request r;
  r.global_batch = 8;
  r.micro_batch = 2;
  r.state_bits = 8;
  r.gradients = Gradients::bf16;
  EXPECT_EQ(change_text(r, {bits(Step::states, Step::split8)}), "states 8, master split8");
  EXPECT_EQ(change_text(r, {bits(Step::fused_update)}), "fused_update, gradients fp32, micro_batch auto");
  EXPECT_EQ(change_text(r, {bits(Step::adafactor)}), "optimizer adafactor, states auto");
  EXPECT_EQ(change_text(r, {bits(Step::host_memory), 3 * mebibyte}), "host_memory 3145728");
  EXPECT_EQ(flags_text("fused_update, gradients fp32, micro_batch auto"),
            "--fused-update --gradients fp32 --micro-batch auto");
  EXPECT_EQ(flags_text("host_memory 3145728, seq 512"), "--host-memory 3MiB --seq 512");
  EXPECT_EQ(flags_text(""), "");
  EXPECT_EQ(effect_text({bits(Step::micro_batch, Step::host_memory)}), "");
  EXPECT_FALSE(changes_numerics(bits(Step::micro_batch, Step::host_memory)));
  EXPECT_TRUE(changes_numerics(bits(Step::micro_batch, Step::sequence)));
}

TEST(Offers, StrongerStepsContainWeakerOnes) {
  EXPECT_TRUE(contains(bits(Step::states, Step::stochastic), bits(Step::split8)));
  EXPECT_TRUE(contains(bits(Step::nf4), bits(Step::int8)));
  EXPECT_FALSE(contains(bits(Step::int8), bits(Step::nf4)));
  EXPECT_FALSE(contains(bits(Step::states), bits(Step::states, Step::gradients)));
}

// Every offer is possible, no offer comes twice, and no offer comes before one that it contains.
TEST(Offers, AreInOrder) {
  Alternatives alternatives;
  alternatives.source = [](const ModelChange&, const Request&) -> Result<GraphSource> {
    return Error{Code::unsupported, ""};
  };
  Request r;
  r.global_batch = 8;
  r.sequence = 512;
  r.micro_batch = 2;
  r.recompute = Recompute::none;
  r.state_bits = 32;
  for (Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    r.precision = precision;
    const Steps possible = possible_steps(r, false, alternatives);
    EXPECT_EQ((possible & bit(Step::precision)) != 0, precision != Precision::bf16);
    EXPECT_EQ(possible & bit(Step::model), 0u) << "no presets were given";
    EXPECT_EQ(free_offers(possible), (std::vector<Steps>{bits(Step::micro_batch), bits(Step::recompute),
                                                         bits(Step::micro_batch, Step::recompute)}));
    for (const std::vector<Steps>& list : {format_offers(possible), adapter_offers(possible, false)}) {
      EXPECT_EQ(std::set<Steps>(list.begin(), list.end()).size(), list.size());
      for (size_t i = 0; i < list.size(); ++i) {
        EXPECT_EQ(list[i] & ~possible, 0u);
        for (size_t k = i + 1; k < list.size(); ++k) EXPECT_FALSE((list[k] & list[i]) == list[k]) << i << k;
      }
    }
    for (Steps smallest : smallest_formats(possible)) {
      const std::vector<Steps> list = format_offers(possible);
      EXPECT_NE(std::find(list.begin(), list.end(), smallest), list.end());
    }
    r.keep = keep_numerics;
    EXPECT_EQ(possible_steps(r, false, alternatives),
              bits(Step::micro_batch, Step::recompute, Step::host_memory));
    r.keep = keep_precision;
    EXPECT_EQ(possible_steps(r, false, alternatives), possible & ~bit(Step::precision));
    r.keep = 0;
  }
  const Steps with_adapters = possible_steps(r, true, alternatives);
  EXPECT_EQ(with_adapters & bits(Step::lora, Step::states, Step::adafactor), 0u);
  EXPECT_EQ(adapter_offers(with_adapters, true).front(), bits(Step::int8));
}

}  // namespace
}  // namespace stw
