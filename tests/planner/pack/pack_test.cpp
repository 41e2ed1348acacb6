#include "planner/pack/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "kernels/contract/sizes.h"
#include "tests/planner/pack/pack_status.h"

namespace stw {
namespace {

using Intervals = std::vector<Interval>;

bool together(const Interval& a, const Interval& b) {
  return a.size && b.size && a.lower < a.upper && b.lower < b.upper && a.lower < b.upper && b.lower < a.upper;
}

uint64_t live_maximum(const Intervals& intervals) {
  uint64_t most = 0;
  for (const Interval& at : intervals) {
    uint64_t live = 0;
    for (const Interval& it : intervals) live += it.lower <= at.lower && at.lower < it.upper ? it.size : 0;
    most = std::max(most, at.lower < at.upper ? live : 0);
  }
  return most;
}

// The judge compares every pair and does not know how the packing was made. Returns the error, or an empty
// text.
std::string complaint(const Intervals& intervals, const Packing& p, uint64_t capacity) {
  if (p.offsets.size() != intervals.size()) return "number of offsets";
  uint64_t height = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& a = intervals[i];
    if (together(a, a)) height = std::max(height, p.offsets[i] + a.size);
    for (size_t k = i + 1; k < intervals.size(); ++k) {
      const Interval& b = intervals[k];
      const bool apart = p.offsets[i] + a.size <= p.offsets[k] || p.offsets[k] + b.size <= p.offsets[i];
      if (together(a, b) && !apart) return std::to_string(i) + " and " + std::to_string(k) + " overlap";
    }
  }
  if (p.height != height) return "the height is " + std::to_string(height);
  if (p.bound < live_maximum(intervals)) return "the bound is below what lives at once";
  return wrong_status(p, height, capacity);
}

Packing packed(const Intervals& intervals, uint64_t capacity, uint64_t node_limit) {
  const Packing p = pack(intervals, {capacity, node_limit});
  EXPECT_EQ(complaint(intervals, p, capacity), "");
  return p;
}

Intervals random_intervals(std::mt19937_64& random, size_t count, uint64_t times, uint64_t longest,
                           uint64_t largest) {
  Intervals intervals(count);
  for (Interval& i : intervals) {
    i.lower = static_cast<int64_t>(random() % times) - static_cast<int64_t>(times / 2);
    i.upper = i.lower + 1 + static_cast<int64_t>(random() % longest);
    i.size = 1 + random() % largest;
  }
  return intervals;
}

// Cuts a rectangle of time and memory at random. The pieces fill it to the last byte.
void cut(std::mt19937_64& random, Interval whole, size_t pieces, Intervals& out) {
  const uint64_t life = static_cast<uint64_t>(whole.upper - whole.lower);
  if (pieces == 1 || (life < pieces && whole.size < pieces)) return out.push_back(whole);
  const bool memory = life < pieces || (whole.size >= pieces && random() % 2);
  const size_t first = 1 + random() % (pieces - 1);
  Interval a = whole, b = whole;
  if (memory) {
    a.size = first + random() % (whole.size - pieces + 1);
    b.size = whole.size - a.size;
  } else {
    a.upper = b.lower = whole.lower + static_cast<int64_t>(first + random() % (life - pieces + 1));
  }
  cut(random, a, first, out);
  cut(random, b, pieces - first, out);
}

Intervals guillotine(uint64_t seed, size_t pieces, int64_t time, uint64_t capacity) {
  std::mt19937_64 random(seed);
  Intervals out;
  cut(random, {0, time, capacity}, pieces, out);
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

// The least height of all packings. One of the lowest packings is made by placing the buffers in some order,
// each on top of those below it.
uint64_t exhaustive_height(const Intervals& intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  uint64_t least = intervals.empty() ? 0 : UINT64_MAX;
  std::vector<uint64_t> offsets(intervals.size());
  do {
    uint64_t height = 0;
    for (size_t k = 0; k < order.size() && height < least; ++k) {
      uint64_t offset = 0;
      for (size_t j = 0; j < k; ++j)
        if (together(intervals[order[j]], intervals[order[k]]))
          offset = std::max(offset, offsets[order[j]] + intervals[order[j]].size);
      offsets[order[k]] = offset;
      height = std::max(height, offset + intervals[order[k]].size);
    }
    least = std::min(least, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Pack, JudgeSeesEveryKindOfMistake) {
  const Intervals intervals = guillotine(1, 20, 1000, 1000);
  const Packing good = packed(intervals, 1000, 1000);
  ASSERT_EQ(good.status, PackStatus::optimal);
  for (size_t i = 0; i < intervals.size(); ++i) {
    Packing moved = good;  // there is no spare byte, so every move is an error
    moved.offsets[i] += 1;
    EXPECT_NE(complaint(intervals, moved, 1000), "");
    if (good.offsets[i] == 0) continue;
    moved.offsets[i] -= 2;
    EXPECT_NE(complaint(intervals, moved, 1000), "");
  }
  Packing wrong = good;
  wrong.height = 999;
  EXPECT_NE(complaint(intervals, wrong, 1000), "");
  wrong = good;
  wrong.bound = 999;
  EXPECT_NE(complaint(intervals, wrong, 1000), "");
  wrong = good;
  wrong.offsets.pop_back();
  EXPECT_NE(complaint(intervals, wrong, 1000), "");
  for (const PackStatus status : {PackStatus::fits, PackStatus::infeasible, PackStatus::unknown}) {
    wrong = good;
    wrong.status = status;
    EXPECT_NE(complaint(intervals, wrong, 1000), "");
  }
}

TEST(Pack, NothingTakesNoSpace) {
  EXPECT_EQ(packed({}, 0, 100).height, 0u);
  EXPECT_EQ(packed({}, 5, 100).status, PackStatus::optimal);
  const Packing p = packed({{3, 3, 100}, {5, 2, 100}, {0, 9, 0}, {1, 4, 7}}, 0, 100);
  EXPECT_EQ(p.height, 7u);
  EXPECT_EQ(p.bound, 7u);
  EXPECT_EQ(p.offsets, std::vector<uint64_t>(4, 0));
}

TEST(Pack, LivesAreHalfOpen) {
  EXPECT_EQ(packed({{0, 5, 8}, {5, 9, 6}}, 0, 100).height, 8u);
  EXPECT_EQ(packed({{0, 6, 8}, {5, 9, 6}}, 0, 100).height, 14u);
  EXPECT_EQ(packed({{INT64_MIN, INT64_MAX, 1}, {INT64_MIN, 0, 2}, {0, INT64_MAX, 3}}, 0, 100).height, 4u);
}

// Small problems, for which all packings can be tried: claims that a packing is the lowest, or that none
// exists, are true.
TEST(Pack, ProofsAreTrue) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 600; ++round) {
    const Intervals intervals =
        random_intervals(random, random() % 8, 1 + random() % 8, 1 + random() % 5, 1 + random() % 7);
    const uint64_t least = exhaustive_height(intervals);
    const Packing p = packed(intervals, 0, 20000);
    EXPECT_EQ(p.height, least);
    EXPECT_EQ(p.status, PackStatus::optimal);
    for (uint64_t capacity = least - std::min<uint64_t>(least, 3); capacity <= least + 1; ++capacity) {
      if (capacity == 0) continue;
      const Packing within = packed(intervals, capacity, 20000);
      if (capacity < least) EXPECT_EQ(within.status, PackStatus::infeasible);
      else EXPECT_LE(within.height, capacity);
    }
  }
}

// At most 7 bytes live at once, but the least height is 8. Random changes give similar problems.
Intervals out_of_reach(std::mt19937_64& random) {
  Intervals intervals{{0, 1, 3}, {0, 3, 3}, {1, 4, 2}, {2, 5, 2}, {3, 6, 2}, {4, 8, 3}, {6, 8, 3}};
  const uint64_t scale = 1 + random() % 9;
  for (Interval& i : intervals) {
    i.size = i.size * scale - random() % ((scale + 3) / 4);
    if (random() % 8 == 0) i.upper += 1;
  }
  if (random() % 2) intervals.push_back(random_intervals(random, 1, 8, 4, scale)[0]);
  std::shuffle(intervals.begin(), intervals.end(), random);
  return intervals;
}

TEST(Pack, ProofsAreTrueWhereTheBoundIsOutOfReach) {
  EXPECT_EQ(
      packed({{0, 1, 3}, {0, 3, 3}, {1, 4, 2}, {2, 5, 2}, {3, 6, 2}, {4, 8, 3}, {6, 8, 3}}, 0, 100).height,
      8u);
  std::mt19937_64 random(2);
  int proofs = 0;
  for (int round = 0; round < 400; ++round) {
    const Intervals intervals = out_of_reach(random);
    const uint64_t least = exhaustive_height(intervals), bound = live_maximum(intervals);
    const Packing p = packed(intervals, 0, 20000);
    EXPECT_EQ(p.height, least);
    EXPECT_EQ(p.status, PackStatus::optimal);
    proofs += least > bound;
    for (uint64_t capacity = bound; capacity < least; ++capacity)
      EXPECT_EQ(packed(intervals, capacity, 20000).status, PackStatus::infeasible);
  }
  EXPECT_GT(proofs, 100);
}

// Full rectangles with some pieces removed fit into the rectangle.
TEST(Pack, NeverRulesOutAPlacementThatFits) {
  std::mt19937_64 random(8);
  int unfinished = 0;
  const int rounds = 1500;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t capacity = 1 + random() % 200;
    Intervals intervals =
        guillotine(random(), 5 + random() % 40, 5 + static_cast<int64_t>(random() % 60), capacity);
    for (Interval& i : intervals) {
      if (random() % 8 == 0) i.size -= random() % i.size;
      if (random() % 8 == 0)
        i.upper -= static_cast<int64_t>(random() % static_cast<uint64_t>(i.upper - i.lower + 1));
    }
    const Packing p = packed(intervals, capacity, 3000);
    EXPECT_NE(p.status, PackStatus::infeasible);
    unfinished += p.status == PackStatus::unknown;
  }
  EXPECT_LT(unfinished, rounds / 100);
}

TEST(Pack, RandomProblemsOfAllShapes) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 400; ++round) {
    const uint64_t times = 1 + random() % 60, longest = 1 + random() % 30,
                   largest = uint64_t{1} << random() % 40;
    const Intervals intervals = random_intervals(random, random() % 80, times, longest, largest);
    const Packing p = packed(intervals, 0, 300);
    const Packing greedy = packed(intervals, 0, 0);
    EXPECT_EQ(greedy.nodes, 0u);
    EXPECT_LE(p.height, greedy.height);
    if (p.height == 0) continue;
    EXPECT_LE(packed(intervals, p.height, 300).height, p.height);
    const uint64_t capacity = 1 + random() % (p.height * 2);
    packed(intervals, capacity, 300);
  }
}

