// Computes token losses, log(Σ exp x) - x[target] with the maximum subtracted, and writes their gradient,
// softmax - onehot, in place of the logits. Label smoothing, z-loss, the row's weight and the scale of fp16
// are constants of a row: the same passes multiply by them and add them.
//
// Three passes over a row: maximum, sum of exponentials, gradient. fp32 rows keep the exponentials of the
// second pass. A sum has 64 lanes, in four vectors. Each lane adds up its values of loss_columns columns at a
// time, then these partial sums, so that no chain is long. At the end, the lanes are folded pairwise. With
// label smoothing, one more pass sums the logits.
#include "kernels/common/cross_entropy_row.h"
#include "kernels/cpu/row_lanes.h"

namespace stw::kernels::STW_ISA {
namespace {

template <DType dtype>
STW_INLINE float row_loss(void* logits, int64_t at, int64_t count, int64_t target, bool gradient,
                          const LossTerms& terms, float weight) {
  const int64_t end = at + count;
  F16 most[4];
  for (int i = 0; i < 4; ++i) most[i] = splat(-infinity);
  int64_t j = at;
  for (; j + 64 <= end; j += 64)
    for (int i = 0; i < 4; ++i) most[i] = maximum(most[i], load16(logits, dtype, j + 16 * i));
  for (; j < end; j += 16) most[0] = maximum(most[0], load_lanes<dtype>(logits, j, end - j, -infinity));
  const float largest = fold_maximum(maximum(maximum(most[0], most[1]), maximum(most[2], most[3])));
  const float target_logit = load1(logits, dtype, at + target);
  const auto logits_at = [&](int64_t column, int64_t lanes) {
    return load_lanes<dtype>(logits, column, lanes, 0);
  };
  const float mean = terms.smoothing != 0 ? sum_of_columns(at, count, logits_at) / (float)count : 0;
  const bool keep = gradient && dtype == DType::f32;
  const float sum = sum_of_columns(at, count, [&](int64_t column, int64_t lanes) {
    const F16 e = exp(sub(load_lanes<dtype>(logits, column, lanes, -infinity), splat(largest)));
    if (keep) store_lanes<dtype>(logits, column, lanes, e);
    return e;
  });
  const RowEnd last = row_end(terms, largest, sum, mean, target_logit, weight);
  if (gradient) {
    const F16 factors = splat(last.factor), shared = splat(last.shared);
    for (j = at; j < end; j += 16) {
      const F16 x = load_lanes<dtype>(logits, j, end - j, 0);
      store_lanes<dtype>(logits, j, end - j, fma(keep ? x : exp(sub(x, splat(largest))), factors, shared));
    }
    store1(logits, dtype, at + target, last.target);
  }
  return last.loss;
}

template <DType dtype>
void one_row(const CrossEntropyArgs& args, const LossTerms& terms, int64_t row) {
  const int64_t at = row * args.stride, target = args.targets[row];
  const float weight = args.weights == nullptr ? 1.0f : args.weights[row];
  const auto clear = [&](int64_t first) {
    const int64_t bytes = element_bytes(dtype);
    if (args.gradient)
      memset((char*)args.logits.data + (at + first) * bytes, 0, (size_t)((args.stride - first) * bytes));
  };
  if (target != ignored_target && weight != 0) {  // A weight of 0 times a NaN would be NaN.
    args.token_loss[row] =
        row_loss<dtype>(args.logits.data, at, args.vocabulary, target, args.gradient, terms, weight);
    return clear(args.vocabulary);
  }
  args.token_loss[row] = 0;
  clear(0);
}

}  // namespace

void cross_entropy(const Launch& launch, const CrossEntropyArgs& args) {
  STW_ASSERT_WORKSPACE(cross_entropy);
  const LossTerms terms = loss_terms(args);
  const int64_t step = max(1, 4096 / args.vocabulary);  // Rows of a task: enough work for a thread.
  with_dtype(args.logits.dtype, [&](auto stored) {
    constexpr DType dtype = stored.dtype;
    parallel_for(launch, ceil_div(args.rows, step), [&](int64_t index, int) {
      for (int64_t row = index * step; row < min(args.rows, (index + 1) * step); ++row)
        one_row<dtype>(args, terms, row);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
