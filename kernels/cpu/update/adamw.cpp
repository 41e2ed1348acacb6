// AdamW with 32-bit moments: one pass over parameter, gradient and both moments, bound by memory traffic.
#include "kernels/common/adamw_step.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/update/parameter.h"

namespace stw::kernels::STW_ISA {

void adamw(const Launch& launch, const List<UpdateArgs>& list) {
  if (list.first->state->skip != 0) return;
  for_elements_of(launch, list, [&](const UpdateArgs& args, int64_t begin, int64_t end, int64_t) {
    const AdamWScalars scalars = adamw_scalars(args);
    const F16 coefficient = coefficient_of(args);
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      F16 g = scaled_gradient(args, coefficient, at, n);
      F16 m = next_first(scalars, load_group(args.first, DType::f32, at, n), g);
      F16 v = next_second(scalars, load_group(args.second, DType::f32, at, n), g);
      store_group(args.first, DType::f32, at, m, n);
      store_group(args.second, DType::f32, at, v, n);
      store_parameter(args, at, next_parameter(scalars, load_parameter(args, at, n), m, sqrt(v)), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
