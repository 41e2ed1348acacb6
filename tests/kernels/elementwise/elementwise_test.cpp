// Add, scale, GELU, SwiGLU, dropout, rotary positions and fill, compared with fp64; gradients compared with
// finite differences in fp64.
#include <array>
#include <functional>
#include <limits>
#include <map>

#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::elementwise_test {
namespace {

constexpr int64_t counts[] = {1, 15, 16, 17, 255, 1000, 4096, 4097, 16384, 16385, 40001};

TEST(Add, SumsInPlaceOrNot) {
  Random random(1);
  int round = 0;
  for (int64_t count : counts) {
    const DType dtype = dtype_of(round++);
    const Buffer a = Buffer::normal(dtype, random, count), b = Buffer::normal(DType::f32, random, count);
    const std::vector<Buffer> y = everywhere([&](const Table& table, int threads) {
      Buffer out(dtype, count), in_place = a;
      run(table.add, AddArgs{count, a.const_matrix(), b.const_matrix(), out.matrix()}, threads, 0);
      run(table.add, AddArgs{count, in_place.const_matrix(), b.const_matrix(), in_place.matrix()}, threads,
          0);
      return std::vector<Buffer>{out, in_place};
    });
    std::vector<double> expected = doubles(a);
    for (int64_t i = 0; i < count; ++i) expected[i] += b.get(i);
    EXPECT_LE(relative_error(y[0].floats(), expected), tolerance(dtype));
    EXPECT_TRUE(same_bits(y[0], y[1]));
  }
}

// One product in fp32, rounded to the type of y, also to subnormal numbers, to zero and to infinity.
TEST(Scale, MultipliesInPlaceOrNot) {
  Random random(7);
  int round = 0;
  for (int64_t count : counts)
    for (float factor : {2.0f, -0.3f, 0x1p-16f, 40000.0f}) {
      const DType from = dtype_of(round), to = dtype_of(round++ / 3);
      const Buffer x = Buffer::normal(from, random, count);
      const std::vector<Buffer> y = everywhere([&](const Table& table, int threads) {
        Buffer out(to, count), in_place = x;
        run(table.scale, ScaleArgs{count, factor, x.const_matrix(), out.matrix()}, threads, 0);
        run(table.scale, ScaleArgs{count, factor, in_place.const_matrix(), in_place.matrix()}, threads, 0);
        return std::vector<Buffer>{out, in_place};
      });
      Buffer expected(to, count), expected_in_place(from, count);
      for (int64_t i = 0; i < count; ++i) {
        const float product = factor * x.get(i);
        expected.set(i, product), expected_in_place.set(i, product);
      }
      EXPECT_TRUE(same_bits(y[0], expected))
          << name_of(from) << " to " << name_of(to) << ", " << count << " times " << factor;
      EXPECT_TRUE(same_bits(y[1], expected_in_place))
          << name_of(from) << " in place, " << count << " times " << factor;
    }
}

double gelu_of(Activation activation, double x) {
  if (activation == Activation::tanh) return std::tanh(x);
  if (activation == Activation::relu) return std::max(x, 0.0);
  if (activation == Activation::gelu_erf) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
double slope(const std::function<double(double)>& f, double x) { return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5; }
double gelu_slope(Activation activation, double x) {
  if (activation == Activation::relu) return x > 0;  // It has a kink.
  return slope([&](double v) { return gelu_of(activation, v); }, x);
}

TEST(Gelu, AgreesWithDoubleAndFiniteDifferences) {
  Random random(2);
  int round = 0;
  for (int64_t count : counts)
    for (Activation activation :
         {Activation::gelu_tanh, Activation::gelu_erf, Activation::tanh, Activation::relu}) {
      const DType dtype = dtype_of(round++);
      const Buffer x = Buffer::normal(dtype, random, count, 3), dy = Buffer::normal(dtype, random, count);
      const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
        Buffer y = x, dx(dtype, count), on_x = x, on_dy = dy;
        run(table.gelu, GeluArgs{count, activation, y.const_matrix(), {}, y.matrix()}, threads, 0);
        auto gradient = [&](const Buffer& in, const Buffer& d, Buffer& result) {
          run(table.gelu_gradient,
              GeluArgs{count, activation, in.const_matrix(), d.const_matrix(), result.matrix()}, threads, 0);
        };
        gradient(x, dy, dx);
        gradient(on_x, dy, on_x);
        gradient(x, on_dy, on_dy);
        return std::vector<Buffer>{y, dx, on_x, on_dy};
      });
      std::vector<double> y = doubles(x), dx = y;
      for (double& value : y) value = gelu_of(activation, value);
      for (size_t i = 0; i < dx.size(); ++i)
        dx[i] = gelu_slope(activation, dx[i]) * dy.get(static_cast<int64_t>(i));
      EXPECT_LE(relative_error(out[0].floats(), y), tolerance(dtype));
      EXPECT_LE(relative_error(out[1].floats(), dx), tolerance(dtype));
      EXPECT_TRUE(same_bits(out[1], out[2]));
      EXPECT_TRUE(same_bits(out[1], out[3]));
    }
}

