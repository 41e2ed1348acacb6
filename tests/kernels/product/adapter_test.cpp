// Low-rank adapters: every table compared with naive chains of fmaf bit for bit, and with fp64. Threads, cuts
// of the rows and the place of y must not change a bit. This holds with tensor cores too.
#include <algorithm>
#include <string>

#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::adapter_test {
namespace {

constexpr DType f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16;
constexpr ProductKernels both_ways[] = {ProductKernels::chain, ProductKernels::tensor};

struct Columns {
  int64_t first, features;
};
struct Shape {
  int64_t samples, rows_per_sample, rank, width;
  std::vector<Columns> parts;
};
struct Types {
  DType activation, weight, output;  // Of low and dy; of the weights; of base, y and dlow.
};

struct Problem {
  Shape shape;
  Types types;
  bool accumulate;
  ProductKernels products;
  int64_t rows, low_width;
  Buffer base, low, dy;  // NaN in dy outside all parts: no kernel may read it.
  std::vector<Buffer> weight, gradient;

  Problem(Random& random, Shape s, Types t, bool accumulate_ = false,
          ProductKernels products_ = ProductKernels::chain)
      : shape(std::move(s)),
        types(t),
        accumulate(accumulate_),
        products(products_),
        rows(shape.samples * shape.rows_per_sample),
        low_width(static_cast<int64_t>(shape.parts.size()) * shape.rank) {
    base = Buffer::normal(types.output, random, rows * shape.width);
    low = Buffer::normal(types.activation, random, rows * low_width);
    dy = Buffer::normal(types.activation, random, rows * shape.width);
    for (int64_t i = 0; i < dy.count(); ++i)
      if (!has_part(i % shape.width)) dy.set(i, NAN);
    for (const Columns& part : shape.parts) {
      weight.push_back(Buffer::normal(types.weight, random, part.features * shape.rank));
      gradient.push_back(Buffer::normal(f32, random, part.features * shape.rank));
    }
  }
  bool has_part(int64_t column) const {
    return std::any_of(shape.parts.begin(), shape.parts.end(), [&](const Columns& part) {
      return column >= part.first && column < part.first + part.features;
    });
  }
  std::string describe() const {
    std::string text = "samples " + std::to_string(shape.samples) + " × " +
                       std::to_string(shape.rows_per_sample) + ", rank " + std::to_string(shape.rank) +
                       ", width " + std::to_string(shape.width);
    for (const Columns& part : shape.parts)
      text += ", " + std::to_string(part.features) + " from " + std::to_string(part.first);
    for (DType type : {types.activation, types.weight, types.output})
      text += std::string(" ") + name_of(type);
    return text + (accumulate ? " accumulate" : "") + (products == ProductKernels::tensor ? " tensor" : "");
  }

