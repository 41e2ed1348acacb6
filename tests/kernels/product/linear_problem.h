// One call of each linear kernel with random data, and the results of naive sums to compare with: chains of
// fmaf, or another `Sum`.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "tests/kernels/harness.h"
#include "tests/kernels/product/rounding.h"

namespace stw::kernels::test {

struct Types {
  DType activation, weight, output, addend;
};
struct Shape {
  int64_t samples, rows_per_sample, inputs;
  std::vector<int64_t> features;
};

// The accumulator of an element of a naive result; `end` is called after every part and every sample. This
// one has chains of fmaf of at most chain_terms terms, whose results are added in order.
struct Chain {
  float value;
  float chain = 0;
  int64_t terms = 0;
  void add(float a, float b) {
    chain = std::fmaf(a, b, chain);
    if (++terms == chain_terms) end();
  }
  void end() {
    if (terms == 0) return;
    value += chain;
    chain = 0, terms = 0;
  }
};

struct Problem {
  Shape shape;
  Types types;
  bool transposed = false, bias = false, accumulate = false;
  ProductKernels products = ProductKernels::chain;
  bool exact = true;
  int64_t y_stride = 0;  // Distance between rows of y, and of dy as kernels get it; 0: outputs.
  int64_t rows = 0, outputs = 0;
  DType gradient_dtype = DType::f32;  // Type of weight gradients.
  StepState state = {};               // For the rounding, if gradients are bf16.
  Buffer x, dy, addend, residual;     // residual: empty, or added to y.
  std::vector<Buffer> weight, biases, weight_gradient, bias_gradient;

  Problem(Random& random, Shape s, Types t, bool transposed_, bool bias_, bool accumulate_)
      : shape(std::move(s)), types(t), transposed(transposed_), bias(bias_), accumulate(accumulate_) {
    rows = shape.samples * shape.rows_per_sample;
    x = Buffer::normal(types.activation, random, rows * shape.inputs);
    for (int64_t features : shape.features) {
      outputs += features;
      weight.push_back(Buffer::normal(types.weight, random, features * shape.inputs));
      biases.push_back(Buffer::normal(types.weight, random, features));
      weight_gradient.push_back(Buffer::normal(DType::f32, random, features * shape.inputs));
      bias_gradient.push_back(Buffer::normal(DType::f32, random, features));
    }
    dy = Buffer::normal(types.activation, random, rows * outputs);
    addend = Buffer::normal(types.addend, random, rows * shape.inputs);
  }

  // From now on, gradients of weights are bf16.
  void round_gradients(uint64_t seed) {
    gradient_dtype = DType::bf16;
    state.seed = seed, state.step = 3, state.first_sample = 5;
    for (Buffer& gradient : weight_gradient) gradient = Buffer(DType::bf16, gradient.floats());
  }
  // From now on, the product of one part is added to a residual.
  void add_residual(Random& random) { residual = Buffer::normal(types.output, random, rows * outputs); }
  static uint32_t stream_of(size_t part) { return static_cast<uint32_t>(40 + 3 * part); }

  float w(size_t part, int64_t feature, int64_t input) const {
    return weight[part].get(dw_at(part, feature, input));
  }
  int64_t dw_at(size_t part, int64_t feature, int64_t input) const {
    return transposed ? input * shape.features[part] + feature : feature * shape.inputs + input;
  }

  LinearArgs args(Matrix x_matrix, Matrix y_matrix) {
    LinearArgs a = {};
    a.rows = rows, a.inputs = shape.inputs, a.rows_per_sample = shape.rows_per_sample;
    a.parts = static_cast<int>(shape.features.size());
    a.transposed = transposed, a.accumulate = accumulate, a.products = products, a.exact = exact,
    a.weight_dtype = types.weight;
    a.gradient_dtype = gradient_dtype, a.state = gradient_dtype == DType::f32 ? nullptr : &state;
    for (size_t i = 0; i < shape.features.size(); ++i)
      a.part[i] = {weight[i].data(), bias ? biases[i].data() : nullptr, nullptr, nullptr, shape.features[i],
                   stream_of(i)};
    a.y_stride = y_stride > 0 ? y_stride : outputs, a.x = x_matrix, a.y = y_matrix,
    a.addend = {nullptr, DType::f32};
    return a;
  }

  std::string describe() const {
    std::string text = "samples " + std::to_string(shape.samples) + " × " +
                       std::to_string(shape.rows_per_sample) + ", inputs " + std::to_string(shape.inputs) +
                       ", features";
    for (int64_t features : shape.features) text += " " + std::to_string(features);
    for (DType type : {types.activation, types.weight, types.output, types.addend})
      text += std::string(" ") + name_of(type);
    if (residual.count() > 0) text += " residual";
    return text + (transposed ? " transposed" : "") + (bias ? " bias" : "") +
           (accumulate ? " accumulate" : "") + (gradient_dtype == DType::bf16 ? " bf16" : "");
  }

