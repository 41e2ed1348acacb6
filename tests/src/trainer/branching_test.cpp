// Networks whose segments read outputs of several earlier segments: the same bits as in one segment, at every
// split and plan.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/planner/branching_graphs.h"
#include "tests/src/trainer/running_graph.h"

namespace stw::branching_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = Running::batch_size;

Trained train(Running& run) {
  Trained trained;
  for (uint64_t step = 0; step < 2; ++step) {
    trained.figures.push_back(run.forward_and_backward(step));
    run.update();
    trained.figures.push_back(run.state().grad_norm);
    EXPECT_EQ(run.state().skip, 0u);
  }
  trained.state = run.bytes();
  return trained;
}
Trained train(const Graph& graph, const Decisions& decisions) {
  Running run(graph, decisions);
  return train(run);
}

Numerics numerics_of(Precision precision, bool is_fused = false) {
  Numerics n;
  n.precision = precision, n.fused_update = is_fused;
  return n;
}

// In one segment, all activations are kept, and no gradient passes from one segment to another.
TEST(Branching, TrainsTheBitsOfOneSegment) {
  for (const Branching branching : all_branchings)
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const Numerics n = numerics_of(precision);
      const Graph whole = branching_graph(branching, n, true), graph = branching_graph(branching, n);
      ASSERT_EQ(whole.segments.size(), 2u);
      const Trained expected = train(whole, decisions_of(whole, batch_size, ~0u));
      EXPECT_GT(expected.figures[1], 0);
      for (const int64_t micro_batch : {1, 2, 3, 5})
        for (const uint32_t saved : {~0u, 0u, 5u, 2u})
          expect_same(train(graph, decisions_of(graph, micro_batch, saved, micro_batch)), expected);
      for (const bool overlap : {false, true}) {
        Decisions d = decisions_of(graph, 2, 0);
        d.offload.parts = {graph.blocks() + 1, 0, graph.blocks(), graph.blocks(), graph.blocks()};
        d.offload.overlap = overlap;
        d.offload.slice = 256;
        expect_same(train(graph, d), expected);
      }
    }
}

// Feed-forward parts that run in tiles, some of them shorter than the others.
TEST(Branching, TilesTrainTheBitsOfOneSegment) {
  constexpr int64_t sequence = 290, tile_rows = 256;
  for (const Branching branching : all_branchings) {
    const Graph whole = branching_graph(branching, {}, true, sequence),
                graph = branching_graph(branching, {}, false, sequence);
    Decisions d = decisions_of(graph, 3, 0);
    for (const Segment& s : graph.segments) d.tile_rows.push_back(may_tile(graph, s, 0) ? tile_rows : 0);
    EXPECT_EQ(std::count(d.tile_rows.begin(), d.tile_rows.end(), tile_rows), graph.blocks());
    expect_same(train(graph, d), train(whole, decisions_of(whole, batch_size, ~0u)));
  }
}

TEST(Branching, UpdatesInsideTheBackwardPassTrainTheBitsOfOneSegment) {
  for (const Branching branching : all_branchings) {
    const Numerics n = numerics_of(Precision::fp32, true);
    const Graph whole = branching_graph(branching, n, true), graph = branching_graph(branching, n);
    const Trained expected = train(whole, decisions_of(whole, batch_size, ~0u));
    for (const uint32_t saved : {~0u, 0u, 3u})
      expect_same(train(graph, decisions_of(graph, batch_size, saved)), expected);
  }
}

// The derivative of the loss along the gradient of a matrix is the gradient's length. Several paths lead from
// block 0 or 1 to the loss.
TEST(Branching, TheGradientIsTheDerivativeOfTheLoss) {
  for (const Branching branching : all_branchings)
    for (const char* name : {"block.0.down", "block.1.down"}) {
      const Graph graph = branching_graph(branching);
      Running run(graph, decisions_of(graph, 5, 0));
      run.forward_and_backward(0);
      const std::vector<float> gradient = run.gradients(name)[0];
      double length = 0;
      for (const float g : gradient) length += static_cast<double>(g) * static_cast<double>(g);
      length = std::sqrt(length);
      const auto loss_at = [&](double distance) {
        Running moved(graph, decisions_of(graph, 5, ~0u));
        float* values = moved.values<float>(name);
        for (size_t i = 0; i < gradient.size(); ++i)
          values[i] += static_cast<float>(distance * static_cast<double>(gradient[i]) / length);
        return moved.forward_and_backward(0);
      };
      constexpr double step = 1e-2;
      EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), length, 4e-3 * length) << name;
    }
}

// Plans at every budget: the programs have the bytes that the search counted, and train the same bits.
TEST(Branching, PlansOfEveryBudgetTrainTheSameBits) {
  for (const Branching branching : all_branchings)
    for (const bool offloads : {false, true}) {
      Request r;
      r.global_batch = batch_size, r.sequence = 20, r.threads = 1, r.state_bits = 32;
      r.memory_bytes = uint64_t{1} << 30;
      if (offloads) r.host_bytes = uint64_t{1} << 30;
      const GraphSource source = [&](const Numerics& n) { return branching_graph(branching, n); };
      const auto loose = search(source, r);
      ASSERT_TRUE(loose) << loose.error().message;
      const Trained expected =
          train(source(loose->numerics), decisions_of(source(loose->numerics), batch_size, ~0u));
      const uint64_t room = loose->bytes.peak - loose->minimum_bytes;
      ASSERT_GT(room, 0u);
      std::set<uint64_t> peaks;
      for (uint64_t part = 0; part <= 6; ++part) {
        r.memory_bytes = loose->minimum_bytes + room * part / 6;
        const auto plan = search(source, r);
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_TRUE(plan->fits);
        EXPECT_LE(plan->bytes.peak, r.memory_bytes);
        if (!offloads) { EXPECT_EQ(plan->bound_picoseconds, plan->step_picoseconds); }
        const Graph graph = source(plan->numerics);
        const auto programs = realize(graph, *plan);
        ASSERT_TRUE(programs) << programs.error().message;
        Running run(graph, plan->decisions);
        EXPECT_EQ(run.arena_bytes(), plan->bytes.arena);
        expect_same(train(run), expected);
        peaks.insert(plan->bytes.peak);
      }
      EXPECT_GE(peaks.size(), 3u);
      r.memory_bytes = loose->minimum_bytes - 1;
      const auto none = search(source, r);
      ASSERT_TRUE(none) << none.error().message;
      EXPECT_FALSE(none->fits);
    }
}

}  // namespace
}  // namespace stw::branching_test