TEST(Pack, FullRectanglesOfUpTo100Buffers) {
  uint64_t most = 0;
  for (const size_t pieces : {2, 5, 10, 20, 40, 70, 100}) {
    for (const int64_t time : {60, 1000, 1000000}) {
      for (uint64_t seed = 0; seed < 40; ++seed) {
        const Intervals intervals = guillotine(seed, pieces, time, 1 << 20);
        const Packing p = packed(intervals, 1 << 20, 60000);
        EXPECT_EQ(p.status, PackStatus::optimal) << pieces << " pieces, " << time << " times, seed " << seed;
        most = std::max(most, p.nodes);
      }
    }
  }
  RecordProperty("most_nodes", static_cast<int>(most));
}

// The greedy orders miss some full rectangles by more than a third. The search does not.
TEST(Pack, SearchClosesGapsOfGreedyOrders) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    const Intervals intervals = guillotine(seed, 24, 60, 1000);
    const Packing greedy = packed(intervals, 0, 0);
    worst = std::max(worst, static_cast<double>(greedy.height) / 1000 - 1);
    if (greedy.height == 1000) continue;
    EXPECT_EQ(packed(intervals, 0, 5000).height, 1000u) << seed;
  }
  EXPECT_GT(worst, 0.33);
}

TEST(Pack, TheQuickHeightBoundsEveryPacking) {
  std::mt19937_64 random(3);
  int enough = 0;
  for (int round = 0; round < 200; ++round) {
    const Intervals intervals = random_intervals(random, 1 + random() % 200, 60, 1 + random() % 30, 900);
    const uint64_t quick = height_by_begin(intervals);
    for (const uint64_t nodes : {0, 60, 2000}) EXPECT_LE(packed(intervals, 0, nodes).height, quick);
    const Packing first = pack(intervals, {.capacity = 0, .node_limit = 2000, .enough = quick});
    EXPECT_EQ(complaint(intervals, first, 0), "");
    EXPECT_LE(first.height, quick);
    enough += first.height == quick;
  }
  EXPECT_EQ(enough, 200) << "a packing that is low enough ends the search";
}

