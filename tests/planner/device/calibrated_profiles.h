// Random calibrated profiles for the planner's tests.
#pragma once
#include <random>

#include "planner/device/calibration.h"

namespace stw::testing_tools {

// Every second kind of op has a share and a launch of its own. The general launch and shares are changed too.
inline DeviceProfile random_profile(const char* device, uint32_t seed) {
  std::mt19937 random(seed);
  DeviceProfile p = *find_device(device);
  if (p.cuda && random() % 2) p.reserve_bytes = 1 + random();
  p.launch_nanoseconds = 1 + random() % 20000;
  p.product_permille = 1 + random() % 1000;
  p.stream_permille = 1 + random() % 1000;
  p.calibration.threads = 1 + static_cast<int>(random() % 8);
  p.calibration.precision = random() % 2 ? Precision::bf16 : Precision::fp32;
  p.calibration.step_nanoseconds = 1 + random();
  for (Calibration::Op& op : p.calibration.ops)
    if (random() % 2) op = {1 + static_cast<uint32_t>(random() % 5000), 1 + random() % 20000, 1 + random()};
  p.attention_permille = random() % 2 ? 1 + random() % 1000 : 0;
  p.wgmma_permille = random() % 2 ? 1 + random() % 1000 : 1000;
  p.wide_attention_permille = random() % 2 ? 1 + random() % 1000 : 0;
  p.mma_permille = random() % 2 ? 1 + random() % 1000 : 1000;
  p.fp32_permille = p.cuda && random() % 2 ? 1 + random() % 1000 : 0;
  return p;
}

}  // namespace stw::testing_tools