  Buffer forward(const Table& table, int threads) {
    Buffer y(types.output, rows * outputs);
    LinearArgs a = args(x.matrix(), y.matrix());
    if (residual.count() > 0) a.residual = residual.const_matrix();
    run(table.linear, a, threads, linear_workspace(a, threads));
    return y;
  }
  enum class Addend { none, other, in_place };
  Buffer input_gradient(const Table& table, int threads, Addend kind) {
    Buffer dx = kind == Addend::in_place ? addend : Buffer(types.output, rows * shape.inputs);
    LinearArgs a = args(dx.matrix(), dy.matrix());
    if (kind == Addend::other) a.addend = addend.const_matrix();
    if (kind == Addend::in_place) a.addend = dx.const_matrix();
    run(table.linear_input_gradient, a, threads, linear_input_gradient_workspace(a, threads));
    return dx;
  }
  struct Gradients {
    std::vector<Buffer> weight, bias;
  };
  // `cut`: sorted sample numbers where a new call begins. Parts in `frozen` have no gradients.
  Gradients parameter_gradients(const Table& table, int threads, const std::vector<int64_t>& cuts = {},
                                int frozen = -1) {
    Gradients result = {weight_gradient, bias_gradient};
    int64_t from = 0;
    for (size_t piece = 0; piece <= cuts.size(); ++piece) {
      const int64_t to = piece < cuts.size() ? cuts[piece] : shape.samples;
      const int64_t row = from * shape.rows_per_sample, size = types.activation == DType::f32 ? 4 : 2;
      LinearArgs a = args({static_cast<char*>(x.data()) + row * shape.inputs * size, types.activation},
                          {static_cast<char*>(dy.data()) + row * outputs * size, types.activation});
      a.rows = (to - from) * shape.rows_per_sample;
      a.accumulate = accumulate || piece > 0;
      StepState of_piece = state;
      of_piece.first_sample += static_cast<uint64_t>(from);
      if (a.state != nullptr) a.state = &of_piece;
      for (int i = 0; i < a.parts; ++i)
        if (i != frozen) {
          a.part[i].weight_gradient = result.weight[i].data();
          a.part[i].bias_gradient = result.bias[i].data();
        }
      run(table.linear_weight_gradient, a, threads, linear_weight_gradient_workspace(a, threads));
      run(table.linear_bias_gradient, a, threads, linear_bias_gradient_workspace(a, threads));
      from = to;
    }
    return result;
  }

  // The weight gradient of the first part, computed in pieces that begin at rows `cuts`.
  Buffer weight_gradients_in(const Table& table, const std::vector<int64_t>& cuts) {
    Buffer result = weight_gradient[0];
    const int64_t size = types.activation == DType::f32 ? 4 : 2;
    for (size_t piece = 0; piece <= cuts.size(); ++piece) {
      const int64_t from = piece > 0 ? cuts[piece - 1] : 0, to = piece < cuts.size() ? cuts[piece] : rows;
      LinearArgs a = args({static_cast<char*>(x.data()) + from * shape.inputs * size, types.activation},
                          {static_cast<char*>(dy.data()) + from * outputs * size, types.activation});
      a.rows = to - from, a.first_row = from % shape.rows_per_sample, a.accumulate = accumulate || piece > 0;
      a.part[0].weight_gradient = result.data();
      run(table.linear_weight_gradient, a, 2, linear_weight_gradient_workspace(a, 2));
    }
    return result;
  }