TEST(Gelu, StaysFiniteFarOut) {
  const Buffer x(DType::f32, std::vector<float>{-3e38f, -1e20f, -100, -0.0f, 0, 100, 1e20f, 3e38f});
  const Buffer one(DType::f32, std::vector<float>(8, 1.0f));
  const std::vector<double> y{0, 0, 0, 0, 0, 100, 1e20f, 3e38f}, dx{0, 0, 0, 0.5, 0.5, 1, 1, 1};
  for (Activation activation : {Activation::gelu_tanh, Activation::gelu_erf}) {
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer forward(DType::f32, 8), gradient(DType::f32, 8);
      run(table.gelu, GeluArgs{8, activation, x.const_matrix(), {}, forward.matrix()}, threads, 0);
      run(table.gelu_gradient,
          GeluArgs{8, activation, x.const_matrix(), one.const_matrix(), gradient.matrix()}, threads, 0);
      return std::vector<Buffer>{forward, gradient};
    });
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(out[0].get(i), y[i], 1e-6 * std::fabs(y[i]));
      EXPECT_NEAR(out[1].get(i), dx[i], 1e-6);
    }
  }
}

TEST(Activations, OfHeadsFarOutAndAtZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Buffer x(DType::f32, std::vector<float>{-infinity, -3e38f, -0.0f, 0, 3e38f, infinity}),
      one(DType::f32, std::vector<float>(6, 1.0f));
  const std::map<Activation, std::array<std::vector<double>, 2>> expected{
      {Activation::tanh, {std::vector<double>{-1, -1, 0, 0, 1, 1}, {0, 0, 1, 1, 0, 0}}},
      {Activation::relu,
       {std::vector<double>{0, 0, 0, 0, 3e38f, static_cast<double>(infinity)}, {0, 0, 0, 0, 1, 1}}}};
  for (const auto& entry : expected) {
    const Activation activation = entry.first;
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer forward(DType::f32, 6), gradient(DType::f32, 6);
      run(table.gelu, GeluArgs{6, activation, x.const_matrix(), {}, forward.matrix()}, threads, 0);
      run(table.gelu_gradient,
          GeluArgs{6, activation, x.const_matrix(), one.const_matrix(), gradient.matrix()}, threads, 0);
      return std::vector<Buffer>{forward, gradient};
    });
    for (size_t k = 0; k < 2; ++k) EXPECT_EQ(doubles(out[k]), entry.second[k]);
  }
}

double swiglu_of(Gate gate, double g, double up) {
  if (gate == Gate::silu) return g / (1 + std::exp(-g)) * up;
  return gelu_of(gate == Gate::gelu_erf ? Activation::gelu_erf : Activation::gelu_tanh, g) * up;
}

