// Every tile of the tensor-core products, forced. The device decides which tile a product gets, so a test
// that forces no tile sees only some of them. All tiles of a kind of kernels give the same bits, on which the
// contracts rely, and numbers close to fp64's.
#include "tests/kernels/product/product_tiles.h"
#include "tests/kernels/harness.h"

namespace stw::kernels::test::product_tiles_test {
namespace {

constexpr DType f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16;

// Numbers between -1 and 1, four from a word of random bits. Box-Muller would take minutes for matrices of a
// real model.
Buffer uniform(DType dtype, Random& random, int64_t count) {
  Buffer buffer(dtype, count);
  uint64_t word = 0;
  for (int64_t i = 0; i < count; ++i) {
    word = i % 4 == 0 ? random.bits() : word >> 16;
    buffer.set(i, static_cast<float>(static_cast<int16_t>(word & 0xffff)) * 0x1p-15f);
  }
  return buffer;
}

enum class Output { forward, input_gradient, weight_gradient, rounded_weight_gradient };
constexpr Output outputs[] = {Output::forward, Output::input_gradient, Output::weight_gradient,
                              Output::rounded_weight_gradient};
constexpr const char* names[] = {"y", "dx", "dW", "dW in bf16"};

// A linear op of one part.
struct Linear {
  int64_t rows, rows_per_sample, inputs, features;
  DType half;
  bool transposed;
  DType of_rows = half;  // Type of x and dy.
  StepState state = {};
  Buffer x = {}, weight = {}, dy = {}, bias = {}, start = {};  // start: the start value of dW.

  void fill(Random& random) {
    x = uniform(half, random, rows * inputs), weight = uniform(half, random, features * inputs),
    dy = uniform(half, random, rows * features);
    bias = uniform(half, random, features), start = uniform(f32, random, features * inputs);
  }
  DType dtype_of(Output o) const {
    return o == Output::weight_gradient ? f32 : o == Output::rounded_weight_gradient ? bf16 : of_rows;
  }
  int64_t count_of(Output o) const {
    return o == Output::forward          ? rows * features
           : o == Output::input_gradient ? rows * inputs
                                         : features * inputs;
  }

  void compute(Output o, ProductKernels products, Buffer& to) {
    const Table& table = *cuda_table();
    LinearArgs a = {};
    a.rows = rows, a.inputs = inputs, a.rows_per_sample = rows_per_sample, a.parts = 1,
    a.transposed = transposed, a.products = products, a.exact = true;
    a.weight_dtype = half, a.gradient_dtype = f32, a.y_stride = features, a.addend = {nullptr, f32};
    a.part[0] = {weight.data(), bias.data(), nullptr, nullptr, features};
    a.x = o == Output::input_gradient ? to.matrix() : x.matrix();
    a.y = o == Output::forward ? to.matrix() : dy.matrix();
    if (o == Output::forward) return run(table.linear, a, 1, 0);
    if (o == Output::input_gradient) return run(table.linear_input_gradient, a, 1, 0);
    a.part[0].weight_gradient = to.data();
    a.gradient_dtype = dtype_of(o);
    a.accumulate = o == Output::weight_gradient;
    if (a.accumulate) std::memcpy(to.data(), start.data(), start.bytes().size());
    else a.state = &state;
    run(table.linear_weight_gradient, a, 1, 0);
  }

