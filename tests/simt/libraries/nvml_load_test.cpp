// The loader of the driver's management library, with our own library in its place (LD_LIBRARY_PATH).
#include <gtest/gtest.h>

#include "src/cuda/nvml.h"

namespace stw::cuda {
namespace {

TEST(Nvml, ReportsEveryProcessOnce) {
  for (int time = 0; time < 2; ++time) {  // The library is shut down in between.
    const std::vector<MemoryHolder> holders = memory_holders("0000:19:00.0");
    ASSERT_EQ(holders.size(), 3u);
    EXPECT_TRUE(holders[0].process == 7 && holders[0].bytes == 1000 && holders[0].name == "Xorg");
    EXPECT_TRUE(holders[1].process == 4000000000u && holders[1].bytes == 5ull << 32 &&
                holders[1].name == "python3");
    EXPECT_TRUE(holders[2].process == 8 && holders[2].bytes == 2000 && holders[2].name.empty());
  }
  EXPECT_TRUE(memory_holders("0000:65:00.0").empty());
}

TEST(Nvml, ReportsMemoryInUse) {
  EXPECT_EQ(memory_used("0000:19:00.0"), uint64_t{7} << 30);
  EXPECT_FALSE(memory_used("0000:65:00.0"));
}

}  // namespace
}  // namespace stw::cuda