  static Matrix rows_of(Buffer& buffer, int64_t width, int64_t first) {
    return {static_cast<char*>(buffer.data()) + first * width * (buffer.dtype() == f32 ? 4 : 2),
            buffer.dtype()};
  }
  AdapterArgs args(Buffer& low_, Buffer& y, int64_t from, int64_t end) {
    AdapterArgs a = {};
    a.rows = end - from, a.rank = shape.rank, a.rows_per_sample = shape.rows_per_sample,
    a.parts = static_cast<int>(shape.parts.size());
    a.products = products, a.weight_dtype = types.weight;
    for (size_t i = 0; i < shape.parts.size(); ++i)
      a.part[i] = {weight[i].data(), nullptr, shape.parts[i].features, shape.parts[i].first};
    a.low = rows_of(low_, low_width, from), a.y = rows_of(y, shape.width, from), a.width = shape.width;
    return a;
  }
  // `cuts`: sorted rows where a new call begins.
  template <class Body>
  void for_pieces(const std::vector<int64_t>& cuts, const Body& body) const {
    for (size_t piece = 0; piece <= cuts.size(); ++piece)
      body(piece > 0 ? cuts[piece - 1] : 0, piece < cuts.size() ? cuts[piece] : rows);
  }
  Buffer forward(const Table& table, int threads, const std::vector<int64_t>& cuts = {},
                 bool in_place = false) {
    Buffer y = in_place ? base : Buffer(types.output, base.count());
    for_pieces(cuts, [&](int64_t from, int64_t end) {
      AdapterArgs a = args(low, y, from, end);
      a.base = {rows_of(in_place ? y : base, shape.width, from).data, types.output};
      run(table.adapter, a, threads, adapter_workspace(a, threads));
    });
    return y;
  }
  Buffer input_gradient(const Table& table, int threads, const std::vector<int64_t>& cuts = {}) {
    Buffer dlow(types.output, low.count());
    for_pieces(cuts, [&](int64_t from, int64_t end) {
      const AdapterArgs a = args(dlow, dy, from, end);
      run(table.adapter_input_gradient, a, threads, adapter_input_gradient_workspace(a, threads));
    });
    return dlow;
  }
  // The gradients of all parts except `frozen`.
  std::vector<Buffer> weight_gradients(const Table& table, int threads, const std::vector<int64_t>& cuts = {},
                                       int frozen = -1) {
    std::vector<Buffer> result = gradient;
    for_pieces(cuts, [&](int64_t from, int64_t end) {
      AdapterArgs a = args(low, dy, from, end);
      a.first_row = from % shape.rows_per_sample, a.accumulate = accumulate || from > 0;
      for (int i = 0; i < a.parts; ++i)
        if (i != frozen) a.part[i].weight_gradient = floats_of(result[i]);
      run(table.adapter_weight_gradient, a, threads, adapter_weight_gradient_workspace(a, threads));
    });
    return result;
  }
  // y, dlow, and the gradients of the weights.
  std::vector<Buffer> results(const Table& table, int threads) {
    std::vector<Buffer> all = {forward(table, threads), input_gradient(table, threads)};
    for (Buffer& dw : weight_gradients(table, threads)) all.push_back(std::move(dw));
    return all;
  }
};

bool same(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Buffer& x, const Buffer& y) { return same_bits(x, y); });
}

// `sum` plus chains of at most chain_terms terms, which restart at every multiple of `restart`.
template <class Number>
Number sum_of(Number sum, int64_t count, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
              int64_t restart = INT64_MAX) {
  for (int64_t sample = 0; sample < count; sample += std::min(restart, count - sample))
    for (int64_t begin = sample, end = std::min(count - sample, restart) + sample; begin < end;
         begin += chain_terms) {
      Number chain = 0;
      for (int64_t i = begin; i < std::min(end, begin + chain_terms); ++i)
        chain = std::fma(static_cast<Number>(a[i * a_stride]), static_cast<Number>(b[i * b_stride]), chain);
      sum += chain;
    }
  return sum;
}
// The expected results: naive chains of floats, before the last rounding, or sums in double.
template <class Number>
std::vector<std::vector<Number>> reference(const Problem& p) {
  const int64_t rank = p.shape.rank, width = p.shape.width, parts = static_cast<int64_t>(p.weight.size());
  const std::vector<float> base = p.base.floats(), lows = p.low.floats(), dys = p.dy.floats();
  std::vector<std::vector<Number>> all(p.weight.size() + 2);
  all[0].assign(base.begin(), base.end());
  all[1].resize(lows.size());
  for (int64_t part = 0; part < parts; ++part) {
    const auto [first, features] = p.shape.parts[part];
    const std::vector<float> weight = p.weight[part].floats(), gradient = p.gradient[part].floats();
    const float *const w = weight.data(), *const low = lows.data() + part * rank,
                       *const dy = dys.data() + first;
    Number *const y = all[0].data() + first, *const dlow = all[1].data() + part * rank;
    for (int64_t row = 0; row < p.rows; ++row) {
      for (int64_t f = 0; f < features; ++f)
        y[row * width + f] =
            sum_of<Number>(y[row * width + f], rank, low + row * p.low_width, 1, w + f * rank, 1);
      for (int64_t k = 0; k < rank; ++k)
        dlow[row * p.low_width + k] = sum_of<Number>(0, features, dy + row * width, 1, w + k, rank);
    }
    for (int64_t i = 0; i < features * rank; ++i) {
      const Number start = p.accumulate ? gradient[i] : 0;
      all[2 + part].push_back(sum_of<Number>(start, p.rows, dy + i / rank, width, low + i % rank, p.low_width,
                                             p.shape.rows_per_sample));
    }
  }
  return all;
}

