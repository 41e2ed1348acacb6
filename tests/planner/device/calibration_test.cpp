// The fit, tested with times that a known profile predicts.
#include "planner/device/calibration.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "planner/search/pricing.h"
#include "tests/planner/device/calibrated_profiles.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

double seconds(uint64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }

// The times that a device with that profile would take for a step of `micro_batch` samples, and for one
// sample in addition.
std::vector<TimedOp> times(const Graph& graph, const DeviceProfile& truth, int threads, int64_t micro_batch) {
  std::vector<TimedOp> ops;
  const Arena arena = make_arena(graph, 64);
  const Decisions d = uniform_decisions(graph, ~0u, micro_batch);
  auto add = [&](const Program& program, uint64_t count) {
    for (const Instruction& i : program.instructions) {
      const Cost cost = cost_of(graph, i, threads);
      ops.push_back({i.kind, cost,
                     seconds(op_picoseconds(truth, i.kind, graph.peak_of(graph.op(i.op)), threads, cost)),
                     count, graph.peak_of(graph.op(i.op))});
    }
  };
  add(build_micro(graph, arena, d, micro_batch, threads, true), 3);
  add(build_update(graph, arena, threads), 1);
  if (micro_batch > 1) add(build_micro(graph, arena, d, 1, threads, true), 0);
  return ops;
}

double step_of(std::span<const TimedOp> ops) {
  double sum = 0;
  for (const TimedOp& op : ops) sum += op.seconds * static_cast<double>(op.count);
  return sum;
}

TEST(Calibration, FindsTheFiguresThatPredictedTheTimes) {
  Numerics numerics;
  numerics.precision = Precision::bf16;
  for (const Graph& graph : small_graphs())
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      DeviceProfile truth = random_profile("cpu", seed);
      truth.gflops_fp32 = truth.gflops_bf16 = 1;  // slow enough that work is visible next to the launch
      truth.gbytes_per_second = 1;
      DeviceProfile base = truth;
      base.calibration = {};
      base.launch_nanoseconds = 3000;
      base.product_permille = base.stream_permille = 900;
      const std::vector<TimedOp> ops = times(graph, truth, 2, 8);
      const DeviceProfile found = calibrated(base, numerics, 2, ops, step_of(ops));
      for (const OpKind kind : {OpKind::linear, OpKind::norm, OpKind::attention, OpKind::adamw}) {
        const Calibration::Op& is = found.calibration.ops[static_cast<size_t>(kind)];
        const Calibration::Op& was = truth.calibration.ops[static_cast<size_t>(kind)];
        if (is.permille == 0) continue;  // 8-bit states
        std::set<uint64_t> sizes;
        for (const TimedOp& op : ops)
          if (op.kind == kind) sizes.insert(op.cost.bytes);
        EXPECT_TRUE(sizes.size() > 1 || kind == OpKind::adamw);
        if (sizes.size() == 1) continue;  // one time alone cannot separate launch and work
        // The general shares of attention and streams differ. So either may bound attention, by its size.
        if (kind == OpKind::attention && was.permille == 0) continue;
        const double launch =
            static_cast<double>(was.permille ? was.launch_nanoseconds : truth.launch_nanoseconds);
        EXPECT_NEAR(static_cast<double>(is.launch_nanoseconds), launch, 0.05 * launch + 100)
            << op_row(kind).name << " seed " << seed;
        if (was.permille == 0) continue;
        EXPECT_NEAR(is.permille, was.permille, 0.02 * was.permille + 1)
            << op_row(kind).name << " seed " << seed;
      }
      EXPECT_EQ(found.calibration.threads, 2);
      EXPECT_EQ(found.calibration.precision, Precision::bf16);
      EXPECT_NEAR(static_cast<double>(found.calibration.step_nanoseconds), step_of(ops) * 1e9, 1);
      double step = 0;
      for (const TimedOp& op : ops)
        step += static_cast<double>(op.count) * seconds(op_picoseconds(found, op.kind, op.peak, 2, op.cost));
      EXPECT_NEAR(step, step_of(ops), 0.01 * step_of(ops)) << "the timed step is priced as measured";
      // Extents other than the timed ones are priced correctly too.
      double price = 0, truly = 0;
      for (const TimedOp& op : times(graph, truth, 2, 3)) {
        price += seconds(op_picoseconds(found, op.kind, op.peak, 2, op.cost));
        truly += op.seconds;
      }
      EXPECT_NEAR(price, truly, 0.03 * truly) << "seed " << seed;
    }
}

