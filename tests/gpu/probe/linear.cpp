#include "tests/gpu/probe/linear.h"

#include <algorithm>

namespace stw::probe {

kernels::LinearArgs Linear::args(const Noise& noise, const Memory& output, ProductKernels products,
                                 bool exact) const {
  const auto half = [&](uint64_t at, int64_t count) {
    return const_cast<uint16_t*>(noise.device(at, static_cast<uint64_t>(count)));
  };
  kernels::LinearArgs a = {};
  a.rows = rows, a.inputs = inputs, a.rows_per_sample = rows_per_sample;
  a.parts = 1, a.transposed = transposed, a.products = products, a.exact = exact;
  a.weight_dtype = DType::bf16, a.gradient_dtype = DType::f32;
  a.part[0].features = features;
  a.part[0].weight = half(weight_at(), inputs * features);
  a.x = {half(x_at(), rows * inputs), DType::bf16}, a.y = {half(dy_at(), rows * features), DType::bf16};
  a.y_stride = features;
  if (pass == Pass::forward) a.y.data = output.data();
  else if (pass == Pass::input) a.x.data = output.data();
  else a.part[0].weight_gradient = output.data();
  return a;
}

static auto kernel_of(const Calls& calls, Pass pass) {
  return pass == Pass::forward ? calls.table.linear
         : pass == Pass::input ? calls.table.linear_input_gradient
                               : calls.table.linear_weight_gradient;
}
void run(Calls& calls, const Linear& linear, const kernels::LinearArgs& args) {
  calls.run(kernel_of(calls, linear.pass), args, 0, linear.text().c_str());
}
double seconds(Calls& calls, const Linear& linear, const kernels::LinearArgs& args, bool small) {
  return calls.seconds(kernel_of(calls, linear.pass), args, 0, linear.text().c_str(), small);
}

Samples samples_of(const Linear& linear, const Noise& noise, int64_t count) {
  Samples s;
  const int64_t columns = linear.pass == Pass::forward                       ? linear.features
                          : linear.pass == Pass::input || !linear.transposed ? linear.inputs
                                                                             : linear.features;
  s.element = {0, columns - 1, linear.outputs() - columns, linear.outputs() - 1};
  uint64_t state = 7;
  while (static_cast<int64_t>(s.element.size()) < count)
    s.element.push_back(static_cast<int64_t>(random_bits(state) % static_cast<uint64_t>(linear.outputs())));
  for (const int64_t element : s.element) {
    double sum = 0, step = 0;
    float chain = 0;
    int64_t k = 0;
    linear.for_factors(noise, element, [&](float a, float b) {
      const double product = static_cast<double>(a) * static_cast<double>(b);
      sum += product, step += product;
      if (++k % kernels::product_step == 0)
        chain = static_cast<float>(static_cast<double>(chain) + step), step = 0;
    });
    chain = static_cast<float>(static_cast<double>(chain) + step);
    s.value.push_back(sum);
    s.scale = std::max(s.scale, std::fabs(sum));
    s.rounded = std::max(s.rounded, std::fabs(static_cast<double>(chain) - sum));
  }
  return s;
}

Error error_of(const Linear& linear, const Samples& samples, const std::vector<uint16_t>& halves,
               double limit) {
  Error error;
  for (size_t i = 0; i < samples.element.size(); ++i) {
    const auto at = static_cast<size_t>(samples.element[i]);
    double value, of_element;
    if (linear.is_float()) {
      value = __builtin_bit_cast(
          float, static_cast<uint32_t>(halves[2 * at]) | static_cast<uint32_t>(halves[2 * at + 1]) << 16);
      of_element = limit * samples.scale;
    } else {
      value = float_of(halves[at]);
      of_element = bf16_limit(samples.value[i], samples.scale, linear.depth());
    }
    error.add(value, samples.value[i], of_element);
  }
  return error;
}

}  // namespace stw::probe
