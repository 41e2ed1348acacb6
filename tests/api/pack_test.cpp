// stw_pack: its answers, and its outputs after a failure.
#include <climits>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

using Lifetimes = std::vector<stw_buffer_lifetime>;

// At most 7 bytes are alive at once, but every placement takes at least 8.
const Lifetimes out_of_reach{{0, 1, 3}, {0, 3, 3}, {1, 4, 2}, {2, 5, 2}, {3, 6, 2}, {4, 8, 3}, {6, 8, 3}};

struct Answer {
  stw_status status;
  stw_pack_result result = sized<stw_pack_result>();
  stw_error error = sized<stw_error>();
  std::vector<uint64_t> offsets;
};

Answer pack(const Lifetimes& lifetimes, uint64_t capacity = 0, uint64_t node_limit = 0) {
  auto o = sized<stw_pack_options>();
  o.capacity = capacity;
  o.node_limit = node_limit;
  Answer a;
  a.offsets.assign(lifetimes.size(), 77);
  a.status = stw_pack(a.offsets.data(), lifetimes.data(), lifetimes.size(), &o, &a.result, &a.error);
  EXPECT_EQ(a.error.status, a.status);
  EXPECT_EQ(a.error.message[0] == 0, a.status == STW_OK);
  return a;
}

void expect_apart(const Lifetimes& lifetimes, const Answer& a) {
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_LE(a.offsets[i] + lifetimes[i].size, a.result.height);
    for (size_t k = 0; k < i; ++k) {
      if (lifetimes[i].lower >= lifetimes[k].upper || lifetimes[k].lower >= lifetimes[i].upper) continue;
      EXPECT_TRUE(a.offsets[i] + lifetimes[i].size <= a.offsets[k] ||
                  a.offsets[k] + lifetimes[k].size <= a.offsets[i]);
    }
  }
}

TEST(Pack, LowestPlacement) {
  const Answer a = pack(out_of_reach);
  EXPECT_EQ(a.status, STW_OK);
  EXPECT_EQ(a.result.answer, static_cast<uint32_t>(STW_PACK_OPTIMAL));
  EXPECT_EQ(a.result.height, 8u);
  EXPECT_EQ(a.result.bound, 8u);
  EXPECT_GT(a.result.nodes, 0u);
  expect_apart(out_of_reach, a);
  EXPECT_EQ(pack(out_of_reach).offsets, a.offsets);
}

TEST(Pack, CapacityThatSuffices) {
  for (const uint64_t capacity : {uint64_t{8}, uint64_t{100}, UINT64_MAX}) {
    const Answer a = pack(out_of_reach, capacity);
    EXPECT_EQ(a.status, STW_OK);
    EXPECT_TRUE(a.result.answer == STW_PACK_OPTIMAL || a.result.answer == STW_PACK_FITS);
    EXPECT_LE(a.result.height, capacity);
    expect_apart(out_of_reach, a);
  }
}

TEST(Pack, CapacityThatDoesNot) {
  for (const uint64_t capacity : {3, 6, 7}) {
    const Answer a = pack(out_of_reach, capacity);
    EXPECT_EQ(a.status, STW_OVER_BUDGET);
    EXPECT_EQ(a.result.answer, static_cast<uint32_t>(STW_PACK_IMPOSSIBLE));
    EXPECT_GT(a.result.bound, capacity);
    EXPECT_EQ(a.error.bytes_needed, a.result.height);
    EXPECT_EQ(a.error.bytes_available, capacity);
    EXPECT_EQ(a.offsets, std::vector<uint64_t>(out_of_reach.size(), 77));
  }
  const Answer unknown = pack(out_of_reach, 7, 1);
  EXPECT_EQ(unknown.status, STW_OVER_BUDGET);
  EXPECT_EQ(unknown.result.answer, static_cast<uint32_t>(STW_PACK_UNKNOWN));
  EXPECT_EQ(unknown.result.bound, 7u);
  EXPECT_EQ(unknown.offsets, std::vector<uint64_t>(out_of_reach.size(), 77));
}

TEST(Pack, NothingToPlace) {
  EXPECT_EQ(stw_pack(nullptr, nullptr, 0, nullptr, nullptr, nullptr), STW_OK);
  const Answer a = pack({{5, 5, UINT64_MAX}, {1, 2, 0}});
  EXPECT_EQ(a.status, STW_OK);
  EXPECT_EQ(a.result.height, 0u);
  EXPECT_EQ(a.offsets, std::vector<uint64_t>(2, 0));
}