// A single time may be all launch or all work. Such ops take the launch of the others, and do not contribute
// to it.
TEST(Calibration, TimesOfOneExtentSayNothingOfTheLaunch) {
  DeviceProfile truth = *find_device("cpu");
  truth.calibration = {};
  truth.launch_nanoseconds = 5000;
  truth.product_permille = truth.stream_permille = 500;
  std::vector<TimedOp> ops;
  auto add = [&](OpKind kind, const Cost& cost) {
    ops.push_back({kind, cost, seconds(op_picoseconds(truth, kind, Peak::fp32, 1, cost)), 1, Peak::fp32});
  };
  for (uint64_t n : {1, 2, 4}) add(OpKind::linear, {n * 1'000'000, 0});
  for (OpKind kind : {OpKind::norm, OpKind::activation, OpKind::gated}) add(kind, {0, 5'000'000});
  const DeviceProfile found = calibrated(*find_device("cpu"), {}, 1, ops, step_of(ops));
  EXPECT_NEAR(static_cast<double>(found.launch_nanoseconds), 5000, 250);
  const Calibration::Op& norm = found.calibration.ops[static_cast<size_t>(OpKind::norm)];
  EXPECT_EQ(norm.launch_nanoseconds, found.launch_nanoseconds);
  EXPECT_NEAR(norm.permille, 500, 2);
  EXPECT_NEAR(found.product_permille, 500, 10);
  EXPECT_NEAR(found.stream_permille, 500, 2);
}

// Attention has a measurement of its own. Kinds that were not timed are priced with the share of their own
// group.
TEST(Calibration, AttentionAndProductsHaveSharesOfTheirOwn) {
  DeviceProfile truth = *find_device("h100");
  truth.launch_nanoseconds = 5000, truth.product_permille = 600, truth.attention_permille = 200;
  std::vector<TimedOp> ops;
  for (const OpKind kind : {OpKind::linear, OpKind::attention})
    for (uint64_t n : {1, 2, 4}) {
      const Cost cost{n * 1'000'000'000'000, 0};
      ops.push_back({kind, cost, seconds(op_picoseconds(truth, kind, Peak::wgmma, 0, cost)), 1, Peak::wgmma});
    }
  const DeviceProfile found = calibrated(*find_device("h100"), {}, 0, ops, step_of(ops));
  EXPECT_NEAR(found.product_permille, 600, 6);
  EXPECT_NEAR(found.attention_permille, 200, 2);
  const Cost cost{3'000'000'000'000, 0};
  for (const OpKind kind : {OpKind::linear_input_gradient, OpKind::attention_gradient}) {
    const double was = seconds(op_picoseconds(truth, kind, Peak::wgmma, 0, cost));
    EXPECT_NEAR(seconds(op_picoseconds(found, kind, Peak::wgmma, 0, cost)), was, 0.02 * was)
        << op_row(kind).name;
  }
}

// A slower base must not influence the result: only its peaks count.
TEST(Calibration, IgnoresTheFiguresThatItReplaces) {
  const Graph graph = graph_of(small_llama());
  const std::vector<TimedOp> ops = times(graph, *find_device("cpu"), 1, 4);
  const DeviceProfile one = calibrated(*find_device("cpu"), {}, 1, ops, 1);
  const DeviceProfile other = calibrated(random_profile("cpu", 9), {}, 1, ops, 1);
  for (size_t k = 0; k < op_kind_count; ++k) {
    EXPECT_EQ(one.calibration.ops[k].permille, other.calibration.ops[k].permille) << k;
    EXPECT_EQ(one.calibration.ops[k].launch_nanoseconds, other.calibration.ops[k].launch_nanoseconds) << k;
    EXPECT_EQ(one.calibration.ops[k].nanoseconds, other.calibration.ops[k].nanoseconds) << k;
  }
  EXPECT_EQ(one.launch_nanoseconds, other.launch_nanoseconds);
  EXPECT_EQ(one.product_permille, other.product_permille);
  EXPECT_EQ(one.stream_permille, other.stream_permille);
  EXPECT_EQ(one.calibration.ops[static_cast<size_t>(OpKind::activation)].permille, 0u)
      << "no op of this model";
}

// Clocks may stand still, machines may stop. Whatever was measured, the figures stay within the ranges of a
// file.
TEST(Calibration, StaysWithinTheRangesOfAFile) {
  const Graph graph = graph_of(small_gpt2());
  for (const double time : {0.0, 1e-12, 1e-7, 1.0, 1e9, std::numeric_limits<double>::infinity()}) {
    std::vector<TimedOp> ops = times(graph, *find_device("cpu"), 2, 2);
    for (TimedOp& op : ops) op.seconds = time;
    const DeviceProfile p = calibrated(*find_device("cpu"), {}, 2, ops, time);
    EXPECT_TRUE(p.launch_nanoseconds >= 1 && p.launch_nanoseconds <= longest_launch_nanoseconds);
    for (uint32_t x : {p.product_permille, p.stream_permille}) EXPECT_TRUE(x >= 1 && x <= 1000) << x;
    for (const Calibration::Op& op : p.calibration.ops) {
      EXPECT_LE(op.permille, largest_permille);
      EXPECT_EQ(op.permille == 0, op.nanoseconds == 0);
      EXPECT_EQ(op.permille == 0, op.launch_nanoseconds == 0);
      EXPECT_LE(op.launch_nanoseconds, longest_launch_nanoseconds);
      EXPECT_LE(op.nanoseconds, longest_nanoseconds);
    }
  }
  const DeviceProfile nothing = calibrated(*find_device("cpu"), {}, 2, {}, 1);
  EXPECT_EQ(nothing.product_permille, find_device("cpu")->product_permille);
  EXPECT_EQ(nothing.stream_permille, find_device("cpu")->stream_permille);
}

}  // namespace
}  // namespace stw