void expect_close(const std::vector<Buffer>& found, const std::vector<std::vector<double>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_LE(relative_error(found[i].floats(), expected[i]), tolerance(found[i].dtype())) << "output " << i;
}
void expect_chains(Problem p) {
  SCOPED_TRACE(p.describe());
  const std::vector<Buffer> found =
      everywhere([&](const Table& table, int threads) { return p.results(table, threads); });
  const std::vector<std::vector<float>> expected = reference<float>(p);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(same_bits(found[i], Buffer(found[i].dtype(), expected[i]))) << "output " << i;
  expect_close(found, reference<double>(p));
}

// Gaps before, between and after parts, or no gaps.
Shape random_shape(Random& random, int64_t rank_unit, int64_t column_unit) {
  const auto extent = [&](int64_t unit) { return (random.between(1, 70) + unit - 1) / unit * unit; };
  const auto gap = [&] { return column_unit * std::max<int64_t>(0, random.between(-3, 3)); };
  Shape s = {random.between(1, 3), random.between(1, 40), extent(rank_unit), gap(), {}};
  for (int64_t parts = random.between(1, max_parts); parts > 0; --parts) {
    s.parts.push_back({s.width, extent(column_unit)});
    s.width += s.parts.back().features + gap();
  }
  return s;
}

TEST(Adapter, RandomShapesHaveTheBitsOfNaiveChains) {
  Random random(1);
  for (int round = 0; round < 27; ++round) {
    Shape shape = random_shape(random, 1, 1);
    if (round < 2) shape.rank = round == 0 ? 1 : 70;
    expect_chains(
        Problem(random, shape, {dtype_of(round), dtype_of(round / 3), dtype_of(round / 9)}, round % 2));
  }
}

// More than one block along every dimension; on the emulated machine, enough for tiles of either size.
TEST(Adapter, SeveralBlocksHaveTheBitsOfNaiveChains) {
  Random random(2);
  const Shape wide = {2, 20, emulated() ? 40 : 270, 1150, {{7, 1100}, {1110, 33}}},
              tall = {3, 131, 35, 310, {{0, 140}, {150, 33}, {190, 110}}};
  for (const Shape& shape : {wide, tall})
    for (const Types& types : {Types{f32, f32, f32}, Types{f16, bf16, bf16}})
      expect_chains(Problem(random, shape, types, true));
}

TEST(Adapter, ThreadsChangeNoBit) {
  Random random(3);
  for (DType output : all_dtypes) {
    Problem p(random, {2, 97, 70, 560, {{3, 200}, {203, 31}, {260, 290}}}, {f32, f32, output}, true);
    const std::vector<Buffer> expected = p.results(*tables()[0].table, 1);
    for (const NamedTable& t : tables())
      for (int threads : {1, 2, 3, 5, 16}) {
        if (emulated() && threads > 1) continue;
        EXPECT_TRUE(same(p.results(*t.table, threads), expected))
            << t.name << ", threads " << threads << ", " << p.describe();
      }
  }
}

// Columns outside all parts keep the bits of the base, NaN or not.
TEST(Adapter, ColumnsWithoutAPartKeepTheBase) {
  Random random(4);
  for (int round = 0; round < 12; ++round) {
    const DType half = round % 4 < 2 ? bf16 : f16;
    Problem p(random, random_shape(random, round % 2 ? 8 : 1, round % 3 ? 8 : 1),
              {half, half, dtype_of(round)}, false, both_ways[round % 2]);
    const size_t size = p.types.output == f32 ? 4 : 2;
    std::vector<size_t> untouched;  // First bytes of such elements.
    for (int64_t i = 0; i < p.base.count(); ++i)
      if (!p.has_part(i % p.shape.width)) untouched.push_back(static_cast<size_t>(i) * size);
    auto* const base = static_cast<unsigned char*>(p.base.data());
    for (size_t at : untouched) {
      const uint64_t bits = random.bits();
      std::memcpy(base + at, &bits, size);
    }
    for (const NamedTable& t : tables()) {
      SCOPED_TRACE(std::string(t.name) + ", " + p.describe());
      const Buffer y = p.forward(*t.table, 2), in_place = p.forward(*t.table, 2, {}, true);
      EXPECT_TRUE(same_bits(y, in_place));
      for (size_t at : untouched) ASSERT_EQ(std::memcmp(y.bytes().data() + at, base + at, size), 0) << at;
    }
  }
}