// Repacking tries orders that learn from the orders before them. It lowers the height even with too few
// decisions for the search to succeed.
TEST(Pack, RepackingLowersWhatTheOrdersMissed) {
  int missed = 0, lowered = 0, closed = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Intervals intervals = guillotine(seed, 60, 200, 1000);
    const Packing greedy = packed(intervals, 0, 0), again = packed(intervals, 0, 60);
    if (greedy.height == 1000) continue;
    ++missed;
    lowered += again.height < greedy.height;
    closed += again.height == 1000;
    EXPECT_LE(packed(intervals, again.height, 60).height, again.height) << seed;
  }
  EXPECT_GT(missed, 150);
  EXPECT_GT(lowered, missed / 2);
  RecordProperty("closed", closed);
}

// The same for more buffers than blocks_for_a_list (greedy.cpp). They are repacked only if the first order
// came near the bound. The buffers are full rectangles, one after the other in time, on top of a buffer that
// lives as long as all of them.
TEST(Pack, RepackingLowersNearMissesOfManyBuffers) {
  int missed = 0, closed = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Intervals intervals{{0, 200 * 20, 29000}};
    for (int64_t part = 0; part < 200; ++part)
      for (Interval i : guillotine(seed * 200 + static_cast<uint64_t>(part), 8, 20, 1000)) {
        i.lower += 20 * part;
        i.upper += 20 * part;
        intervals.push_back(i);
      }
    const Packing greedy = packed(intervals, 0, 0), again = packed(intervals, 0, 60);
    EXPECT_LE(again.height, greedy.height);
    missed += greedy.height > 30000;
    closed += greedy.height > 30000 && again.height == 30000;
  }
  EXPECT_GT(missed, 30);
  EXPECT_GT(closed, missed / 2);
}