TEST(Swiglu, AgreesWithDoubleAndFiniteDifferences) {
  Random random(3);
  for (int round = 0; round < 18; ++round) {
    const int64_t rows = random.between(1, 60), n = random.between(1, 500);
    const DType dtype = dtype_of(round);
    const Gate by = std::array{Gate::silu, Gate::gelu_tanh, Gate::gelu_erf}[round / 3 % 3];
    const Buffer x = Buffer::normal(dtype, random, rows * 2 * n, 3),
                 dy = Buffer::normal(dtype, random, rows * n);
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer y(dtype, rows * n), dx(dtype, rows * 2 * n), in_place = x;
      run(table.swiglu, SwigluArgs{rows, n, x.const_matrix(), {}, y.matrix(), false, by}, threads, 0);
      run(table.swiglu_gradient,
          SwigluArgs{rows, n, x.const_matrix(), dy.const_matrix(), dx.matrix(), false, by}, threads, 0);
      run(table.swiglu_gradient,
          SwigluArgs{rows, n, in_place.const_matrix(), dy.const_matrix(), in_place.matrix(), false, by},
          threads, 0);
      return std::vector<Buffer>{y, dx, in_place};
    });
    std::vector<double> y, dx(static_cast<size_t>(rows * 2 * n));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < n; ++i) {
        const double gate = x.get(row * 2 * n + i), up = x.get(row * 2 * n + n + i), d = dy.get(row * n + i);
        y.push_back(swiglu_of(by, gate, up));
        dx[row * 2 * n + i] = d * slope([&](double v) { return swiglu_of(by, v, up); }, gate);
        dx[row * 2 * n + n + i] = d * slope([&](double v) { return swiglu_of(by, gate, v); }, up);
      }
    EXPECT_LE(relative_error(out[0].floats(), y), tolerance(dtype));
    EXPECT_LE(relative_error(out[1].floats(), dx), tolerance(dtype));
    EXPECT_TRUE(same_bits(out[1], out[2]));
  }
}

// A second implementation of Philox4x32-10, written from the paper: word `element % 4` of a block.
uint32_t philox_word(uint64_t seed, uint32_t element, uint32_t sample, uint32_t stream, uint32_t step) {
  uint32_t c[4] = {element / 4, sample, stream, step};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    std::memcpy(c, next, sizeof c);
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  return c[element % 4];
}

TEST(Dropout, MaskFollowsTheCounters) {
  Random random(4);
  StepState state{};
  state.seed = 0x123456789abcdef0u, state.step = 77, state.first_sample = 5;
  int round = 0;
  for (int64_t per_sample : {1, 3, 64, 1001, 20000}) {
    for (float p : {0.0f, 0.1f, 0.5f, 0.875f}) {
      const int64_t samples = 3, count = samples * per_sample;
      const DType dtype = dtype_of(round++);
      const Buffer x = Buffer::normal(dtype, random, count);
      const std::vector<Buffer> y = everywhere([&](const Table& table, int threads) {
        Buffer out(dtype, count), in_place = x;
        run(table.dropout, DropoutArgs{samples, per_sample, p, 9, &state, x.const_matrix(), out.matrix()},
            threads, 0);
        run(table.dropout,
            DropoutArgs{samples, per_sample, p, 9, &state, in_place.const_matrix(), in_place.matrix()},
            threads, 0);
        return std::vector<Buffer>{out, in_place};
      });
      Buffer expected(dtype, count);
      for (int64_t sample = 0; sample < samples; ++sample)
        for (int64_t i = 0; i < per_sample; ++i) {
          const auto element = static_cast<uint32_t>(i), global_sample = static_cast<uint32_t>(sample + 5);
          const uint32_t word = philox_word(state.seed, element, global_sample, 9, 77);
          const bool kept = word >= static_cast<double>(p) * 4294967296.0;
          const float scale = 1.0f / (1.0f - p);
          expected.set(sample * per_sample + i, kept ? x.get(sample * per_sample + i) * scale : 0.0f);
        }
      EXPECT_TRUE(same_bits(y[0], expected)) << per_sample << ", p " << p;
      EXPECT_TRUE(same_bits(y[0], y[1]));
    }
  }
}

TEST(Dropout, CutBetweenSamplesChangesNothing) {
  Random random(5);
  const int64_t samples = 4, per_sample = 333;
  Buffer x = Buffer::normal(DType::f32, random, samples * per_sample), whole = x, parts = x;
  StepState state{};
  state.seed = 3, state.first_sample = 8;
  const Table& table = *tables().back().table;
  auto drop = [&](Buffer& y, int64_t first, int64_t n) {
    state.first_sample = 8 + static_cast<uint64_t>(first);
    const Matrix m{floats_of(y) + first * per_sample, DType::f32};
    run(table.dropout, DropoutArgs{n, per_sample, 0.25f, 1, &state, {m.data, m.dtype}, m}, 2, 0);
  };
  drop(whole, 0, 4);
  drop(parts, 0, 1);
  drop(parts, 1, 3);
  EXPECT_TRUE(same_bits(whole, parts));
  int64_t dropped = 0;
  for (int64_t i = 0; i < whole.count(); ++i) dropped += whole.get(i) == 0;
  EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(whole.count()), 0.25, 0.05);
}

