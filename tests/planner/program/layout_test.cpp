#include "planner/program/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace stw {
namespace {

// The judge compares every pair.
void expect_valid(const std::vector<Interval>& intervals, const Placement& p) {
  ASSERT_EQ(p.offsets.size(), intervals.size());
  uint64_t height = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& a = intervals[i];
    height = std::max(height, p.offsets[i] + a.size);
    for (size_t k = i + 1; k < intervals.size(); ++k) {
      const Interval& b = intervals[k];
      const bool together = a.lower < b.upper && b.lower < a.upper;
      const bool apart = p.offsets[i] + a.size <= p.offsets[k] || p.offsets[k] + b.size <= p.offsets[i];
      ASSERT_TRUE(!together || apart) << i << " and " << k;
    }
  }
  EXPECT_EQ(p.height, height);
  // The bound, moment by moment.
  uint64_t bound = 0;
  for (const Interval& at : intervals) {
    uint64_t live = 0;
    for (const Interval& it : intervals) live += it.lower <= at.lower && at.lower < it.upper ? it.size : 0;
    bound = std::max(bound, live);
  }
  EXPECT_EQ(p.bound, bound);
  EXPECT_GE(p.height, p.bound);
}

TEST(Layout, RandomIntervals) {
  std::mt19937 random(1);
  double worst = 1;
  for (int round = 0; round < 500; ++round) {
    std::vector<Interval> intervals(random() % 60);
    for (Interval& i : intervals) {
      i.lower = static_cast<int64_t>(random() % 50);
      i.upper = i.lower + 1 + static_cast<int64_t>(random() % (round % 2 ? 5 : 30));
      i.size = 64 * (1 + random() % 100);
    }
    const Placement p = place(intervals);
    expect_valid(intervals, p);
    EXPECT_EQ(place(intervals).offsets, p.offsets);
    if (p.bound > 0) worst = std::max(worst, static_cast<double>(p.height) / static_cast<double>(p.bound));
  }
  EXPECT_LT(worst, 1.6);
}

TEST(Layout, EmptyAndSingle) {
  EXPECT_EQ(place({}).height, 0u);
  const Placement one = place({{3, 9, 640}});
  EXPECT_EQ(one.height, 640u);
  EXPECT_EQ(one.offsets[0], 0u);
}

// Lifetimes that nest or follow one another, as saved activations do: an exact fit exists, and the search
// finds it.
TEST(Layout, NestedLivesReachTheBound) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const int64_t depth = 2 + static_cast<int64_t>(random() % 30);
    std::vector<Interval> intervals;
    for (int64_t i = 0; i < depth; ++i) {
      intervals.push_back({i, 4 * depth - i, 64 * (1 + random() % 50)});  // kept until backward
      intervals.push_back({i, i + 1, 64 * (1 + random() % 50)});          // free at once
      intervals.push_back({4 * depth - i - 1, 4 * depth - i, 64 * (1 + random() % 50)});
    }
    std::shuffle(intervals.begin(), intervals.end(), random);
    const Placement p = place(intervals);
    expect_valid(intervals, p);
    EXPECT_EQ(p.height, p.bound);
  }
}

TEST(Layout, ProgramOffsetsAreAligned) {
  Program program;
  program.base = 4096;
  program.instructions.resize(10);
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    Buffer b;
    b.bytes = 1 + random() % 1000;
    b.first = static_cast<int>(random() % 10);
    b.last = b.first + static_cast<int>(random() % static_cast<unsigned>(10 - b.first));
    program.buffers.push_back(b);
  }
  program.caches = {4, 2};
  for (int c : program.caches) {
    program.buffers[c].first = 0;
    program.buffers[c].last = 9;
  }
  lay_out(program, 256);
  EXPECT_EQ(program.buffers[4].offset, 4096u);
  EXPECT_EQ(program.buffers[2].offset, 4096 + round_up(program.buffers[4].bytes, 256));
  uint64_t end = 0;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& a = program.buffers[i];
    EXPECT_EQ(a.offset % 256, 0u);
    EXPECT_GE(a.offset, program.base);
    end = std::max(end, a.offset + round_up(a.bytes, 256));
    for (size_t k = 0; k < i; ++k) {
      const Buffer& b = program.buffers[k];
      if (a.first <= b.last && b.first <= a.last) {
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
  }
  EXPECT_EQ(program.end, end);
  EXPECT_LE(live_bound(program, 256), program.end);
}

}  // namespace
}  // namespace stw
