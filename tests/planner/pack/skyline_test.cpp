// The trees under the skyline, compared with plain loops, and passes of the skyline.
#include "planner/pack/skyline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "kernels/contract/sizes.h"

namespace stw {
namespace {

std::vector<Block> random_blocks(std::mt19937_64& random, size_t count, int sections, uint64_t largest) {
  std::vector<Block> blocks(count);
  for (Block& b : blocks) {
    b.first = static_cast<int>(random() % static_cast<uint64_t>(sections));
    b.end = b.first + 1 + static_cast<int>(random() % static_cast<uint64_t>(sections - b.first));
    b.size = 1 + random() % largest;
  }
  return blocks;
}

bool lies_in(const Block& b, const Window& w) {
  return w.first_low <= b.first && b.first <= w.first_high && w.end_low <= b.end && b.end <= w.end_high &&
         w.size_low <= b.size && b.size <= w.size_high;
}

TEST(BlockTree, FindsTheHighestRankInEveryWindow) {
  std::mt19937_64 random(1);
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    const int sections = 1 + static_cast<int>(random() % 40);
    const std::vector<Block> blocks = random_blocks(random, random() % 200, sections, 1 + random() % 50);
    std::vector<int> order(blocks.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    BlockTree tree(blocks);
    tree.reset(order);
    std::vector<int> left = order;
    for (int query = 0; query < 200; ++query) {
      const auto range = [&](int& low, int& high) {
        low = static_cast<int>(random() % static_cast<uint64_t>(sections + 1));
        high = low + static_cast<int>(random() % static_cast<uint64_t>(sections + 1));
      };
      Window w;
      range(w.first_low, w.first_high);
      range(w.end_low, w.end_high);
      if (random() % 2) w.size_low = w.size_high = 1 + random() % 50;
      size_t from = 0;
      int below = -1;
      if (random() % 2 && !left.empty()) {
        from = random() % left.size();
        below = left[from++];
      }
      const auto at = std::find_if(left.begin() + static_cast<ptrdiff_t>(from), left.end(),
                                   [&](int b) { return lies_in(blocks[static_cast<size_t>(b)], w); });
      ASSERT_EQ(tree.highest(w, below), at == left.end() ? -1 : *at);
      found += at != left.end();
      if (at != left.end() && random() % 2) {
        EXPECT_TRUE(tree.contains(*at));
        tree.remove(*at);
        EXPECT_FALSE(tree.contains(*at));
        left.erase(at);
      }
    }
  }
  EXPECT_GT(found, 5000);
}

TEST(ReachTree, FindsTheHighestSectionInEveryRange) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<uint64_t> reach(1 + random() % 100);
    for (uint64_t& r : reach) r = random() % 1000;
    ReachTree tree(static_cast<int>(reach.size()));
    tree.reset(reach);
    for (int step = 0; step < 200; ++step) {
      const size_t begin = random() % reach.size(), end = begin + 1 + random() % (reach.size() - begin);
      if (random() % 2) {
        const uint64_t by = random() % 100;
        tree.raise(static_cast<int>(begin), static_cast<int>(end), by);
        for (size_t s = begin; s < end; ++s) reach[s] += by;
      }
      const auto top = std::max_element(reach.begin() + static_cast<ptrdiff_t>(begin),
                                        reach.begin() + static_cast<ptrdiff_t>(end));
      const ReachTree::Top found = tree.top(static_cast<int>(begin), static_cast<int>(end));
      ASSERT_EQ(found.reach, *top);
      ASSERT_EQ(found.section, top - reach.begin());
      ASSERT_EQ(tree.top().reach, *std::max_element(reach.begin(), reach.end()));
    }
  }
}

// Every complete pass is a packing. A limit ends a pass exactly if the pass would reach it.
TEST(Skyline, PassesPackEveryBlockBelowTheirLimit) {
  using Fit = SkylineRules::Fit;
  std::mt19937_64 random(3);
  int stopped = 0;
  for (int round = 0; round < 300; ++round) {
    Sections sections;
    sections.count = 1 + static_cast<int>(random() % 20);
    sections.blocks = random_blocks(random, 1 + random() % 60, sections.count, 1 + random() % 1000);
    std::vector<int> order(sections.blocks.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Skyline skyline(sections);
    const std::vector<uint64_t> totals = section_totals(sections);
    const uint64_t bound = *std::max_element(totals.begin(), totals.end());
    for (const bool over_top : {false, true}) {
      for (const Fit fit : {Fit::any, Fit::flush, Fit::level}) {
        GreedyPacking packing, limited;
        ASSERT_TRUE(skyline.pack(order, {over_top, fit}, bound, size_limit, packing));
        EXPECT_EQ(skyline.placed(), order.size());
        uint64_t height = 0;
        for (size_t i = 0; i < order.size(); ++i) {
          const Block& a = sections.blocks[i];
          height = std::max(height, packing.offsets[i] + a.size);
          for (size_t k = 0; k < i; ++k) {
            const Block& b = sections.blocks[k];
            EXPECT_TRUE(a.end <= b.first || b.end <= a.first ||
                        packing.offsets[i] + a.size <= packing.offsets[k] ||
                        packing.offsets[k] + b.size <= packing.offsets[i]);
          }
        }
        EXPECT_EQ(packing.height, height);
        EXPECT_TRUE(skyline.pack(order, {over_top, fit}, bound, height + 1, limited));
        EXPECT_EQ(limited.offsets, packing.offsets);
        EXPECT_FALSE(skyline.pack(order, {over_top, fit}, bound, height, limited));
        stopped += skyline.placed() < order.size();
      }
    }
  }
  EXPECT_GT(stopped, 900);
}

}  // namespace
}  // namespace stw
