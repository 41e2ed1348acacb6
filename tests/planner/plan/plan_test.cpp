// The search as a whole: the promises about budgets, and the judge's approval of every plan.
#include "planner/plan/plan.h"

#include <algorithm>

#include "planner/base/json.h"
#include "tests/planner/device/calibrated_profiles.h"
#include "tests/planner/plans.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

void sweep(const std::string& name, Request r, int points, const Adapters& adapters = {}) {
  const auto model = open(name, 0, adapters);
  r.memory_bytes = uint64_t{1} << 50;
  const uint64_t most = make(*model, r)->plan.bytes.peak;
  r.memory_bytes = 1;
  const auto none = make(*model, r);
  ASSERT_FALSE(none->plan.fits);
  const uint64_t least = none->plan.minimum_bytes;
  ASSERT_EQ(none->plan.bytes.peak, least) << "the plan shown is the smallest one";
  uint64_t peak = 0, seconds = UINT64_MAX;
  for (int i = 0; i <= points; ++i) {
    r.memory_bytes = least + (most - least) / static_cast<uint64_t>(points) * static_cast<uint64_t>(i);
    const auto planned = make(*model, r);
    ASSERT_TRUE(planned->plan.fits) << name << " " << r.memory_bytes;
    EXPECT_GE(planned->plan.bytes.peak, peak) << name << ": a tighter budget has a higher peak";
    EXPECT_LE(planned->plan.step_picoseconds, seconds) << name << ": a looser budget is slower";
    EXPECT_EQ(planned->plan.minimum_bytes, least);
    peak = planned->plan.bytes.peak;
    seconds = planned->plan.step_picoseconds;
  }
  r.memory_bytes = least - 1;
  const auto below = make(*model, r);
  EXPECT_FALSE(below->plan.fits);
  EXPECT_EQ(below->plan.minimum_bytes, least);
}

TEST(Budget, SmallModels) {
#ifdef STW_SANITIZED
  const int points = 6;
#else
  const int points = 24;
#endif
  sweep(small_encoders("0.1")[0], request(12, 33), points);
  sweep(small_encoders("0.1")[3], request(12, 33), points / 4, adapters_of_all(0.1));
  for (const std::string& config : small_models("0.1")) {
    sweep(config, request(12, 33), points);
    Request r = request(7, 33);
    r.state_bits = 8;
    r.precision = Precision::bf16;
    sweep(config, r, points / 2);
    r.recompute = Recompute::none;
    sweep(config, r, points / 4);
    r.recompute = Recompute::full;
    r.micro_batch = 3;
    sweep(config, r, 3);
  }
}

TEST(Budget, Presets) {
  sweep("nano", request(12, 64), 8);
  sweep("gpt2", request(8, 256), 6);
}

// States have 32 bits unless they do not fit or cost more than a tenth of the speed. The plan records the
// reason.
TEST(Budget, StatesAreChosen) {
  const auto model = open("nano");
  Request r = request(12, 256);
  r.memory_bytes = 1;
  const uint64_t least32 = make(*model, r)->plan.minimum_bytes;
  r.state_bits = 8;
  const uint64_t least8 = make(*model, r)->plan.minimum_bytes;
  ASSERT_LT(least8, least32);
  r.state_bits = 0;
  EXPECT_EQ(make(*model, r)->plan.minimum_bytes, least8);
  r.memory_bytes = least32 - 1;
  auto planned = make(*model, r);
  EXPECT_TRUE(planned->plan.fits);
  EXPECT_EQ(planned->plan.numerics.state_bits, 8);
  EXPECT_EQ(planned->plan.states_reason, "32-bit states do not fit");
  r.memory_bytes = uint64_t{1} << 40;
  planned = make(*model, r);
  EXPECT_EQ(planned->plan.numerics.state_bits, 32);
  EXPECT_EQ(planned->plan.states_reason, "32-bit states fit");
  for (uint64_t i = 0; i <= 8; ++i) {
    r.memory_bytes = least32 + (least32 / 2) * i / 8;
    planned = make(*model, r);
    ASSERT_TRUE(planned->plan.fits);
    Request pinned = r;
    pinned.state_bits = 32;
    const double wide = static_cast<double>(make(*model, pinned)->plan.step_picoseconds);
    pinned.state_bits = 8;
    const double narrow = static_cast<double>(make(*model, pinned)->plan.step_picoseconds);
    EXPECT_EQ(planned->plan.numerics.state_bits, wide * 0.9 > narrow ? 8 : 32) << r.memory_bytes;
  }
}

