// y = a + b, the residual connection. Bound by memory traffic: each operand is read once. y may be either
// operand.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void add(const Launch& launch, const AddArgs& args) {
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      F16 a = load_group(args.a.data, args.a.dtype, at, n), b = load_group(args.b.data, args.b.dtype, at, n);
      store_group(args.y.data, args.y.dtype, at, add(a, b), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
