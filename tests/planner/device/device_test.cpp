#include "planner/device/device.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    EXPECT_FALSE(p.is_calibrated());
    if (!p.cuda) continue;
    EXPECT_GT(p.watts, 0u) << p.name;
    EXPECT_EQ(p.product_permille, product_ceiling(p.gflops_bf16, p.watts, p.gflops_per_watt)) << p.name;
    EXPECT_TRUE(p.attention_permille > 0 && p.attention_permille <= p.wide_attention_permille) << p.name;
    EXPECT_LE(p.wide_attention_permille, p.product_permille) << p.name;
    EXPECT_TRUE(p.fp32_permille > 0 && p.fp32_permille <= 1000) << p.name;
  }
  for (const char* name :
       {"cpu", "rtx3060", "rtx4060", "rtx4090", "rtx5060ti", "rtx5090", "a100-40gb", "a100-80gb", "l4",
        "l40s", "h100", "h200", "b200", "orin", "rtx3090", "a10", "rtxa6000", "rtxpro6000", "h100-pcie"})
    EXPECT_TRUE(names.count(name)) << name;
  EXPECT_EQ(find_device("rtx"), nullptr);
  EXPECT_EQ(find_device(""), nullptr);
}

TEST(DeviceProfile, TheCeilingIsThePeakOrThePower) {
  EXPECT_EQ(product_ceiling(100000, 1000, 1000), 1000u) << "ample power";
  EXPECT_EQ(product_ceiling(100000, 100, 100), 100u) << "a tenth of the power";
  EXPECT_EQ(product_ceiling(100000, 100, 1000), 900u) << "the corner";
  EXPECT_EQ(product_ceiling(100000, 1, 1), 1u);
  uint32_t before = 0;
  for (uint64_t watts = 1; watts <= 3000; ++watts) {
    const uint32_t now = product_ceiling(100000, watts, 100);
    EXPECT_TRUE(now >= before && now <= 1000) << watts;
    EXPECT_LE(now, std::max(uint64_t{1}, watts)) << "never above the power";
    before = now;
  }
  // GeForce cards reach their peak, others what their power allows.
  EXPECT_GE(find_device("rtx4090")->product_permille, 950u);
  for (const char* name : {"a100-80gb", "h100"}) {
    EXPECT_GT(find_device(name)->product_permille, 600u) << name;
    EXPECT_LT(find_device(name)->product_permille, 750u) << name;
  }
}

TEST(DeviceProfile, FindsTheProfileOfADriversName) {
  const std::pair<const char*, const char*> names[] = {
      {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
      {"NVIDIA A100-PCIE-40GB", "a100-40gb"},
      {"NVIDIA A10", "a10"},
      {"NVIDIA A10G", "a10"},
      {"NVIDIA H100 80GB HBM3", "h100"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"NVIDIA RTX A6000", "rtxa6000"},
      {"NVIDIA GeForce RTX 3090", "rtx3090"},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000"}};
  for (const auto& [driver, profile] : names) EXPECT_STREQ(profile_for(driver, 8, 0).name, profile) << driver;
  EXPECT_STREQ(profile_for("NVIDIA A100X", 8, 0).name, "a100-40gb") << "not an A10";
}

TEST(DeviceProfile, TimeIsTheLargerOfArithmeticAndTraffic) {
  const DeviceProfile& d = *find_device("a100-80gb");
  const uint64_t launch = d.launch_nanoseconds * 1000;
  EXPECT_EQ(op_picoseconds(d, OpKind::linear, Peak::fp32, 1, {}), launch);
  const auto arithmetic = [&](const DeviceProfile& of, OpKind kind, Peak peak, int head = 0) {
    Cost cost{1000000000000, 0};
    cost.head = head;
    return static_cast<double>(op_picoseconds(of, kind, peak, 1, cost) - of.launch_nanoseconds * 1000);
  };
  // 1 TFLOP at the rated speed and its share; 1 TB at 2039 GB/s and a share of 0.88.
  EXPECT_NEAR(arithmetic(d, OpKind::linear, Peak::fp32), 1e12 / (19500 * 0.7) * 1e3, 1e3);
  EXPECT_NEAR(arithmetic(d, OpKind::linear, Peak::library), 1e12 / (312000 * d.product_permille * 1e-3) * 1e3,
              1e3);
  EXPECT_NEAR(
      static_cast<double>(op_picoseconds(d, OpKind::linear, Peak::fp32, 1, {0, 1000000000000}) - launch),
      1e12 / (2039 * 0.88) * 1e3, 1e3);
  const Cost both{1000000000000, 1000000};
  EXPECT_EQ(op_picoseconds(d, OpKind::linear, Peak::fp32, 1, both),
            op_picoseconds(d, OpKind::linear, Peak::fp32, 1, {both.flops, 0}));
  const DeviceProfile& hopper = *find_device("h100");
  for (const auto& [peak, share] :
       {std::pair{Peak::mma, hopper.mma_permille}, {Peak::wgmma, hopper.wgmma_permille}})
    EXPECT_NEAR(arithmetic(hopper, OpKind::linear, Peak::library) / arithmetic(hopper, OpKind::linear, peak),
                share * 1e-3, 1e-4);
  // Attention has shares of its own, by the size of heads, if the profile has these figures.
  for (const auto& [head, share] : {std::pair{64, hopper.attention_permille},
                                    {65, hopper.wide_attention_permille},
                                    {128, hopper.wide_attention_permille}})
    EXPECT_NEAR(arithmetic(hopper, OpKind::attention_gradient, Peak::wgmma, head),
                1e12 / (989000.0 * share * hopper.wgmma_permille * 1e-6) * 1e3, 1e3);
  DeviceProfile without = hopper;
  without.wide_attention_permille = 0;
  EXPECT_EQ(arithmetic(without, OpKind::attention, Peak::mma, 128),
            arithmetic(hopper, OpKind::attention, Peak::mma, 64));
  without.attention_permille = 0;
  EXPECT_EQ(arithmetic(without, OpKind::attention, Peak::library, 128),
            arithmetic(hopper, OpKind::linear, Peak::library));
  // At the ceiling, our kernels are as fast as libraries.
  EXPECT_EQ(arithmetic(at_ceiling(hopper), OpKind::linear, Peak::mma),
            arithmetic(hopper, OpKind::linear, Peak::library));
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