TEST(Adapter, RowsMayBeCutAnywhere) {
  Random random(5);
  const auto expect = [&](int64_t rank, Types types, ProductKernels products) {
    Problem p(random, {3, 50, rank, 200, {{8, 64}, {80, 104}}}, types, false, products);
    for (const NamedTable& t : tables()) {
      SCOPED_TRACE(std::string(t.name) + ", " + p.describe());
      const Buffer y = p.forward(*t.table, 1), dlow = p.input_gradient(*t.table, 1);
      for (const std::vector<int64_t>& cuts :
           {std::vector<int64_t>{1}, std::vector<int64_t>{3, 4, 9, 20, 85, 149},
            std::vector<int64_t>{65, 130}}) {
        EXPECT_TRUE(same_bits(p.forward(*t.table, 2, cuts), y));
        EXPECT_TRUE(same_bits(p.forward(*t.table, 2, cuts, true), y)) << "in place";
        EXPECT_TRUE(same_bits(p.input_gradient(*t.table, 2, cuts), dlow));
      }
    }
  };
  expect(21, {f32, f32, f32}, ProductKernels::chain);
  expect(24, {bf16, bf16, bf16}, ProductKernels::chain);
  expect(24, {bf16, bf16, bf16}, ProductKernels::tensor);
  expect(72, {f16, f16, f32}, ProductKernels::tensor);
}

// Contract E3 holds for cuts between samples, and for cuts within samples at multiples of chain_terms.
TEST(AdapterWeightGradient, CutsChangeNoBit) {
  Random random(6);
  constexpr int64_t samples = 4;
  for (ProductKernels products : both_ways)
    for (int64_t rows_per_sample : {5, 32, 70, 256, 530}) {
      const DType half = rows_per_sample % 4 ? bf16 : f16;
      const Shape shape = {
          samples, rows_per_sample, rows_per_sample == 32 ? 21 : 24, 120, {{8, 40}, {56, 64}}};
      Problem p(random, shape, {half, half, f32}, rows_per_sample % 3 > 0, products);
      std::vector<std::vector<int64_t>> cuts = {
          {rows_per_sample}, {rows_per_sample, 2 * rows_per_sample, 3 * rows_per_sample}, {}};
      for (int64_t sample = 0; sample < samples; ++sample)
        for (int64_t tile = chain_terms; tile < rows_per_sample; tile += chain_terms)
          cuts.back().push_back(sample * rows_per_sample + tile);
      for (int round = 0; round < 4; ++round) {
        std::vector<int64_t>& some = cuts.emplace_back();
        for (int64_t row = 0;; some.push_back(row)) {
          row += random.between(chain_terms, 2 * rows_per_sample + chain_terms);
          row -= row % rows_per_sample % chain_terms;
          if (row >= p.rows) break;
        }
      }
      for (const NamedTable& t : tables()) {
        const std::vector<Buffer> whole = p.weight_gradients(*t.table, 2);
        for (size_t i = 0; i < cuts.size(); ++i)
          EXPECT_TRUE(same(p.weight_gradients(*t.table, 2, cuts[i]), whole))
              << t.name << ", cuts " << i << ", " << p.describe();
      }
    }
}