TEST(Pack, SameProblemSamePacking) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    const Intervals intervals = random_intervals(random, 60, 40, 20, 1000);
    const Packing a = pack(intervals, {0, 3000}), b = pack(intervals, {0, 3000});
    EXPECT_EQ(a.offsets, b.offsets);
    EXPECT_EQ(a.nodes, b.nodes);
    EXPECT_EQ(a.bound, b.bound);
  }
}

TEST(Pack, StopsAtTheNodeLimit) {
  std::mt19937_64 random(5);
  bool reached = false;
  for (int round = 0; round < 30; ++round) {
    const Intervals intervals = random_intervals(random, 100, 60, 30, 1 << 20);
    const Packing p = packed(intervals, 0, 2000);
    EXPECT_LE(p.nodes, 2000u);
    reached |= p.status == PackStatus::fits && p.nodes > 1000;
    EXPECT_EQ(packed(intervals, p.height - 1, 1).status == PackStatus::optimal, false);
  }
  EXPECT_TRUE(reached);
}

// One part cannot reach its live bytes. Its least height bounds the whole.
TEST(Pack, PartsThatShareNoTimeBoundTheWhole) {
  std::mt19937_64 random(6);
  int raised = 0;
  for (int round = 0; round < 100; ++round) {
    const Intervals hard = out_of_reach(random);
    const uint64_t least = exhaustive_height(hard), bound = live_maximum(hard);
    raised += least > bound;
    Intervals both = hard;
    for (const Interval& i : guillotine(random(), 10, 1000, bound))
      both.push_back({i.lower + 20, i.upper + 20, i.size});
    EXPECT_EQ(packed(both, bound, 20000).status,
              least > bound ? PackStatus::infeasible : PackStatus::optimal);
    const Packing p = packed(both, 0, 20000);
    EXPECT_EQ(p.height, least);
    EXPECT_EQ(p.status, PackStatus::optimal);
  }
  EXPECT_GT(raised, 20);
}

