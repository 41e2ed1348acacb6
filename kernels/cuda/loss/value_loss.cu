// Computes the mean loss of a row's values, and writes its gradient in place of the logits. Sixteen threads
// take a row, and their sums have the CPU's bits. Few rows have values; most of the time goes into zeros for
// the others.
#include "kernels/common/value_loss.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/row_quads.h"

namespace stw::kernels::cuda {

static constexpr int value_threads = 64;  // A block has four rows.

// This quad's lanes of the sum over columns [begin, end).
template <DType dtype, ValueLoss kind>
STW_DEVICE F16 sum_of_values(const ValueLossArgs& args, void* logits, const float* values, F16 slopes,
                             int64_t begin, int64_t end) {
  F16 sum = zero();
  STW_ROLLED
  for (int64_t j = begin + 16 * quad_of_row(); j < end; j += row_step) {
    const int64_t n = min(end - j, static_cast<int64_t>(16));
    const ValueTerm term =
        value_term<kind>(load_group(logits, dtype, j, n), load_group(values, DType::f32, j, n));
    if (args.gradient) store_group(logits, dtype, j, mul(term.slope, slopes), n);
    sum = add(sum, first_lanes(term.loss, n));
  }
  return sum;
}

template <DType dtype, ValueLoss kind>
static __global__ void __launch_bounds__(value_threads, 10) value_loss_kernel(ValueLossArgs args) {
  const float factor = slope_factor(args);
  const int64_t rows_of_grid = static_cast<int64_t>(gridDim.x) * blockDim.x / row_threads;
  for (int64_t row = thread_of_grid() / row_threads; row < args.rows; row += rows_of_grid) {
    void* const logits = element(args.logits.data, dtype, row * args.stride);
    const float weight = args.weights == nullptr ? 1.0f : args.weights[row];
    // A weight of 0 times a NaN would be NaN.
    const bool counts = args.targets[row] != ignored_target && weight != 0;
    float loss = 0;
    if (counts) {
      F16 total = zero();
      STW_ROLLED
      for (int64_t begin = 0; begin < args.count; begin += loss_columns)
        total = add(total, sum_of_values<dtype, kind>(args, logits, args.values + row * args.count,
                                                      splat(factor * weight), begin,
                                                      min(begin + loss_columns, args.count)));
      loss = fold_quads(total) / static_cast<float>(args.count) * weight;
    }
    for (int64_t j = (counts ? args.count : 0) + 16 * quad_of_row(); args.gradient && j < args.stride;
         j += row_step)
      store_group(logits, dtype, j, zero(), min(static_cast<int64_t>(16), args.stride - j));
    if (threadIdx.x % row_threads == 0) args.row_loss[row] = loss;
  }
}

void value_loss(const Launch& l, const ValueLossArgs& args) {
  for_dtype(args.logits.dtype, [&](auto stored) {
    const int blocks = blocks_for(args.rows, value_threads / row_threads);
    if (args.kind == ValueLoss::squared_error)
      launch(l, value_loss_kernel<stored.dtype, ValueLoss::squared_error>, blocks, value_threads, 0, args);
    else
      launch(l, value_loss_kernel<stored.dtype, ValueLoss::binary_cross_entropy>, blocks, value_threads, 0,
             args);
  });
}

}  // namespace stw::kernels::cuda