TEST(Search, ForcedChoicesAreKept) {
  const auto model = open(small_llama());
  for (int64_t m : {1, 2, 5, 7}) {
    Request r = request(7, 33);
    r.micro_batch = m;
    r.recompute = Recompute::none;
    auto planned = make(*model, r);
    EXPECT_EQ(planned->plan.decisions.micro_batch, m);
    EXPECT_EQ(planned->plan.recompute_picoseconds, 0u);
    auto json = parse_json(planned->json);
    EXPECT_TRUE(json->find("recompute")->elements().empty());
    r.recompute = Recompute::full;
    planned = make(*model, r);
    for (size_t s = 0; s < planned->graph.segments.size(); ++s)
      if (planned->graph.segments[s].kind == SegmentKind::block) {
        EXPECT_EQ(planned->plan.decisions.saved[s], 0u);
      }
    json = parse_json(planned->json);
    EXPECT_EQ(json->find("recompute")->elements().size(), 1u);
  }
}

// What a policy recomputes stays the same, however much memory there is, and the plan's figure for unlimited
// memory is that of the policy too.
TEST(Search, MoreMemoryKeepsThePolicysRecompute) {
  const auto model = open(small_llama());
  for (Recompute recompute : {Recompute::choose, Recompute::none, Recompute::full}) {
    Request r = request(7, 33);
    r.recompute = recompute;
    r.state_bits = 0;
    const auto ample = make(*model, r);
    EXPECT_EQ(ample->plan.step_picoseconds, ample->plan.unlimited_picoseconds);
    EXPECT_EQ(ample->plan.states_reason, "32-bit states fit");
    EXPECT_NE(ample->report.find("more memory would not help"), std::string::npos);
    r.state_bits = 32;
    r.memory_bytes = 1;
    r.memory_bytes = make(*model, r)->plan.minimum_bytes;
    EXPECT_EQ(make(*model, r)->plan.unlimited_picoseconds, ample->plan.unlimited_picoseconds);
  }
}

// With twice the shares a step is faster, but not twice as fast, because the launches stay.
TEST(Search, FollowsTheCalibratedFigures) {
  const auto model = open(small_gpt2());
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    Request r = request(12, 33);
    const auto plain = make(*model, r);
    r.calibrated = random_profile("cpu", seed);
    const auto same = make(*model, r);
    EXPECT_NE(same->plan.step_picoseconds, plain->plan.step_picoseconds);
    for (Calibration::Op& op : r.calibrated->calibration.ops) op.permille *= 2;
    r.calibrated->product_permille *= 2;
    r.calibrated->stream_permille *= 2;
    const auto faster = make(*model, r);
    EXPECT_LT(faster->plan.step_picoseconds, same->plan.step_picoseconds);
    EXPECT_GT(faster->plan.step_picoseconds, same->plan.step_picoseconds / 2);
    r.calibrated->launch_nanoseconds *= 10;
    for (Calibration::Op& op : r.calibrated->calibration.ops) op.launch_nanoseconds *= 10;
    EXPECT_GT(make(*model, r)->plan.step_picoseconds, faster->plan.step_picoseconds);
  }
}

TEST(Search, RefusesInvalidRequests) {
  const auto model = open(small_llama());
  auto code = [&](const Request& r) {
    auto planned = Planned::make(*model, r);
    return planned ? Code::ok : planned.error().code;
  };
  Request r = request(4, 33);
  EXPECT_EQ(code(r), Code::ok);
  r.device = "abacus";
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 33);
  r.calibrated = random_profile("h100", 1);
  EXPECT_EQ(code(r), Code::bad_argument);
  r.device = "h100";
  EXPECT_EQ(code(r), Code::ok);
  r = request(0, 33);
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(-1, 33);
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 0);
  EXPECT_EQ(code(r), Code::unsupported_shape);
  r = request(4, 41);
  EXPECT_EQ(code(r), Code::unsupported_shape);
  r = request(4, 33);
  r.micro_batch = 5;
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 33);
  for (int threads : {0, -1, 1025}) {
    r.threads = threads;
    EXPECT_EQ(code(r), Code::bad_argument);
  }
  r = request(int64_t{1} << 31, 33);
  EXPECT_EQ(code(r), Code::bad_argument);
  r = request(4, 33, 0);
  EXPECT_EQ(code(r), Code::bad_argument);  // the processor's memory is unknown here
}

