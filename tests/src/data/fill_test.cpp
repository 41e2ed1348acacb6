#include "src/data/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace stw::fill_test {
namespace {

// The samples that a dataset makes of documents in this order: a sample ends where the next document does not
// fit, or would be one too many.
size_t samples_of(const std::vector<size_t>& order, const std::vector<uint64_t>& lengths, uint64_t length,
                  uint64_t most) {
  size_t samples = 0;
  uint64_t tokens = length, documents = most;
  for (const size_t d : order) {
    if (documents == most || tokens + lengths[d] > length) ++samples, tokens = documents = 0;
    tokens += lengths[d], ++documents;
  }
  return samples;
}

std::vector<uint64_t> random_lengths(size_t count, uint64_t least, uint64_t most) {
  std::vector<uint64_t> lengths;
  uint32_t x = 5;
  for (size_t i = 0; i < count; ++i) {
    x = x * 1664525 + 1013904223;
    // Short ones are more frequent.
    const double share = static_cast<double>(x >> 8) / (1 << 24);
    lengths.push_back(least + static_cast<uint64_t>(share * share * static_cast<double>(most - least)));
  }
  return lengths;
}

TEST(Fill, LeavesLittlePadding) {
  const std::vector<uint64_t> lengths = random_lengths(5000, 5, 60);
  const double tokens = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), uint64_t{0}));
  for (const uint64_t length : {60, 128, 256, 512}) {
    const std::vector<size_t> order = filling_order(lengths, length, length);
    const auto samples = static_cast<double>(samples_of(order, lengths, length, length));
    EXPECT_GE(tokens / (samples * static_cast<double>(length)), 0.99) << length;
    std::vector<size_t> numbers(lengths.size());
    std::iota(numbers.begin(), numbers.end(), size_t{0});
    EXPECT_GE(static_cast<double>(samples_of(numbers, lengths, length, length)), 1.02 * samples) << length;
  }
}

TEST(Fill, HasEachDocumentOnce) {
  const std::vector<uint64_t> lengths = random_lengths(700, 1, 90);
  for (const uint64_t length : {1, 7, 40, 300})
    for (const uint64_t most : {1, 2, 9, 1000}) {
      std::vector<size_t> order = filling_order(lengths, length, most);
      std::sort(order.begin(), order.end());
      for (size_t d = 0; d < order.size(); ++d) ASSERT_EQ(order[d], d);
      EXPECT_EQ(order.size(), lengths.size());
    }
}

// Neither time nor memory grows with the length of a sample.
TEST(Fill, TakesLongSamples) {
  constexpr uint64_t longest = INT32_MAX;
  EXPECT_EQ(filling_order(std::vector<uint64_t>{3, 2}, longest, 9), (std::vector<size_t>{0, 1}));
  // Half of the documents leave room that no other one fits, once the short ones are taken.
  std::vector<uint64_t> lengths(200000, 100);
  std::fill(lengths.begin() + 100000, lengths.end(), 500000);
  EXPECT_EQ(filling_order(lengths, 800000, 9000).size(), lengths.size());
  EXPECT_EQ(filling_order(lengths, longest, 1).front(), 100000u);
}

TEST(Fill, TakesWhatFitsExactlyThenTheNextThenTheLongest) {
  const auto order = [](const std::vector<uint64_t>& lengths, uint64_t length, uint64_t most = 100) {
    return filling_order(lengths, length, most);
  };
  using Order = std::vector<size_t>;
  EXPECT_EQ(order({3, 4, 5, 6, 7}, 10), (Order{0, 4, 1, 3, 2}));
  EXPECT_EQ(order({6, 9, 3, 2}, 10), (Order{0, 2, 1, 3}));
  EXPECT_EQ(order({4, 4, 4, 4}, 10), (Order{0, 1, 2, 3}));
  // The last document of a sample is the longest that fits.
  EXPECT_EQ(order({2, 3, 2, 5, 4}, 10, 2), (Order{0, 3, 1, 4, 2}));
  // Documents longer than a sample fill one.
  EXPECT_EQ(order({4, 30, 5, 10}, 10), (Order{1, 3, 0, 2}));
  EXPECT_EQ(order({}, 10), Order{});
}

}  // namespace
}  // namespace stw::fill_test
