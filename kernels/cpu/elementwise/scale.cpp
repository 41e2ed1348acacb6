// y = factor·x. Bound by memory traffic. y may be x.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void scale(const Launch& launch, const ScaleArgs& args) {
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      store_group(args.y.data, args.y.dtype, at,
                  mul(load_group(args.x.data, args.x.dtype, at, n), splat(args.factor)), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
