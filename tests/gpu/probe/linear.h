// Matrix products of the probe: the three linear kernels of one weight, with operands that are slices of the
// noise.
#pragma once
#include <cmath>

#include "tests/gpu/probe/card.h"

namespace stw::probe {

// `transposed`: the weight is (inputs, features), as in GPT-2. A factor of a product is contiguous along the
// depth or along the output. In the forward product both are contiguous along the depth, but a transposed
// weight along the output. For the input gradient it is the other way round. In weight gradients both are
// contiguous along the output.
enum class Pass { forward, input, weight };
inline const char* name_of(Pass pass) {
  return pass == Pass::forward ? "forward" : pass == Pass::input ? "dX" : "dW";
}
inline constexpr Pass passes[] = {Pass::forward, Pass::input, Pass::weight};

struct Linear {
  int64_t rows, inputs, features;
  Pass pass;
  bool transposed;
  int64_t rows_per_sample;
  uint64_t first = 0;  // offset of the operands in the noise

  double flops() const { return 2.0 * static_cast<double>(rows * inputs) * static_cast<double>(features); }
  int64_t outputs() const {
    return pass == Pass::forward ? rows * features : pass == Pass::input ? rows * inputs : inputs * features;
  }
  bool is_float() const { return pass == Pass::weight; }
  uint64_t output_bytes() const { return static_cast<uint64_t>(outputs()) * (is_float() ? 4 : 2); }
  int64_t depth() const { return pass == Pass::forward ? inputs : pass == Pass::input ? features : rows; }
  std::string text() const {
    return text_of("%s %lld x %lld -> %lld%s", name_of(pass), static_cast<long long>(rows),
                   static_cast<long long>(inputs), static_cast<long long>(features),
                   transposed ? ", transposed" : "");
  }

  // Offsets in the noise: x, the weight and dy, in this order.
  uint64_t x_at() const { return first; }
  uint64_t weight_at() const { return first + static_cast<uint64_t>(rows * inputs); }
  uint64_t dy_at() const { return weight_at() + static_cast<uint64_t>(inputs * features); }
  uint64_t noise() const { return dy_at() + static_cast<uint64_t>(rows * features); }

  kernels::LinearArgs args(const Noise& noise, const Memory& output, ProductKernels products,
                           bool exact = true) const;
  // Calls body for the pairs of factors of one output element, in order along k.
  template <class Body>
  void for_factors(const Noise& noise, int64_t element, const Body& body) const {
    const uint16_t *const x = noise.host(x_at()), *const w = noise.host(weight_at()),
                          *const dy = noise.host(dy_at());
    const auto weight = [&](int64_t feature, int64_t input) {
      return float_of(w[transposed ? input * features + feature : feature * inputs + input]);
    };
    if (pass == Pass::forward) {
      for (int64_t i = 0, row = element / features; i < inputs; ++i)
        body(float_of(x[row * inputs + i]), weight(element % features, i));
    } else if (pass == Pass::input) {
      for (int64_t f = 0, row = element / inputs; f < features; ++f)
        body(float_of(dy[row * features + f]), weight(f, element % inputs));
    } else {
      const int64_t feature = transposed ? element % features : element / inputs,
                    input = transposed ? element / features : element % inputs;
      for (int64_t row = 0; row < rows; ++row)
        body(float_of(dy[row * features + feature]), float_of(x[row * inputs + input]));
    }
  }
};

void run(Calls& calls, const Linear& linear, const kernels::LinearArgs& args);
double seconds(Calls& calls, const Linear& linear, const kernels::LinearArgs& args, bool small);

// Elements spread over the output, including its corners, and their sums in double precision.
struct Samples {
  std::vector<int64_t> element;
  std::vector<double> value;
  double scale = 0;  // the largest sum
  // largest error of chains that are rounded to nearest after every step of the tensor cores
  double rounded = 0;
};
Samples samples_of(const Linear& linear, const Noise& noise, int64_t count);
// Compares `output` with the samples. bf16 outputs must be within their rounding, fp32 sums within `limit`,
// relative to the largest.
inline constexpr double usual_limit = 1e-5;
Error error_of(const Linear& linear, const Samples& samples, const std::vector<uint16_t>& halves,
               double limit = usual_limit);

}  // namespace stw::probe
