// Computes the mean loss of a row's values, and writes its gradient in place of the logits. This takes one
// pass, because the elements are independent.
#include "kernels/common/value_loss.h"
#include "kernels/cpu/row_lanes.h"

namespace stw::kernels::STW_ISA {
namespace {

template <DType dtype, ValueLoss kind>
void row_of_values(const ValueLossArgs& args, float factor, int64_t row) {
  const int64_t at = row * args.stride;
  const float weight = args.weights == nullptr ? 1.0f : args.weights[row];
  const auto clear = [&](int64_t first) {
    const int64_t bytes = element_bytes(dtype);
    if (args.gradient)
      memset((char*)args.logits.data + (at + first) * bytes, 0, (size_t)((args.stride - first) * bytes));
  };
  if (args.targets[row] == ignored_target || weight == 0) {  // A weight of 0 times a NaN would be NaN.
    args.row_loss[row] = 0;
    return clear(0);
  }
  const float* values = args.values + row * args.count;
  const F16 slopes = splat(factor * weight);
  const float sum = sum_of_columns(0, args.count, [&](int64_t column, int64_t lanes) {
    const ValueTerm term = value_term<kind>(load_lanes<dtype>(args.logits.data, at + column, lanes, 0),
                                            load_lanes<DType::f32>(values, column, lanes, 0));
    if (args.gradient) store_lanes<dtype>(args.logits.data, at + column, lanes, mul(term.slope, slopes));
    return first_lanes(term.loss, min(lanes, (int64_t)16));
  });
  args.row_loss[row] = sum / (float)args.count * weight;
  clear(args.count);
}

}  // namespace

void value_loss(const Launch& launch, const ValueLossArgs& args) {
  const float factor = slope_factor(args);
  const int64_t step = max(1, 4096 / args.count);  // Rows of a task: enough work for a thread.
  with_dtype(args.logits.dtype, [&](auto stored) {
    constexpr DType dtype = stored.dtype;
    parallel_for(launch, ceil_div(args.rows, step), [&](int64_t index, int) {
      for (int64_t row = index * step; row < min(args.rows, (index + 1) * step); ++row) {
        if (args.kind == ValueLoss::squared_error)
          row_of_values<dtype, ValueLoss::squared_error>(args, factor, row);
        else row_of_values<dtype, ValueLoss::binary_cross_entropy>(args, factor, row);
      }
    });
  });
}

}  // namespace stw::kernels::STW_ISA
