// *sum = Σ g², the part of each tensor in the norm of all gradients. Chunks of 4096 elements are summed in
// parallel in fp32 by 16 lanes. Their sums are kept in the workspace and added in order in double. A NaN or
// an infinity in the gradient reaches the sum; the finite check of a step relies on it.
#include "kernels/common/sum_check.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

template <DType dtype>
float chunk_sum(const SquareSumArgs& args, int64_t begin, int64_t end) {
  F16 sum = zero();
  for_groups(begin, end, [&](int64_t at, int64_t n) {
    F16 g = load_group(args.gradient[0], dtype, at, n);
    if (args.gradient[1] != nullptr) g = add(g, load_group(args.gradient[1], dtype, at, n));
    sum = fma(g, g, sum);
  });
  return fold(sum);
}

}  // namespace

void square_sum(const Launch& launch, const List<SquareSumArgs>& args) {
  STW_ASSERT_WORKSPACE(square_sum);
  auto* sums = (float*)launch.workspace;
  static_assert(task_elements == square_chunk);
  for_elements_of(launch, args, [&](const SquareSumArgs& one, int64_t begin, int64_t end, int64_t task) {
    with_dtype(one.dtype, [&](auto stored) { sums[task] = chunk_sum<stored.dtype>(one, begin, end); });
  });
  for (const SquareSumArgs* one = args.first; one < args.first + args.count; ++one) {
    double total = one->continues ? *one->sum : 0;
    for (int64_t i = 0; i < ceil_div(one->count, square_chunk); ++i) total += (double)*sums++;
    *one->sum = total;
    check_sum(*one, total);
  }
}

}  // namespace stw::kernels::STW_ISA
