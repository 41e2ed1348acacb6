// Computes the losses of answers, and writes their gradients in place of the logits. Sixteen threads take a
// row. If it begins a document, they handle all rows of it, and their sums have the CPU's bits; other rows of
// such documents are left alone. There are three passes over a document's logits, which the caches hold: two
// columns of a few thousand rows. The head's product takes far longer.
#include "kernels/common/span_loss.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/row_quads.h"

namespace stw::kernels::cuda {

static constexpr int span_threads = 64;  // A block has four rows.

// One column of a document: `count` logits, `stride` elements apart.
template <DType dtype>
struct SpanColumn {
  void* data;
  int64_t stride, count;
};

// This thread's four lanes of sixteen logits from row `row` on. Lanes past the end are `past_end`.
template <DType dtype>
STW_DEVICE F16 span_lanes(const SpanColumn<dtype>& column, int64_t row, float past_end) {
  F16 x;
  for (int i = 0; i < 4; ++i) {
    const int64_t at = row + first_lane() + i;
    x.f[i] = at < column.count ? load1(column.data, dtype, at * column.stride) : past_end;
  }
  return x;
}
template <DType dtype>
STW_DEVICE void store_span_lanes(const SpanColumn<dtype>& column, int64_t row, const F16& x) {
  for (int i = 0; i < 4; ++i) {
    const int64_t at = row + first_lane() + i;
    if (at < column.count) store1(column.data, dtype, at * column.stride, x.f[i]);
  }
}

template <DType dtype>
STW_DEVICE float span_largest(const SpanColumn<dtype>& column) {
  F16 most = splat(-infinity);
  STW_ROLLED
  for (int64_t row = 16 * quad_of_row(); row < column.count; row += row_step)
    most = maximum(most, span_lanes(column, row, -infinity));
  for (int threads = quad; threads < row_threads; threads *= 2)
    for (int i = 0; i < 4; ++i) {
      const float other = __shfl_xor_sync(row_mask(), most.f[i], threads);
      most.f[i] = most.f[i] > other ? most.f[i] : other;
    }
  return fold_maximum(most);
}

template <DType dtype>
STW_DEVICE float span_sum(const SpanColumn<dtype>& column, float largest) {
  F16 total = zero();
  STW_ROLLED
  for (int64_t begin = 0; begin < column.count; begin += loss_columns) {
    const int64_t end = min(begin + loss_columns, column.count);
    F16 sum = zero();
    STW_ROLLED
    for (int64_t row = begin + 16 * quad_of_row(); row < end; row += row_step)
      sum = add(sum, exp(sub(span_lanes(column, row, -infinity), splat(largest))));
    total = add(total, sum);
  }
  return fold_quads(total);
}

template <DType dtype>
STW_DEVICE float span_column_loss(const SpanColumn<dtype>& column, int64_t target, bool gradient,
                                  float factor) {
  const float target_logit = load1(column.data, dtype, target * column.stride),
              largest = span_largest(column);
  const SpanEnd last = span_end(largest, span_sum(column, largest), target_logit, factor);
  if (!gradient) return last.loss;
  __syncwarp(row_mask());  // All threads have read.
  STW_ROLLED
  for (int64_t row = 16 * quad_of_row(); row < column.count; row += row_step)
    store_span_lanes(column, row,
                     mul(exp(sub(span_lanes(column, row, -infinity), splat(largest))), splat(last.factor)));
  // The thread that wrote this element before stores it.
  if (quad_of_row() == target % row_step / 16 && first_lane() == target % 16 / 4 * 4)
    store1(column.data, dtype, target * column.stride, last.target);
  return last.loss;
}

// The threads of a row set columns [begin, end) of a row of logits to +0.
template <DType dtype>
STW_DEVICE void clear_span(const SpanLossArgs& args, int64_t row, int64_t begin, int64_t end) {
  for (int64_t j = begin + threadIdx.x % row_threads; args.gradient && j < end; j += row_threads)
    store1(args.logits.data, dtype, row * args.stride + j, 0);
}

template <DType dtype>
STW_DEVICE float span_document_loss(const SpanLossArgs& args, float factor, int64_t first) {
  const int64_t count = args.following[first] + static_cast<int64_t>(1);
  const float weight = args.weights == nullptr ? 1.0f : args.weights[first];
  float loss = 0;
  STW_ROLLED
  for (int c = 0; c < span_columns; ++c) {
    const SpanColumn<dtype> column = {element(args.logits.data, dtype, first * args.stride + c), args.stride,
                                      count};
    const int64_t target = span_target(args, first, c, count);
    if (target >= 0) loss += span_column_loss(column, target, args.gradient, factor * weight);
    else
      for (int64_t row = first; row < first + count; ++row) clear_span<dtype>(args, row, c, c + 1);
  }
  for (int64_t row = first; row < first + count; ++row)
    clear_span<dtype>(args, row, span_columns, args.stride);
  return loss * 0.5f * weight;
}

template <DType dtype>
static __global__ void __launch_bounds__(span_threads, 10) span_loss_kernel(SpanLossArgs args) {
  const float factor = span_factor(args);
  const int64_t rows_of_grid = static_cast<int64_t>(gridDim.x) * blockDim.x / row_threads;
  for (int64_t row = thread_of_grid() / row_threads; row < args.rows; row += rows_of_grid) {
    const int64_t first = row - args.positions[row];
    const bool counts = span_counts(args, first);
    float loss = 0;
    if (counts && row == first) loss = span_document_loss<dtype>(args, factor, row);
    if (!counts) clear_span<dtype>(args, row, 0, args.stride);
    if (threadIdx.x % row_threads == 0) args.row_loss[row] = loss;
  }
}

void span_loss(const Launch& l, const SpanLossArgs& args) {
  for_dtype(args.logits.dtype, [&](auto stored) {
    launch(l, span_loss_kernel<stored.dtype>, blocks_for(args.rows, span_threads / row_threads), span_threads,
           0, args);
  });
}

}  // namespace stw::kernels::cuda