  // An element in fp64, and the sum of the magnitudes of its terms.
  struct Exact {
    double sum, size;
  };
  Exact exact(Output o, int64_t at) const {
    Exact e = {0, 0};
    const auto add = [&](double term) { e.sum += term, e.size += std::fabs(term); };
    const auto w = [&](int64_t feature, int64_t input) {
      return static_cast<double>(
          weight.get(transposed ? input * features + feature : feature * inputs + input));
    };
    if (o == Output::forward) {
      const int64_t row = at / features, feature = at % features;
      for (int64_t k = 0; k < inputs; ++k) add(x.get(row * inputs + k) * w(feature, k));
      add(bias.get(feature));
    } else if (o == Output::input_gradient) {
      const int64_t row = at / inputs, input = at % inputs;
      for (int64_t k = 0; k < features; ++k) add(dy.get(row * features + k) * w(k, input));
    } else {
      const int64_t feature = transposed ? at % features : at / inputs,
                    input = transposed ? at / features : at % inputs;
      for (int64_t k = 0; k < rows; ++k)
        add(static_cast<double>(dy.get(k * features + feature)) * x.get(k * inputs + input));
      if (o == Output::weight_gradient) add(start.get(at));
    }
    return e;
  }
};

// The tolerance, relative to the sum of magnitudes: some units of fp32, or the rounding to 16 bits (once a
// sample, up or down).
double limit_of(Output o, DType dtype) {
  return o == Output::rounded_weight_gradient ? 0x1p-6
         : dtype == f32                       ? 0x1p-18
         : dtype == bf16                      ? 0x1p-8
                                              : 0x1p-11;
}

void expect_tiles_alike(Linear& p, Random& random) {
  p.fill(random);
  for (const ProductKernels products : tensor_kernels())
    for (const Output o : outputs) {
      SCOPED_TRACE(std::string(products == ProductKernels::tensor ? "mma " : "wgmma ") +
                   names[static_cast<int>(o)] + ", rows " + std::to_string(p.rows) + ", inputs " +
                   std::to_string(p.inputs) + ", features " + std::to_string(p.features) +
                   (p.transposed ? ", transposed" : ""));
      Buffer first, found;
      const auto try_tiles = [&](int stages) {
        const SwitchesOfScope scope;
        cuda::developer_switches().stages = stages;
        return for_product_tiles(
            [&](const std::string&) {
              found = Buffer(p.dtype_of(o), p.count_of(o));
              std::memset(found.data(), 0xff, found.bytes().size());
            },
            [&] { p.compute(o, products, found); },
            [&](const std::string& name) {
              if (first.count() == 0) first = found;
              else EXPECT_TRUE(same_bits(found, first)) << name << ", stages " << stages;
            });
      };
      const TilesTried tried = try_tiles(0);
      if (products == ProductKernels::warpgroup && o == Output::weight_gradient)
        for (const int stages : {4, 6}) try_tiles(stages);
      EXPECT_GE(tried.computed.size(), 2u);
      for (int i = 0; i < 256; ++i) {
        const int64_t at = i == 0 ? 0 : i == 1 ? first.count() - 1 : random.between(0, first.count() - 1);
        const Linear::Exact exact = p.exact(o, at);
        ASSERT_NEAR(first.get(at), exact.sum, limit_of(o, p.dtype_of(o)) * exact.size) << "element " << at;
      }
    }
}

// On a real GPU, the products of GPT-2. On the emulated machine, products with edges of every tile, whole
// tiles, samples that end within a slice, and more slices of tokens than any tile has stages.
TEST(ProductTiles, AllGiveTheSameBits) {
  Random random(21);
  struct Extents {
    int64_t rows, rows_per_sample, inputs, features;
  };
  const std::vector<Extents> shapes =
      emulated() ? std::vector<Extents>{{140, 70, 136, 264}, {600, 300, 72, 200}, {128, 128, 256, 384}}
                 : std::vector<Extents>{{4096, 1024, 768, 2304},
                                        {4096, 1024, 768, 768},
                                        {4096, 1024, 768, 3072},
                                        {4096, 1024, 3072, 768},
                                        {700, 350, 392, 1096}};
  for (const Extents& e : shapes)
    for (bool transposed : {false, true}) {
      Linear p = {e.rows, e.rows_per_sample, e.inputs, e.features, transposed ? f16 : bf16, transposed};
      expect_tiles_alike(p, random);
    }
}

TEST(ProductTiles, AllGiveTheSameBitsInFp32) {
  Random random(22);
  Linear p = {140, 140, 328, 584, bf16, false, f32};
  expect_tiles_alike(p, random);
}

// A forced tile that a product does not support is not replaced by another: nothing runs.
TEST(ProductTiles, UnsupportedOnesAreRefused) {
  Random random(23);
  Linear p = {64, 64, 64, 64, bf16, false};
  p.fill(random);
  const SwitchesOfScope scope;
  cuda::developer_switches().tile = cuda::wgmma_64x128;
  Buffer y(bf16, 64 * 64);
  std::memset(y.data(), 0xff, y.bytes().size());
  const Buffer before = y;
  p.compute(Output::forward, ProductKernels::tensor, y);
  EXPECT_EQ(cuda::developer_switches().refused, 1);
  EXPECT_TRUE(same_bits(y, before));
}

}  // namespace
}  // namespace stw::kernels::test::product_tiles_test