TEST(Pack, HugeSizesSaturate) {
  const uint64_t huge = uint64_t{1} << 61;
  EXPECT_EQ(packed({{0, 2, huge}, {1, 3, huge - 1}}, 0, 100).height, size_limit - 1);
  for (const uint64_t size : {size_limit, UINT64_MAX}) {
    const Intervals intervals{{0, 2, size}, {1, 3, size}, {0, 3, 5}};
    for (const uint64_t capacity : {uint64_t{0}, uint64_t{1000}, size_limit, UINT64_MAX}) {
      const Packing p = pack(intervals, {capacity, 100});
      EXPECT_EQ(p.height, size_limit);
      EXPECT_EQ(p.bound, size_limit);
      EXPECT_EQ(p.status, capacity == 1000 ? PackStatus::infeasible : PackStatus::unknown);
    }
  }
  const Packing large = packed({{0, 2, huge / 2}, {1, 3, huge / 2}, {0, 3, huge / 4}}, UINT64_MAX, 100);
  EXPECT_EQ(large.height, huge + huge / 4);
}

// The buffers of a model of a thousand blocks: activations that are kept until backward, and short lives at
// both ends.
TEST(Pack, FortyThousandBuffers) {
  std::mt19937_64 random(7);
  Intervals intervals;
  const int64_t blocks = 1000, steps = 30, end = 2 * blocks * steps;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t forward = b * steps, backward = end - forward - steps;
    auto add = [&](int64_t lower, int64_t upper) {
      intervals.push_back({lower, upper, 256 * (1 + random() % 4000)});
    };
    for (int64_t i = 0; i < 12; ++i) add(forward + 2 * i, backward + steps - 2 * i);
    for (int64_t i = 0; i < 8; ++i) add(forward + 3 * i, forward + 3 * i + 3);
    for (int64_t i = 0; i < 20; ++i) add(backward + i, backward + i + 3);
  }
  const Packing p = pack(intervals, {0, 1500});
  EXPECT_LE(p.height, p.bound + p.bound / 1000);
  // Comparing every pair would take 800 million comparisons. So the test sweeps over time, and compares each
  // buffer only with those that are alive.
  std::vector<size_t> order(intervals.size()), alive;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return intervals[a].lower < intervals[b].lower; });
  size_t overlaps = 0;
  for (size_t i : order) {
    // Buffers that are kept until backward are compared below, as the lifetimes of any two of them nest.
    if (intervals[i].upper - intervals[i].lower > 3) continue;
    std::erase_if(alive, [&](size_t k) { return intervals[k].upper <= intervals[i].lower; });
    for (size_t k : alive)
      overlaps +=
          p.offsets[i] < p.offsets[k] + intervals[k].size && p.offsets[k] < p.offsets[i] + intervals[i].size;
    alive.push_back(i);
  }
  EXPECT_EQ(overlaps, 0u);
  std::vector<size_t> kept;
  for (size_t i : order)
    if (intervals[i].upper - intervals[i].lower > 3) kept.push_back(i);
  for (size_t i = 0; i < kept.size(); i += 7)  // compares a sample of the kept ones with all
    for (size_t k = 0; k < intervals.size(); ++k)
      if (k != kept[i] && together(intervals[k], intervals[kept[i]]))
        overlaps += p.offsets[kept[i]] < p.offsets[k] + intervals[k].size &&
                    p.offsets[k] < p.offsets[kept[i]] + intervals[kept[i]].size;
  EXPECT_EQ(overlaps, 0u);
}

}  // namespace
}  // namespace stw