// ---- presets on devices ---------------------------------------------------------------------------------

TEST(Search, EveryPresetHasACorrectPlan) {
  const char* devices[] = {"rtx4060", "rtx4090", "a100-80gb", "h200"};
  for (size_t i = 0; preset_name(i); ++i) {
    auto model = open(preset_name(i));
    if (architecture_of(model->config()).is_encoder) model = open(preset_name(i), 2);
    Request r = request(16, std::min<int64_t>(model->config().positions, 1024), 0);
    r.device = devices[i % 4];
    r.precision = Precision::bf16;
    r.state_bits = 0;
    r.threads = 1;
    const auto planned = make(*model, r);
    ASSERT_TRUE(planned) << preset_name(i);
    EXPECT_EQ(planned->plan.bytes.budget, find_device(r.device)->memory_bytes);
    EXPECT_EQ(planned->plan.bytes.reserve, find_device(r.device)->reserve_bytes);
    for (const Buffer& b : planned->programs.arena.persistent) EXPECT_EQ(b.offset % 256, 0u);
  }
}

// Tiles of larger heads do not fit into the shared memory of every card.
TEST(Search, LargeHeadsWithRelativePositionsAreRefusedOnGpus) {
  std::string config = small_deberta();
  const std::string heads = R"("num_attention_heads": 5)", width = R"("hidden_size": 40)";
  config.replace(config.find(heads), heads.size(), R"("num_attention_heads": 1)");
  config.replace(config.find(width), width.size(), R"("hidden_size": 136)");
  const auto model = open(classifier_of(config));
  Request r = request(2, 16);
  EXPECT_TRUE(make(*model, r));
  r.device = "rtx4090";
  const auto refused = Planned::make(*model, r);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("at most 128 elements"), std::string::npos)
      << refused.error().message;
}

// With many threads layouts have gaps. Then the smallest arena is not the one with the fewest live bytes.
TEST(Search, TheMinimumIsTheSmallestBudgetThatWorks) {
  const auto model = open("gpt2");
  Request r = request(3, 200, 0);
  r.threads = 128;
  r.state_bits = 8;
  r.memory_bytes = 1;
  const uint64_t minimum = make(*model, r)->plan.minimum_bytes;
  r.memory_bytes = minimum;
  EXPECT_EQ(make(*model, r)->plan.bytes.peak, minimum);
  for (const uint64_t less : {uint64_t{1}, uint64_t{100000}, uint64_t{614400}, uint64_t{1} << 20}) {
    r.memory_bytes = minimum - less;
    EXPECT_FALSE(make(*model, r)->plan.fits) << less;
  }
}

// Sizes and times at the limits of 64 bits give answers or errors, and do not wrap.
TEST(Search, SizesBeyond64BitsAreRefused) {
  for (const char* name : {"nano", "llama-1b", "gpt2-xl"}) {
    const auto model = open(name);
    for (const int64_t batch : {int64_t{100000000}, int64_t{400000000}, int64_t{INT32_MAX}})
      for (const int64_t micro : {int64_t{0}, int64_t{1}, batch})
        for (const uint64_t budget : {uint64_t{1} << 30, uint64_t{1} << 46, uint64_t{1} << 62}) {
          Request r = request(batch, model->config().positions, budget);
          r.micro_batch = micro;
          const auto planned = Planned::make(*model, r);
          if (!planned) {
            EXPECT_EQ(planned.error().code, Code::bad_argument) << planned.error().message;
            continue;
          }
          const Plan& p = (*planned)->plan;
          EXPECT_LT(p.step_picoseconds, size_limit);
          EXPECT_TRUE(!p.fits || p.bytes.peak <= budget);
        }
  }
}

TEST(Search, IsDeterministic) {
  for (const char* name : {"llama-8b", "smollm-360m"}) {
    Request r = request(32, 2048, 0);
    r.device = name == std::string("llama-8b") ? "b200" : "rtx4060";
    r.precision = Precision::bf16;
    const std::string first = make(*open(name), r)->json;
    EXPECT_EQ(make(*open(name), r)->json, first);
  }
}

}  // namespace
}  // namespace stw
