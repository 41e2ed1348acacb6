// Copies of some rows of every sample, and their gradient, bit by bit.
#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::take_rows_test {
namespace {

// Some increasing rows of each sample, then -1.
std::vector<int32_t> some_rows(Random& random, int64_t samples, int64_t rows, int64_t taken) {
  std::vector<int32_t> places;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t count = random.between(0, taken);
    for (int64_t k = 0, last = -1; k < taken; ++k) {
      // The rows after this one must fit, too.
      const int64_t most = rows - (count - k);
      if (k < count) last = random.between(last + 1, most);
      places.push_back(k < count ? static_cast<int32_t>(last) : -1);
    }
  }
  return places;
}

TEST(TakeRows, CopiesRowsAndTheGradientPutsThemBack) {
  Random random(17);
  struct Case {
    int64_t samples, rows, taken, features;
  };
  int round = 0;
  for (const Case& c : {Case{3, 40, 5, 37}, Case{1, 7, 7, 1}, Case{2, 600, 75, 64}, Case{5, 128, 16, 384},
                        Case{1, 9, 1, 260}}) {
    const std::vector<int32_t> places = some_rows(random, c.samples, c.rows, c.taken);
    const DType dtype = dtype_of(round++);
    const Buffer x = Buffer::normal(dtype, random, c.samples * c.rows * c.features),
                 dy = Buffer::normal(dtype, random, c.samples * c.taken * c.features);
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer y(dtype, c.samples * c.taken * c.features), dx(dtype, c.samples * c.rows * c.features);
      const TakeRowsArgs args{c.samples, c.rows, c.taken, c.features, places.data(), {}, {}};
      TakeRowsArgs forward = args, gradient = args;
      forward.x = x.const_matrix(), forward.y = y.matrix();
      gradient.x = dy.const_matrix(), gradient.y = dx.matrix();
      run(table.take_rows, forward, threads, 0);
      run(table.take_rows_gradient, gradient, threads, 0);
      return std::vector<Buffer>{y, dx};
    });
    std::vector<float> y, dx(static_cast<size_t>(c.samples * c.rows * c.features));
    const std::vector<float> given = x.floats(), gradient = dy.floats();
    for (int64_t k = 0; k < c.samples * c.taken; ++k)
      for (int64_t i = 0; i < c.features; ++i) {
        const int64_t sample = k / c.taken, place = std::max(0, places[static_cast<size_t>(k)]),
                      at = (sample * c.rows + place) * c.features + i;
        y.push_back(given[static_cast<size_t>(at)]);
        if (places[static_cast<size_t>(k)] >= 0)
          dx[static_cast<size_t>(at)] = gradient[static_cast<size_t>(k * c.features + i)];
      }
    EXPECT_EQ(out[0].floats(), y);
    EXPECT_EQ(out[1].floats(), dx);
  }
}

}  // namespace
}  // namespace stw::kernels::test::take_rows_test
