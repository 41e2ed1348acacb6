// Computes the losses of answers, and writes their gradients in place of the logits. A task has some rows. A
// row that begins a document handles all rows of it; other rows of such documents are left alone.
#include "kernels/common/span_loss.h"
#include "kernels/cpu/row_lanes.h"

namespace stw::kernels::STW_ISA {
namespace {

// One column of a document: `count` logits, `stride` elements apart.
template <DType dtype>
struct SpanColumn {
  void* data;
  int64_t at, stride, count;
};

// Sixteen logits from row `row` on. Lanes past the end of the document are `past_end`.
template <DType dtype>
STW_INLINE F16 load_rows(const SpanColumn<dtype>& column, int64_t row, float past_end) {
  float f[16];
  for (int i = 0; i < 16; ++i)
    f[i] =
        row + i < column.count ? load1(column.data, dtype, column.at + (row + i) * column.stride) : past_end;
  return load(f);
}
template <DType dtype>
STW_INLINE void store_rows(const SpanColumn<dtype>& column, int64_t row, F16 x) {
  float f[16];
  store(f, x);
  for (int i = 0; i < 16 && row + i < column.count; ++i)
    store1(column.data, dtype, column.at + (row + i) * column.stride, f[i]);
}

// The column's loss; writes its gradient.
template <DType dtype>
STW_INLINE float span_column_loss(const SpanColumn<dtype>& column, int64_t target, bool gradient,
                                  float factor) {
  F16 most = splat(-infinity);
  for (int64_t row = 0; row < column.count; row += 16)
    most = maximum(most, load_rows(column, row, -infinity));
  const float largest = fold_maximum(most);
  const float sum = sum_of_columns(0, column.count, [&](int64_t row, int64_t) {
    return exp(sub(load_rows(column, row, -infinity), splat(largest)));
  });
  const float target_logit = load1(column.data, dtype, column.at + target * column.stride);
  const SpanEnd last = span_end(largest, sum, target_logit, factor);
  if (gradient) {
    for (int64_t row = 0; row < column.count; row += 16)
      store_rows(column, row,
                 mul(exp(sub(load_rows(column, row, -infinity), splat(largest))), splat(last.factor)));
    store1(column.data, dtype, column.at + target * column.stride, last.target);
  }
  return last.loss;
}

// Sets columns [column, end) of a row of logits to +0.
void clear_span(const SpanLossArgs& args, int64_t row, int64_t column, int64_t end) {
  if (!args.gradient) return;
  const int64_t bytes = element_bytes(args.logits.dtype);
  memset((char*)args.logits.data + (row * args.stride + column) * bytes, 0, (size_t)((end - column) * bytes));
}

template <DType dtype>
float span_document_loss(const SpanLossArgs& args, float factor, int64_t first) {
  const int64_t count = args.following[first] + (int64_t)1;
  const float weight = args.weights == nullptr ? 1.0f : args.weights[first];
  float loss = 0;
  for (int c = 0; c < span_columns; ++c) {
    const SpanColumn<dtype> column = {args.logits.data, first * args.stride + c, args.stride, count};
    const int64_t target = span_target(args, first, c, count);
    if (target >= 0) loss += span_column_loss(column, target, args.gradient, factor * weight);
    else
      for (int64_t row = first; row < first + count; ++row) clear_span(args, row, c, c + 1);
  }
  for (int64_t row = first; row < first + count; ++row) clear_span(args, row, span_columns, args.stride);
  return loss * 0.5f * weight;
}

}  // namespace

void span_loss(const Launch& launch, const SpanLossArgs& args) {
  const float factor = span_factor(args);
  constexpr int64_t step = 64;  // Rows of a task.
  with_dtype(args.logits.dtype, [&](auto stored) {
    constexpr DType dtype = stored.dtype;
    parallel_for(launch, ceil_div(args.rows, step), [&](int64_t index, int) {
      for (int64_t row = index * step; row < min(args.rows, (index + 1) * step); ++row) {
        const int64_t first = row - args.positions[row];
        const bool counts = span_counts(args, first);
        args.row_loss[row] = counts && row == first ? span_document_loss<dtype>(args, factor, row) : 0;
        if (!counts) clear_span(args, row, 0, args.stride);
      }
    });
  });
}

}  // namespace stw::kernels::STW_ISA
