// Compares arenas that are counted program by program with whole plans, and counts the layouts.
#include "planner/program/arena_sizes.h"

#include "planner/plan/plan.h"
#include "tests/planner/random_graphs.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

TEST(ArenaSizes, EqualThoseOfWholePlans) {
  std::mt19937 random(11);
  std::vector<Graph> graphs = small_graphs();
  for (Graph& g : frozen_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : fused_graphs()) graphs.push_back(std::move(g));
  for (uint32_t seed = 0; seed < 20; ++seed) graphs.push_back(RandomModel(seed).graph({}));
  add_small_tiles(graphs);
  int gaps = 0;
  const KnownHeights of_all;
  for (const Graph& g : graphs) {
    // `sizes` knows the layouts of all graphs so far, and other programs of this graph.
    const auto known = std::make_shared<KnownHeights>(of_all.for_another_graph());
    for (int kind = 0; kind < 3; ++kind) {
      Offload offload;
      if (kind > 0 && !g.fuses_updates())
        for (int& n : offload.parts) n = static_cast<int>(random() % static_cast<uint32_t>(g.blocks() + 1));
      offload.overlap = kind == 2 && offload.any();
      constexpr int64_t batch = 7;
      constexpr uint64_t alignment = 64;
      const auto arena = std::make_shared<const Arena>(make_arena(g, alignment, offload));
      ArenaSizes asked(g, arena, batch, 2), sizes(g, arena, batch, 2, known);
      for (int round = 0; round < 6; ++round) {
        Decisions d = random_decisions(g, random, batch);
        if (g.fuses_updates()) d.micro_batch = batch;
        d.offload = offload;
        const Programs whole = make_programs(g, d, batch, 2, alignment);
        const uint64_t bytes = whole.arena_bytes;
        gaps += bytes > whole.bound_bytes;
        // The answers do not depend on the order of the questions.
        for (int question = 0; question < 4; ++question) {
          const uint64_t limit = bytes - bytes / 50 + random() % (bytes / 25);
          EXPECT_EQ(asked.within(d, limit), bytes <= limit) << g.architecture;
        }
        EXPECT_TRUE(asked.within(d, bytes));
        EXPECT_FALSE(asked.within(d, bytes - 1));
        EXPECT_EQ(asked.of(d), bytes);
        EXPECT_EQ(sizes.of(d), bytes);
        const auto price = [](const Program& p, bool is_update) {
          return p.instructions.size() * (is_update ? 1000 : 1);
        };
        EXPECT_EQ(sizes.fixed_live_bytes(), asked.fixed_live_bytes());
        EXPECT_EQ(sizes.fixed_picoseconds(price), asked.fixed_picoseconds(price));
      }
    }
  }
  EXPECT_GT(gaps, 0) << "layouts without gaps alone prove little";
}

TEST(ArenaSizes, LayOutOnlyNeededPrograms) {
  const Graph g = small_graphs()[0];
  const auto arena = std::make_shared<const Arena>(make_arena(g, 64));
  ArenaSizes sizes(g, arena, 7, 2);
  Decisions d = uniform_decisions(g, 0, 2);
  const Programs whole = make_programs(g, d, 7, 2, 64);
  // Less than the live bytes of the first micro-step.
  EXPECT_FALSE(sizes.within(d, live_bound(whole.micro_first, 64) - 1));
  EXPECT_EQ(sizes.layouts(), 0);
  EXPECT_TRUE(sizes.within(d, size_limit));
  // The first micro-step, the micro-step of the last sample, and evaluation have layouts of their own. The
  // update, prefill and decode are laid out once for all plans.
  EXPECT_EQ(sizes.layouts(), 6);
  EXPECT_TRUE(sizes.within(d, size_limit));
  EXPECT_EQ(sizes.layouts(), 6);
  d.saved[1] ^= 1;
  EXPECT_TRUE(sizes.within(d, size_limit));
  // The programs of the evaluation are equal.
  EXPECT_EQ(sizes.layouts(), 8);
}

}  // namespace
}  // namespace stw