TEST(AdapterWeightGradient, FrozenPartsStayUnchanged) {
  Random random(7);
  for (ProductKernels products : both_ways) {
    Problem p(random, {2, 19, 16, 96, {{0, 16}, {24, 40}, {64, 8}}}, {bf16, bf16, f32}, true, products);
    for (const NamedTable& t : tables()) {
      const std::vector<Buffer> all = p.weight_gradients(*t.table, 2);
      for (int frozen = 0; frozen < 3; ++frozen) {
        std::vector<Buffer> expected = all;
        expected[frozen] = p.gradient[frozen];
        EXPECT_TRUE(same(p.weight_gradients(*t.table, 2, {}, frozen), expected))
            << t.name << ", part " << frozen << ", " << p.describe();
      }
    }
  }
}

TEST(AdapterWeightGradient, OfNoRowsIsZero) {
  Random random(8);
  for (ProductKernels products : both_ways) {
    Problem p(random, {1, 3, 8, 32, {{0, 8}, {16, 16}}}, {bf16, bf16, f32}, false, products);
    p.rows = 0;
    for (const NamedTable& t : tables())
      EXPECT_TRUE(same(p.weight_gradients(*t.table, 1), {Buffer(f32, 8 * 8), Buffer(f32, 16 * 8)})) << t.name;
  }
}

// In shapes that tensor cores support, in others, and in shapes where they support only y's product. The CPU
// has no tensor cores.
TEST(TensorAdapter, StaysCloseToDoublePrecision) {
  Random random(9);
  const auto expect = [](Problem p) {
    p.products = ProductKernels::tensor;
    const std::vector<std::vector<double>> expected = reference<double>(p);
    for (const NamedTable& t : tables()) {
      SCOPED_TRACE(std::string(t.name) + ", " + p.describe());
      expect_close(p.results(*t.table, 1), expected);
    }
  };
  for (int round = 0; round < 24; ++round) {
    const DType half = round % 2 ? f16 : bf16;
    expect(Problem(random, random_shape(random, round % 8 < 6 ? 8 : 1, round % 4 < 2 ? 8 : 1),
                   {half, half, dtype_of(round)}, round % 3));
  }
  // Tiles of either size, some of them inside the output.
  for (const Types& types : {Types{bf16, bf16, bf16}, Types{f16, f16, f32}, Types{f16, f16, bf16}}) {
    expect(Problem(random, {1, 133, 136, 576, {{8, 264}, {280, 136}, {416, 160}}}, types, true));
    expect(Problem(random, {2, 40, 72, 137, {{1, 136}}}, types, true));
  }
}

// A shape that tensor cores do not support has the bits of chains.
TEST(TensorAdapter, TakesRanksAndColumnsInEights) {
  Random random(10);
  const auto expect = [&](Shape shape, Types types, bool forward, bool input, bool weights) {
    Problem p(random, std::move(shape), types);
    for (const NamedTable& t : tables()) {
      p.products = ProductKernels::chain;
      const std::vector<Buffer> chains = p.results(*t.table, 1);
      p.products = ProductKernels::tensor;
      const std::vector<Buffer> found = p.results(*t.table, 1);
      const bool has_tensor_cores = std::string(t.name) == "CUDA",
                 taken[] = {forward, input, weights, weights};
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(same_bits(found[i], chains[i]), !(has_tensor_cores && taken[i]))
            << t.name << ", output " << i << ", " << p.describe();
    }
  };
  for (int64_t rank : {8, 24, 64})
    expect({2, 35, rank, 120, {{8, 40}, {56, 64}}}, {bf16, bf16, f32}, true, true, true);
  for (int64_t rank : {4, 12, 21})
    expect({2, 35, rank, 120, {{8, 40}, {56, 64}}}, {bf16, bf16, f32}, false, false, false);
  expect({2, 35, 16, 120, {{3, 40}, {56, 64}}}, {f16, f16, f32}, true, false, false);
  expect({2, 35, 16, 121, {{8, 40}, {56, 64}}}, {f16, f16, f32}, true, false, false);
  expect({2, 35, 16, 120, {{8, 40}, {56, 63}}}, {f16, f16, f32}, true, false, false);
  expect({2, 35, 16, 120, {{8, 40}, {56, 64}}}, {bf16, f32, f32}, false, false, true);
  expect({2, 35, 16, 120, {{8, 40}, {56, 64}}}, {f32, f32, f32}, false, false, false);
}

}  // namespace
}  // namespace stw::kernels::test::adapter_test
