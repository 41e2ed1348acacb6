// sum = term[0] + term[1] + …: the gradients of all uses of a parameter. Bound by memory traffic: each term
// is read once. `sum` may be any of the terms.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void gradient_sum(const Launch& launch, const GradientSumArgs& args) {
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      F16 sum = load_group(args.term[0], args.dtype, at, n);
      for (int k = 1; k < args.terms; ++k) sum = add(sum, load_group(args.term[k], args.dtype, at, n));
      store_group(args.sum, args.dtype, at, sum, n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
