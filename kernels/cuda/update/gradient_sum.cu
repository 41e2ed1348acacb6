// sum = term[0] + term[1] + …: the gradients of all uses of a parameter. Bound by memory: every term is read
// once. `sum` may be any of the terms. The sum is a chain whose loads run ahead of it (for_each_ahead): four
// to eight terms of a group are in flight, 64 to 128 bytes of fp32 a thread.
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads)
    gradient_sum_kernel(STW_CONSTANT GradientSumArgs args, bool vectors) {
  const int64_t whole = vectors ? args.count / 16 * 16 : 0;
  const auto add_up = [&](int64_t at, auto n) {
    F16 sum = load_group(args.term[0], Stored::of(args.dtype), at, n);
    for_each_ahead<4>(
        args.terms - 1, [&](int k) { return load_group(args.term[k + 1], Stored::of(args.dtype), at, n); },
        [&](const F16& x) { sum = add(sum, x); });
    store_group(args.sum, Stored::of(args.dtype), at, sum, n);
  };
  STW_ROLLED
  for (int64_t at = thread_of_grid() / quad * 16; at < args.count;
       at += static_cast<int64_t>(gridDim.x) * blockDim.x / quad * 16) {
    if (at < whole) add_up(at, FullGroup{});
    else add_up(at, min(static_cast<int64_t>(16), args.count - at));
  }
}

void gradient_sum(const Launch& l, const GradientSumArgs& args) {
  bool vectors = vectors_at(args.sum, args.dtype);
  for (int k = 0; k < args.terms; ++k) vectors = vectors && vectors_at(args.term[k], args.dtype);
  for_dtypes({args.dtype}, [&](auto stored) {
    launch(l, gradient_sum_kernel<decltype(stored)>, blocks_for_ahead(args.count), block_threads, 0, args,
           vectors);
  });
}

}  // namespace stw::kernels::cuda