TEST(Pack, Constraints) {
  const Lifetimes lifetimes{{0, 10, 3}, {0, 10, 8}, {0, 10, 5}, {4, 6, 8}};
  const stw_buffer_gap gap{4, 6, 0, 0};
  std::vector<stw_buffer_constraint> constraints(4);
  constraints[1].alignment = constraints[2].alignment = 64;
  constraints[1].gaps = &gap;
  constraints[1].gap_count = 1;
  constraints[0].offset = 16;
  constraints[0].set_mask = STW_SET_OFFSET;
  auto o = sized<stw_pack_options>();
  o.constraints = constraints.data();
  stw_pack_result result = sized<stw_pack_result>();
  std::vector<uint64_t> offsets(4, 77);
  ASSERT_EQ(stw_pack(offsets.data(), lifetimes.data(), 4, &o, &result, nullptr), STW_OK);
  EXPECT_EQ(result.answer, static_cast<uint32_t>(STW_PACK_OPTIMAL));
  EXPECT_EQ(result.height, 69u);
  EXPECT_EQ(offsets, (std::vector<uint64_t>{16, 0, 64, 0}));
  // A program built before this field existed.
  o.struct_size = 24;
  ASSERT_EQ(stw_pack(offsets.data(), lifetimes.data(), 4, &o, &result, nullptr), STW_OK);
  EXPECT_EQ(result.height, 24u);
  o.struct_size = sizeof o;
  const auto refused = [&](const char* says) {
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_pack(offsets.data(), lifetimes.data(), 4, &o, nullptr, &error), STW_BAD_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(says), std::string::npos) << error.message;
  };
  constraints[0].set_mask = 2;
  refused("set_mask");
  constraints[0].set_mask = STW_SET_OFFSET;
  constraints[0].alignment = 3;
  refused("lifetimes[0]: its given offset, 16, is no multiple of its alignment, 3");
  constraints[0].alignment = 0;
  constraints[2].set_mask = STW_SET_OFFSET;
  constraints[0].offset = 3;
  refused("lifetimes[0]: its given offset, 3, and that of lifetimes[2], 0, make both overlap");
  constraints[2].set_mask = 0;
  constraints[1].gaps = nullptr;
  refused("lifetimes[1]: its gaps are NULL");
  const stw_buffer_gap wrong[] = {{4, 3, 0, 0}};
  constraints[1].gaps = wrong;
  refused("ends before it begins");
}

TEST(Pack, BadArguments) {
  const auto refused = [](const Lifetimes& lifetimes, const char* says) {
    for (const uint64_t capacity : {0, 10}) {
      const Answer a = pack(lifetimes, capacity);
      EXPECT_EQ(a.status, STW_BAD_ARGUMENT);
      EXPECT_NE(std::string(a.error.message).find(says), std::string::npos) << a.error.message;
      EXPECT_EQ(a.offsets, std::vector<uint64_t>(lifetimes.size(), 77));
      EXPECT_EQ(a.result.height, 0u);
    }
  };
  refused({{0, 1, 1}, {4, 3, 1}}, "lifetimes[1].upper is 3");
  refused({{INT64_MAX, INT64_MIN, 1}}, "lifetimes[0]");
  refused({{0, 1, uint64_t{1} << 62}}, "2^62");
  refused({{0, 1, UINT64_MAX}, {0, 1, UINT64_MAX}}, "2^62");
  refused(Lifetimes(5, {INT64_MIN, INT64_MAX, uint64_t{1} << 60}), "2^62");

  uint64_t offset = 77;
  const stw_buffer_lifetime one{0, 1, 1};
  EXPECT_EQ(stw_pack(nullptr, &one, 1, nullptr, nullptr, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_pack(&offset, nullptr, 1, nullptr, nullptr, nullptr), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_pack(&offset, &one, SIZE_MAX, nullptr, nullptr, nullptr), STW_BAD_ARGUMENT);
  auto o = sized<stw_pack_options>();
  o.set_mask = 1;
  EXPECT_EQ(stw_pack(&offset, &one, 1, &o, nullptr, nullptr), STW_BAD_ARGUMENT);
  stw_pack_result small = sized<stw_pack_result>();
  small.struct_size = 3;
  EXPECT_EQ(stw_pack(&offset, &one, 1, nullptr, &small, nullptr), STW_BAD_STRUCT_SIZE);
  EXPECT_EQ(offset, 77u);
}

}  // namespace
}  // namespace stw::api_test
