// Computes token losses, log(Σ exp x) - x[target] with the maximum subtracted, and writes their gradient,
// softmax - onehot, in place of the logits. Label smoothing, z-loss, the row's weight and the scale of fp16
// are constants of a row (cross_entropy_row.h).
//
// Sixteen threads take a row. Their four quads are the four vectors in which a CPU sums a row, loss_columns
// at a time, so every sum has the CPU's bits. There are three passes over a row, and one more with label
// smoothing. Exponentials are computed twice, which costs less than keeping them. Bound by memory: each pass
// reads the logits, unless the caches hold them, and the gradient is written. A thread has eight groups in
// flight, 1 KB of bf16 a row: a chunk of 1024 rows keeps 8 KB in flight for each of 132 SMs (ahead.h).
#include "kernels/common/cross_entropy_row.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/loss/block_cross_entropy.h"
#include "kernels/cuda/row_quads.h"

namespace stw::kernels::cuda {

// A block has four rows, so that a chunk of a few hundred rows reaches all SMs.
static constexpr int rows_threads = 64;

// A row of logits.
template <DType t>
struct Row {
  static constexpr DType dtype = t;
  void* data;
  int count;
  bool vectors;  // Whole groups may be accessed as vectors.
};
STW_DEVICE F16 past_end_as(F16 x, FullGroup, float) { return x; }
STW_DEVICE F16 past_end_as(F16 x, int n, float past_end) { return first_lanes(x, n, past_end); }

// Calls body(column, n, x) for this quad's groups of columns [0, count), in order. Lanes after the end are
// `past_end`.
template <class R, class Body>
STW_DEVICE void for_groups_of_quad(const R& row, int count, float past_end, const Body& body) {
  for_groups_ahead<8>(
      quad_of_row(), quads_a_row, count, row.vectors,
      [&](int j, auto n) { return past_end_as(load_group(row.data, R::dtype, j, n), n, past_end); },
      [&](const F16& x, int j, auto n) { body(j, n, x); });
}

// This quad's lanes of Σ group(x) over a row: loss_columns at a time, then the sums of these.
template <class R, class Group>
STW_DEVICE F16 quad_sum(const R& row, float past_end, const Group& group) {
  F16 total = zero();
  STW_ROLLED
  for (int begin = 0; begin < row.count; begin += static_cast<int>(loss_columns)) {
    const int count = min(row.count - begin, static_cast<int>(loss_columns));
    const R part = {element(row.data, R::dtype, begin), count, row.vectors};
    F16 sum = zero();
    for_groups_of_quad(part, count, past_end, [&](int, auto, const F16& x) { sum = add(sum, group(x)); });
    total = add(total, sum);
  }
  return total;
}

// Lower quads first: the order matters for NaN.
STW_DEVICE float fold_quads_maximum(F16 x) {
  for (int threads = quad; threads < row_threads; threads *= 2)
    for (int i = 0; i < 4; ++i) {
      const float other = __shfl_xor_sync(row_mask(), x.f[i], threads);
      const bool lower = (threadIdx.x & static_cast<unsigned>(threads)) == 0;
      const float a = lower ? x.f[i] : other, b = lower ? other : x.f[i];
      x.f[i] = a > b ? a : b;
    }
  return fold_maximum(x);
}

// The quads share the whole steps of row_step columns. The first quad takes the columns after them.
template <class R>
STW_DEVICE float largest_of(const R& row) {
  const int whole = row.count / row_step * row_step;
  F16 most = splat(-infinity);
  for_groups_of_quad(row, whole, 0, [&](int, auto, const F16& x) { most = maximum(most, x); });
  for (int j = whole; quad_of_row() == 0 && j < row.count; j += 16)
    most = maximum(most,
                   first_lanes(load_group(row.data, R::dtype, j, row.count - j), row.count - j, -infinity));
  return fold_quads_maximum(most);
}

template <class R>
STW_DEVICE float row_loss(const CrossEntropyArgs& args, const LossTerms& terms, const R& row, int target,
                          float weight) {
  const float target_logit = load1(row.data, R::dtype, target), largest = largest_of(row);
  float mean = 0;
  if (terms.smoothing != 0)
    mean = fold_quads(quad_sum(row, 0, [](const F16& x) { return x; })) / static_cast<float>(args.vocabulary);
  const F16 sum = quad_sum(row, -infinity, [&](const F16& x) { return exp(sub(x, splat(largest))); });
  const RowEnd last = row_end(terms, largest, fold_quads(sum), mean, target_logit, weight);
  if (!args.gradient) return last.loss;
  __syncwarp(row_mask());  // All threads have read.
  for_groups_of_quad(row, row.count, 0, [&](int j, auto n, const F16& x) {
    store_group(row.data, R::dtype, j,
                fma(exp(sub(x, splat(largest))), splat(last.factor), splat(last.shared)), n);
  });
  // The thread that wrote this element before stores it.
  if (quad_of_row() == target % row_step / 16 && first_lane() == target % 16 / 4 * 4)
    store1(row.data, R::dtype, target, last.target);
  return last.loss;
}

template <DType dtype>
static __global__ void __launch_bounds__(rows_threads, 10)
    cross_entropy_kernel(CrossEntropyArgs args, bool vectors) {
  const LossTerms terms = loss_terms(args);
  const int64_t rows_of_grid = static_cast<int64_t>(gridDim.x) * blockDim.x / row_threads;
  for (int64_t row = thread_of_grid() / row_threads; row < args.rows; row += rows_of_grid) {
    const int64_t at = row * args.stride;
    const int target = args.targets[row];
    const float weight = args.weights == nullptr ? 1.0f : args.weights[row];
    float loss = 0;
    int64_t cleared = args.vocabulary;              // From here on.
    if (target != ignored_target && weight != 0) {  // A weight of 0 times a NaN would be NaN.
      loss = row_loss(
          args, terms,
          Row<dtype>{element(args.logits.data, dtype, at), static_cast<int>(args.vocabulary), vectors},
          target, weight);
    } else {
      cleared = 0;
    }
    for (int64_t j = cleared + 16 * quad_of_row(); args.gradient && j < args.stride; j += row_step)
      store_group(args.logits.data, dtype, at + j, zero(), min(static_cast<int64_t>(16), args.stride - j));
    if (threadIdx.x % row_threads == 0) args.token_loss[row] = loss;
  }
}

void cross_entropy(const Launch& l, const CrossEntropyArgs& args) {
  if (block_cross_entropy_takes(args)) return block_cross_entropy(l, args);
  const bool vectors = vectors_at(args.logits.data, args.logits.dtype, args.stride);
  for_dtype(args.logits.dtype, [&](auto stored) {
    launch(l, cross_entropy_kernel<stored.dtype>, blocks_for(args.rows, rows_threads / row_threads),
           rows_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