TEST(Rope, RotatesPairsAndTurnsBack) {
  Random random(6);
  for (int round = 0; round < 18; ++round) {
    const int heads = static_cast<int>(random.between(1, 6)), kv = static_cast<int>(random.between(1, heads));
    const int head_dim = 2 * static_cast<int>(random.between(1, 70));
    const int64_t rows_per_sample = random.between(1, 20), rows = rows_per_sample * random.between(1, 3);
    // Some elements of a head, or all.
    const int rotary_dim = round < 9 ? head_dim : 2 * static_cast<int>(random.between(1, head_dim / 2));
    const int64_t half = rotary_dim / 2, width = (heads + 2 * kv) * static_cast<int64_t>(head_dim);
    const DType dtype = dtype_of(round / 3);
    StepState state{};
    state.position = round % 3 == 0 ? 7 : 0;
    std::vector<float> cosine, sine;
    for (int64_t position = 0; position < rows_per_sample + 7; ++position)
      for (int64_t i = 0; i < half; ++i) {
        const double frequency = std::pow(10000.0, -2.0 * static_cast<double>(i) / head_dim);
        const double angle = static_cast<double>(position) * frequency;
        cosine.push_back(static_cast<float>(std::cos(angle)));
        sine.push_back(static_cast<float>(std::sin(angle)));
      }
    std::vector<int32_t> position_ids;  // Given in every other round. They replace the state's position.
    for (int64_t row = 0; row < rows && round % 2 == 1; ++row)
      position_ids.push_back(static_cast<int32_t>(random.between(0, rows_per_sample + 6)));
    const Buffer x = Buffer::normal(dtype, random, rows * width);
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer y(dtype, rows * width), in_place = x, back(dtype, rows * width);
      RopeArgs args{rows,
                    rows_per_sample,
                    heads,
                    kv,
                    head_dim,
                    rotary_dim,
                    false,
                    cosine.data(),
                    sine.data(),
                    round % 3 == 1 ? nullptr : &state,
                    position_ids.empty() ? nullptr : position_ids.data(),
                    x.const_matrix(),
                    y.matrix()};
      run(table.rope, args, threads, 0);
      args.x = in_place.const_matrix(), args.y = in_place.matrix();
      run(table.rope, args, threads, 0);
      args.x = y.const_matrix(), args.y = back.matrix(), args.inverse = true;
      run(table.rope, args, threads, 0);
      return std::vector<Buffer>{y, in_place, back};
    });
    std::vector<double> y = doubles(x);
    const std::vector<double> original = y;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t head = 0; head < heads + kv; ++head)
        for (int64_t i = 0; i < half; ++i) {
          const int64_t position = position_ids.empty()
                                       ? row % rows_per_sample + static_cast<int64_t>(state.position)
                                       : position_ids[row];
          const double c = cosine[position * half + i];
          const double s = sine[position * half + i];
          const auto a = static_cast<size_t>(row * width + head * head_dim + i),
                     b = a + static_cast<size_t>(half);
          y[a] = original[a] * c - original[b] * s;
          y[b] = original[b] * c + original[a] * s;
        }
    EXPECT_LE(relative_error(out[0].floats(), y), tolerance(dtype));
    EXPECT_TRUE(same_bits(out[0], out[1]));
    EXPECT_LE(relative_error(out[2].floats(), original), tolerance(dtype));
  }
}

TEST(Fill, ZeroesExactlyItsBytes) {
  for (uint64_t bytes : {0ull, 1ull, 63ull, 262144ull, 262145ull, 1000003ull})
    for (const NamedTable& entry : tables())
      for (int threads : {1, 3}) {
        std::vector<unsigned char> memory(bytes + 1, 0xee);
        run(entry.table->fill, FillArgs{memory.data(), bytes}, threads, 0);
        EXPECT_EQ(memory[bytes], 0xee);
        memory.resize(bytes);
        EXPECT_EQ(memory, std::vector<unsigned char>(bytes, 0));
      }
}

}  // namespace
}  // namespace stw::kernels::test::elementwise_test
