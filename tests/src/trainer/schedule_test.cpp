// Learning rates over the steps of a run.
#include "src/trainer/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stw::schedule_test {
namespace {

TEST(Schedule, WarmsUpFromItsFirstShare) {
  for (ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::constant,
                            ScheduleKind::warmup_stable_decay, ScheduleKind::inverse_root}) {
    const Schedule s{kind, 1e-3, 1e-4, 10, 100, 20};
    for (uint64_t step = 0; step < 10; ++step)
      EXPECT_DOUBLE_EQ(s.at(step), 1e-4 * static_cast<double>(step + 1));
    if (kind != ScheduleKind::inverse_root) { EXPECT_DOUBLE_EQ(s.at(10), 1e-3); }
  }
}

// The highest rate is exactly the one that was asked for, to the last bit, because logs show it.
TEST(Schedule, FallsFromTheFullRate) {
  for (ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::warmup_stable_decay})
    for (double rate : {3e-4, 1e-3, 6e-4, 1e-2}) {
      const Schedule s{kind, rate, rate / 10, 4, 100, 20};
      EXPECT_EQ(s.at(4), rate);
      EXPECT_EQ(s.at(kind == ScheduleKind::warmup_stable_decay ? 80 : 4), rate);
    }
}

TEST(Schedule, FallsAsItsNameSays) {
  const Schedule cosine{ScheduleKind::cosine, 1e-3, 1e-4, 10, 110, 0},
      linear{ScheduleKind::linear, 1e-3, 1e-4, 10, 110, 0};
  EXPECT_NEAR(cosine.at(60), 5.5e-4, 1e-12);
  EXPECT_NEAR(cosine.at(35), 1e-4 + 0.5 * (1 + std::sqrt(0.5)) * 9e-4, 1e-12);
  EXPECT_NEAR(linear.at(35), 1e-4 + 0.75 * 9e-4, 1e-12);
  for (const Schedule& s : {cosine, linear}) {
    EXPECT_DOUBLE_EQ(s.at(110), 1e-4);
    EXPECT_DOUBLE_EQ(s.at(1000), 1e-4);
  }
  EXPECT_DOUBLE_EQ((Schedule{ScheduleKind::constant, 1e-3, 1e-4, 0, 10, 0}.at(99)), 1e-3);
}

TEST(Schedule, IsStableUntilItsDecay) {
  const Schedule s{ScheduleKind::warmup_stable_decay, 1e-3, 0, 10, 100, 20};
  for (uint64_t step : {10, 50, 79, 80}) EXPECT_DOUBLE_EQ(s.at(step), 1e-3) << step;
  EXPECT_DOUBLE_EQ(s.at(90), 5e-4);
  EXPECT_NEAR(s.at(99), 5e-5, 1e-15);
  EXPECT_DOUBLE_EQ(s.at(100), 0);
  // No decay at all.
  EXPECT_DOUBLE_EQ((Schedule{ScheduleKind::warmup_stable_decay, 1e-3, 0, 0, 100, 0}.at(99)), 1e-3);
}

TEST(Schedule, InverseRootHalvesWithFourTimesTheSteps) {
  const Schedule s{ScheduleKind::inverse_root, 1e-3, 1e-5, 100, 1, 0};
  EXPECT_DOUBLE_EQ(s.at(99), 1e-3);
  EXPECT_DOUBLE_EQ(s.at(399), 5e-4);
  EXPECT_DOUBLE_EQ(s.at(1599), 2.5e-4);
  EXPECT_DOUBLE_EQ(s.at(100000000), 1e-5);
  // Without warm-up the rate falls from the first step on.
  EXPECT_DOUBLE_EQ((Schedule{ScheduleKind::inverse_root, 1e-3, 0, 0, 1, 0}.at(3)), 5e-4);
}

TEST(Schedule, RatesScaleWithTheRootOfTheBatch) {
  EXPECT_DOUBLE_EQ(scaled_rate(1e-3, 64, 256), 2e-3);
  EXPECT_DOUBLE_EQ(scaled_rate(1e-3, 64, 16), 5e-4);
  EXPECT_DOUBLE_EQ(scaled_rate(1e-3, 7, 7), 1e-3);
}

}  // namespace
}  // namespace stw::schedule_test
