// Tests buffers with constraints against exhaustive search, with a judge that checks every byte at every
// moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "kernels/contract/sizes.h"
#include "planner/pack/constraints.h"
#include "tests/planner/pack/pack_status.h"

namespace stw {
namespace {

using Buffers = std::vector<Interval>;
using Rules = std::vector<Constraint>;

// Whether the buffer takes this byte at this moment.
bool takes(const Interval& buffer, const Constraint& rule, int64_t moment, uint64_t byte) {
  if (moment < buffer.lower || moment >= buffer.upper) return false;
  for (const Gap& gap : rule.gaps)
    if (gap.lower <= moment && moment < gap.upper) return gap.first <= byte && byte < gap.end;
  return true;
}

bool takes_any(const Interval& buffer, const Constraint& rule) {
  for (int64_t moment = buffer.lower; moment < buffer.upper; ++moment)
    for (uint64_t byte = 0; byte < buffer.size; ++byte)
      if (takes(buffer, rule, moment, byte)) return true;
  return false;
}

bool overlap(const Buffers& buffers, const Rules& rules, size_t a, uint64_t at, size_t b, uint64_t bt) {
  const Interval &x = buffers[a], &y = buffers[b];
  for (int64_t moment = std::max(x.lower, y.lower); moment < std::min(x.upper, y.upper); ++moment)
    for (uint64_t byte = 0; byte < x.size; ++byte)
      if (takes(x, rules[a], moment, byte) && at + byte >= bt && takes(y, rules[b], moment, at + byte - bt) &&
          at + byte - bt < y.size)
        return true;
  return false;
}

// The error in an answer, or an empty text.
std::string complaint(const Buffers& buffers, const Rules& rules, const Packing& p, uint64_t capacity) {
  if (p.offsets.size() != buffers.size()) return "number of offsets";
  uint64_t height = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (rules[i].offset && p.offsets[i] != *rules[i].offset)
      return std::to_string(i) + " is not where it was given";
    if (!takes_any(buffers[i], rules[i])) continue;
    height = std::max(height, p.offsets[i] + buffers[i].size);
    if (p.offsets[i] % rules[i].alignment != 0) return std::to_string(i) + " is not aligned";
    for (size_t k = 0; k < i; ++k)
      if (overlap(buffers, rules, i, p.offsets[i], k, p.offsets[k]))
        return std::to_string(i) + " and " + std::to_string(k) + " overlap";
  }
  if (p.height != height) return "the height is " + std::to_string(height);
  return wrong_status(p, height, capacity);
}

bool is_reachable(const Buffers& buffers, const Rules& rules, uint64_t capacity,
                  std::vector<uint64_t>& offsets) {
  const size_t i = offsets.size();
  if (i == buffers.size()) return true;
  if (!takes_any(buffers[i], rules[i])) {
    offsets.push_back(0);
    const bool found = is_reachable(buffers, rules, capacity, offsets);
    offsets.pop_back();
    return found;
  }
  for (uint64_t at = 0; at + buffers[i].size <= capacity; ++at) {
    if (at % rules[i].alignment != 0 || (rules[i].offset && at != *rules[i].offset)) continue;
    bool is_free = true;
    for (size_t k = 0; k < i && is_free; ++k)
      is_free = !takes_any(buffers[k], rules[k]) || !overlap(buffers, rules, i, at, k, offsets[k]);
    if (!is_free) continue;
    offsets.push_back(at);
    const bool found = is_reachable(buffers, rules, capacity, offsets);
    offsets.pop_back();
    if (found) return true;
  }
  return false;
}

uint64_t exhaustive_height(const Buffers& buffers, const Rules& rules) {
  std::vector<uint64_t> offsets;
  uint64_t height = 0;
  while (!is_reachable(buffers, rules, height, offsets)) ++height;
  return height;
}

struct Instance {
  Buffers buffers;
  Rules rules;
};

Instance random_instance(std::mt19937_64& random, bool aligned, bool gaps, bool windows, bool given) {
  Instance made;
  const size_t count = 2 + random() % 4;
  for (size_t i = 0; i < count; ++i) {
    Interval b{static_cast<int64_t>(random() % 5) - 2, 0, random() % 7};
    b.upper = b.lower + static_cast<int64_t>(random() % 6);
    Constraint c;
    const uint64_t alignments[] = {1, 1, 2, 3, 4, 6, 8};
    if (aligned) c.alignment = alignments[random() % 7];
    for (int64_t at = b.lower; gaps && at < b.upper; ++at) {
      if (random() % 3 != 0) continue;
      Gap gap{at, std::min(b.upper, at + 1 + static_cast<int64_t>(random() % 2)), 0, 0};
      if (windows && b.size > 0)
        gap.first = random() % b.size, gap.end = gap.first + random() % (b.size - gap.first + 1);
      c.gaps.push_back(gap);
      at = gap.upper;
    }
    if (given && random() % 3 == 0) c.offset = random() % 4 * c.alignment;
    made.buffers.push_back(b);
    made.rules.push_back(c);
  }
  return made;
}

TEST(PackConstraints, AreAsLowAsExhaustiveSearchFinds) {
  std::mt19937_64 random(5);
  int contradictions = 0, searched = 0;
  for (int round = 0; round < 1600; ++round) {
    const Instance it = random_instance(random, round & 1, round & 2, round & 4, round & 8);
    if (const auto pair = contradiction(it.buffers, it.rules)) {
      ++contradictions;
      const auto& [a, b] = *pair;
      EXPECT_TRUE(a == b || overlap(it.buffers, it.rules, a, *it.rules[a].offset, b, *it.rules[b].offset));
      continue;
    }
    const uint64_t least = exhaustive_height(it.buffers, it.rules);
    const Packing p = pack_constrained(it.buffers, it.rules, {0, 100'000});
    ASSERT_EQ(complaint(it.buffers, it.rules, p, 0), "") << round;
    ASSERT_EQ(p.height, least) << round;
    ASSERT_EQ(p.status, PackStatus::optimal) << round;
    searched += p.nodes > 0;
    for (const uint64_t capacity : {least, least + 1, least > 1 ? least - 1 : 0}) {
      if (capacity == 0) continue;
      const Packing within = pack_constrained(it.buffers, it.rules, {capacity, 100'000});
      ASSERT_EQ(complaint(it.buffers, it.rules, within, capacity), "") << round;
      ASSERT_EQ(within.status == PackStatus::infeasible, capacity < least) << round;
      ASSERT_NE(within.status, PackStatus::unknown) << round;
    }
  }
  EXPECT_GT(contradictions, 20);
  EXPECT_GT(searched, 25);
}

// Without nodes the answers are still correct.
TEST(PackConstraints, HoldWithoutASearch) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 800; ++round) {
    const Instance it = random_instance(random, true, round & 1, round & 2, round & 4);
    if (contradiction(it.buffers, it.rules)) continue;
    const uint64_t least = exhaustive_height(it.buffers, it.rules);
    for (const uint64_t nodes : {0, 1, 3}) {
      const Packing p = pack_constrained(it.buffers, it.rules, {0, nodes});
      ASSERT_EQ(complaint(it.buffers, it.rules, p, 0), "") << round;
      ASSERT_LE(p.bound, least) << round;
    }
  }
}

TEST(PackConstraints, OfMiniMalloc) {
  const auto height = [](const Buffers& buffers, const Rules& rules) {
    const Packing p = pack_constrained(buffers, rules, {0, 100'000});
    EXPECT_EQ(complaint(buffers, rules, p, 0), "");
    EXPECT_EQ(p.status, PackStatus::optimal);
    return p.height;
  };
  // The last buffer need not be filled up to its alignment.
  EXPECT_EQ(height({{0, 10, 3}, {0, 10, 8}, {0, 10, 5}}, {{}, {64, {}, {}}, {64, {}, {}}}), 69u);
  // One buffer lies in the other's gap.
  EXPECT_EQ(height({{0, 10, 4}, {3, 7, 4}}, {{1, {}, {{3, 7, 0, 0}}}, {}}), 4u);
  EXPECT_EQ(height({{0, 10, 4}, {3, 8, 4}}, {{1, {}, {{3, 7, 0, 0}}}, {}}), 8u);
  EXPECT_EQ(height({{0, 10, 4}, {3, 7, 3}}, {{1, {}, {{3, 7, 0, 1}}}, {}}), 4u);
  // A given offset splits the free space.
  EXPECT_EQ(height({{0, 4, 1}, {0, 4, 6}, {0, 4, 5}}, {{1, 5, {}}, {}, {}}), 12u);
  EXPECT_EQ(height({{0, 4, 1}, {5, 6, 6}}, {{1, 100, {}}, {}}), 101u);
  // Without constraints it is pack().
  const Buffers free = {{0, 1, 3}, {0, 3, 3}, {1, 4, 2}, {2, 5, 2}, {3, 6, 2}, {4, 8, 3}, {6, 8, 3}};
  EXPECT_EQ(pack_constrained(free, Rules(free.size()), {0, 1000}).offsets, pack(free, {0, 1000}).offsets);
}

TEST(PackConstraints, OfManyBuffers) {
  std::mt19937_64 random(7);
  Buffers buffers;
  Rules rules;
  for (int i = 0; i < 1000; ++i) {
    const auto lower = static_cast<int64_t>(random() % 1500);
    buffers.push_back({lower, lower + 1 + static_cast<int64_t>(random() % 60), 1 + random() % 5000});
    rules.push_back({uint64_t{1} << random() % 9, {}, {}});
    if (random() % 8 == 0) rules.back().gaps.push_back({lower, lower + 1, 0, 0});
  }
  const Packing p = pack_constrained(buffers, rules, {0, 20'000});
  EXPECT_LT(static_cast<double>(p.height), static_cast<double>(p.bound) * 1.2);
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(p.offsets[i] % rules[i].alignment, 0u);
    for (size_t k = 0; k < i; ++k) {
      const bool together = std::max(buffers[i].lower + (rules[i].gaps.empty() ? 0 : 1),
                                     buffers[k].lower + (rules[k].gaps.empty() ? 0 : 1)) <
                            std::min(buffers[i].upper, buffers[k].upper);
      EXPECT_TRUE(!together || p.offsets[i] + buffers[i].size <= p.offsets[k] ||
                  p.offsets[k] + buffers[k].size <= p.offsets[i]);
    }
  }
}

TEST(PackConstraints, OfSizesWithoutEnd) {
  EXPECT_GE(pack_constrained({{0, 1, UINT64_MAX}, {0, 1, 1}}, {{2, {}, {}}, {}}, {0, 100}).height,
            size_limit);
  EXPECT_GE(pack_constrained({{0, 1, size_limit / 2}, {0, 1, size_limit / 2}, {0, 1, 1}},
                             {{2, {}, {}}, {}, {}}, {0, 100})
                .height,
            size_limit);
  EXPECT_GE(pack_constrained({{0, 1, 1}, {0, 1, 1}, {0, 1, 1}},
                             {{UINT64_MAX, {}, {}}, {UINT64_MAX, {}, {}}, {}}, {0, 100})
                .height,
            size_limit);
  const Packing p = pack_constrained({{0, 1, size_limit / 4}, {0, 1, 7}},
                                     {{size_limit / 2, {}, {}}, {3, size_limit / 4 / 3 * 3, {}}}, {0, 100});
  EXPECT_EQ(p.height, size_limit / 2 + size_limit / 4);
  EXPECT_EQ(p.status, PackStatus::optimal);
}

}  // namespace
}  // namespace stw
