// Lion with a 32-bit momentum: one pass over parameter, gradient and momentum, bound by memory traffic.
#include "kernels/common/lion_step.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/update/parameter.h"

namespace stw::kernels::STW_ISA {

void lion(const Launch& launch, const List<UpdateArgs>& list) {
  if (list.first->state->skip != 0) return;
  for_elements_of(launch, list, [&](const UpdateArgs& args, int64_t begin, int64_t end, int64_t) {
    const LionScalars scalars = lion_scalars(args);
    const F16 coefficient = coefficient_of(args);
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      const F16 g = scaled_gradient(args, coefficient, at, n), m = load_group(args.first, DType::f32, at, n);
      store_group(args.first, DType::f32, at, next_momentum(scalars, m, g), n);
      store_parameter(args, at, next_parameter(scalars, load_parameter(args, at, n), m, g), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
