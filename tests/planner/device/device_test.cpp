#include "planner/device/device.h"

#include <gtest/gtest.h>

#include <set>

namespace stw {
namespace {

TEST(DeviceProfile, FiguresMakeSense) {
  std::set<std::string> names;
  for (const DeviceProfile& p : device_profiles()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_EQ(find_device(p.name), &p);
    EXPECT_EQ(p.cuda, p.memory_bytes > 0) << p.name;
    EXPECT_LT(p.reserve_bytes, p.memory_bytes + 1);
    EXPECT_GT(p.gflops_fp32, 0u);
    EXPECT_GE(p.gflops_bf16, p.gflops_fp32);
    EXPECT_GT(p.gbytes_per_second, 0u);
    EXPECT_TRUE(p.product_permille > 0 && p.product_permille <= 1000);
    EXPECT_TRUE(p.stream_permille > 0 && p.stream_permille <= 1000);
    EXPECT_LE(p.attention_permille, p.product_permille) << p.name;
    EXPECT_TRUE(p.wgmma_permille >= p.mma_permille && p.wgmma_permille <= 1000) << p.name;
    EXPECT_GT(p.launch_nanoseconds, 0u);
    EXPECT_TRUE(p.alignment >= 64 && (p.alignment & (p.alignment - 1)) == 0);
    EXPECT_STRNE(p.source, "");
    EXPECT_EQ(p.calibration.threads, 0);
  }
  for (const char* name : {"cpu", "rtx3060", "rtx4060", "rtx4090", "rtx5060ti", "rtx5090", "a100-40gb",
                           "a100-80gb", "l4", "l40s", "h100", "h200", "b200", "orin"})
    EXPECT_TRUE(names.count(name)) << name;
  EXPECT_EQ(find_device("rtx"), nullptr);
  EXPECT_EQ(find_device(""), nullptr);
}

TEST(DeviceProfile, TimeIsTheLargerOfArithmeticAndTraffic) {
  const DeviceProfile& d = *find_device("a100-80gb");
  const uint64_t launch = d.launch_nanoseconds * 1000;
  EXPECT_EQ(op_picoseconds(d, OpKind::linear, Peak::fp32, 1, {}), launch);
  // 1 TFLOP at 19.5 TFLOP/s and a share of 0.7; 1 TB at 2039 GB/s and a share of 0.85.
  EXPECT_NEAR(
      static_cast<double>(op_picoseconds(d, OpKind::linear, Peak::fp32, 1, {1000000000000, 0}) - launch),
      1e12 / (19500 * 0.7) * 1e3, 1e3);
  EXPECT_NEAR(
      static_cast<double>(op_picoseconds(d, OpKind::linear, Peak::library, 1, {1000000000000, 0}) - launch),
      1e12 / (312000 * 0.7) * 1e3, 1e3);
  EXPECT_NEAR(
      static_cast<double>(op_picoseconds(d, OpKind::linear, Peak::fp32, 1, {0, 1000000000000}) - launch),
      1e12 / (2039 * 0.85) * 1e3, 1e3);
  const Cost both{1000000000000, 1000000};
  EXPECT_EQ(op_picoseconds(d, OpKind::linear, Peak::fp32, 1, both),
            op_picoseconds(d, OpKind::linear, Peak::fp32, 1, {both.flops, 0}));
  EXPECT_EQ(op_picoseconds(d, OpKind::linear, Peak::mma, 1, both),
            op_picoseconds(d, OpKind::linear, Peak::library, 1, both))
      << "no other instructions";
  const DeviceProfile& hopper = *find_device("h100");
  const auto product = [&](Peak peak) {
    return static_cast<double>(op_picoseconds(hopper, OpKind::linear, peak, 1, {1000000000000, 0}) -
                               hopper.launch_nanoseconds * 1000);
  };
  EXPECT_NEAR(product(Peak::library) / product(Peak::mma), 0.629, 1e-4);
  EXPECT_NEAR(product(Peak::library) / product(Peak::wgmma), 0.83, 1e-4);
  // Attention has a share of its own if the profile has that figure.
  const auto attention = [](const DeviceProfile& of, Peak peak) {
    return op_picoseconds(of, OpKind::attention_gradient, peak, 1, {1000000000000, 0});
  };
  EXPECT_NEAR(static_cast<double>(attention(hopper, Peak::wgmma) - hopper.launch_nanoseconds * 1000),
              1e12 / (989000 * 0.28 * 0.83) * 1e3, 1e3);
  EXPECT_EQ(attention(d, Peak::library),
            op_picoseconds(d, OpKind::linear, Peak::library, 1, {1000000000000, 0}));
  // More threads do arithmetic faster, but they do not move more bytes a second.
  const DeviceProfile& cpu = *find_device("cpu");
  EXPECT_LT(op_picoseconds(cpu, OpKind::linear, Peak::fp32, 2, {1000000000, 0}),
            op_picoseconds(cpu, OpKind::linear, Peak::fp32, 1, {1000000000, 0}));
  EXPECT_EQ(op_picoseconds(cpu, OpKind::linear, Peak::fp32, 2, {0, 1000000000}),
            op_picoseconds(cpu, OpKind::linear, Peak::fp32, 1, {0, 1000000000}));
  EXPECT_LE(op_picoseconds(cpu, OpKind::linear, Peak::fp32, 1, {UINT64_MAX, UINT64_MAX}), size_limit);
}

// The share is of the peak that bounds the op. Other kinds keep the profile's shares.
TEST(DeviceProfile, ACalibratedKindHasItsOwnShareAndLaunch) {
  const DeviceProfile& d = *find_device("a100-80gb");
  const Cost products{1000000000000, 1000000}, streams{1000, 1000000000000};
  const uint64_t launch = 12345;
  for (const uint32_t permille : {1u, 350u, 1000u, 100000u}) {
    DeviceProfile own = d;
    own.calibration.ops[static_cast<size_t>(OpKind::activation)] = {permille, launch, 1};
    auto gelu = [&](const Cost& cost) {
      return op_picoseconds(own, OpKind::activation, Peak::library, 1, cost);
    };
    DeviceProfile shared = d;
    shared.product_permille = shared.stream_permille = permille;
    shared.launch_nanoseconds = launch;
    for (const Cost& cost : {Cost{}, products, streams}) {
      EXPECT_EQ(op_picoseconds(own, OpKind::linear, Peak::library, 1, cost),
                op_picoseconds(d, OpKind::linear, Peak::library, 1, cost));
      EXPECT_EQ(gelu(cost), op_picoseconds(shared, OpKind::linear, Peak::library, 1, cost));
    }
    EXPECT_NEAR(static_cast<double>(gelu(products) - launch * 1000) * permille / 1000, 1e12 / 312000 * 1e3,
                1e3);
    EXPECT_NEAR(static_cast<double>(gelu(streams) - launch * 1000) * permille / 1000, 1e12 / 2039 * 1e3, 1e3);
    EXPECT_EQ(gelu({}), launch * 1000);
  }
  DeviceProfile slowest = d;
  slowest.calibration.ops[0].permille = 1;
  EXPECT_LE(op_picoseconds(slowest, static_cast<OpKind>(0), Peak::fp32, 1, {UINT64_MAX, UINT64_MAX}),
            size_limit);
}

}  // namespace
}  // namespace stw