  // Converted once: reading a 16-bit number takes longer than a multiply-add.
  static std::vector<std::vector<float>> floats_of(const std::vector<Buffer>& buffers) {
    std::vector<std::vector<float>> all;
    for (const Buffer& b : buffers) all.push_back(b.floats());
    return all;
  }
  template <class Sum = Chain>
  Buffer naive_forward() const {
    Buffer y(types.output, rows * outputs);
    const std::vector<float> xs = x.floats();
    const std::vector<std::vector<float>> ws = floats_of(weight);
    for (int64_t row = 0; row < rows; ++row) {
      int64_t at = row * outputs;
      for (size_t part = 0; part < weight.size(); ++part)
        for (int64_t feature = 0; feature < shape.features[part]; ++feature, ++at) {
          Sum sum{0};
          for (int64_t i = 0; i < shape.inputs; ++i)
            sum.add(xs[row * shape.inputs + i], ws[part][dw_at(part, feature, i)]);
          sum.end();
          y.set(at, bias ? sum.value + biases[part].get(feature) : sum.value);
          if (residual.count() > 0) y.set(at, residual.get(at) + y.get(at));
        }
    }
    return y;
  }
  template <class Sum = Chain>
  Buffer naive_input_gradient(bool added) const {
    Buffer dx(types.output, rows * shape.inputs);
    const std::vector<float> dys = dy.floats();
    const std::vector<std::vector<float>> ws = floats_of(weight);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < shape.inputs; ++i) {
        Sum sum{added ? addend.get(row * shape.inputs + i) : 0};
        int64_t at = row * outputs;
        for (size_t part = 0; part < weight.size(); ++part) {
          for (int64_t feature = 0; feature < shape.features[part]; ++feature, ++at)
            sum.add(dys[at], ws[part][dw_at(part, feature, i)]);
          sum.end();
        }
        dx.set(row * shape.inputs + i, sum.value);
      }
    return dx;
  }
  template <class Sum = Chain>
  Gradients naive_parameter_gradients() const {
    Gradients result = {weight_gradient, bias_gradient};
    const std::vector<float> xs = x.floats(), dys = dy.floats();
    int64_t first = 0;
    for (size_t part = 0; part < weight.size(); first += shape.features[part++])
      for (int64_t feature = 0; feature < shape.features[part]; ++feature) {
        for (int64_t i = 0; i < shape.inputs; ++i) {
          const int64_t at = dw_at(part, feature, i);
          Sum sum{accumulate ? weight_gradient[part].get(at) : 0};
          for (int64_t row = 0; row < rows; ++row) {
            sum.add(dys[row * outputs + first + feature], xs[row * shape.inputs + i]);
            if ((row + 1) % shape.rows_per_sample != 0) continue;
            sum.end();
            const auto sample = static_cast<uint64_t>(row / shape.rows_per_sample);
            if (gradient_dtype == DType::bf16)
              sum.value = rounded_gradient_of(
                  sum.value, {state.seed, state.step, state.first_sample + sample, stream_of(part)}, at);
          }
          result.weight[part].set(at, sum.value);
        }
        float total = accumulate ? bias_gradient[part].get(feature) : 0;
        for (int64_t sample = 0; sample < shape.samples; ++sample) {
          float group = 0;
          for (int64_t tile = 0; tile < shape.rows_per_sample; tile += token_tile) {
            if (tile % chain_terms == 0) total += group, group = 0;
            float sum = 0;
            for (int64_t t = tile; t < std::min(tile + token_tile, shape.rows_per_sample); ++t)
              sum += dy.get((sample * shape.rows_per_sample + t) * outputs + first + feature);
            group += sum;
          }
          total += group;
        }
        result.bias[part].set(feature, total);
      }
    return result;
  }
};

inline bool same(const Problem::Gradients& a, const Problem::Gradients& b) {
  for (size_t i = 0; i < a.weight.size(); ++i)
    if (!same_bits(a.weight[i], b.weight[i]) || !same_bits(a.bias[i], b.bias[i])) return false;
  return true;
}

constexpr DType f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16;

inline Problem tensor_problem(Random& random, Shape shape, Types types, bool transposed, bool bias,
                              bool accumulate) {
  Problem problem(random, std::move(shape), types, transposed, bias, accumulate);
  problem.products = ProductKernels::tensor;
  return problem;
}

// A random extent. Seven of eight are multiples of eight; tensor cores may not support the others.
inline int64_t extent(Random& random, int64_t largest) {
  const int64_t any = random.between(1, largest);
  return random.between(0, 7) == 0 ? any : (any + 7) / 8 * 8;
}
inline Problem random_tensor_problem(Random& random, int round) {
  Shape shape = {random.between(1, 3), random.between(1, 50), extent(random, 90), {}};
  for (int64_t parts = random.between(1, max_parts); parts > 0; --parts)
    shape.features.push_back(extent(random, round % 2 ? 30 : 90));
  const DType half = round % 2 ? f16 : bf16;
  return tensor_problem(random, shape, {half, half, dtype_of(round / 2), dtype_of(round / 6)},
                        random.bits() & 1, random.bits() & 1, random.bits() & 1);
}

// Gradients of weights in bf16.
inline Problem rounded_problem(Random& random, Shape shape, DType activation, bool transposed,
                               bool accumulate) {
  Problem problem(random, std::move(shape), {activation, DType::f32, DType::f32, DType::f32}, transposed,
                  false, accumulate);
  problem.round_gradients(random.bits());
  return problem;
}

}  // namespace stw::kernels::test
