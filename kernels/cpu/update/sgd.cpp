// SGD with momentum, in the order of torch.optim.SGD without dampening. Weight decay is coupled: it is part
// of the gradient. One pass in fp32, bound by memory traffic; each line is one rounding:
//   g = fma(decay, p, g)
//   m = fma(momentum, m, g)
//   p = fma(-lr, m, p), with nesterov p = fma(-lr, fma(momentum, m, g), p)
// A parameter without a state (`first` is null) has no momentum.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/update/parameter.h"

namespace stw::kernels::STW_ISA {

void sgd(const Launch& launch, const List<UpdateArgs>& list) {
  if (list.first->state->skip != 0) return;
  for_elements_of(launch, list, [&](const UpdateArgs& args, int64_t begin, int64_t end, int64_t) {
    assert(args.first != nullptr || args.state->momentum == 0);
    const F16 coefficient = coefficient_of(args), decay = splat((float)args.decay);
    const F16 momentum = splat((float)args.state->momentum), step = splat((float)-rate_of(args));
    const bool remembers = args.first != nullptr, nesterov = args.state->nesterov != 0;
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      const F16 p = load_parameter(args, at, n);
      F16 g = fma(decay, p, scaled_gradient(args, coefficient, at, n));
      if (remembers) {
        const F16 m = fma(momentum, load_group(args.first, DType::f32, at, n), g);
        store_group(args.first, DType::f32, at, m, n);
        g = nesterov ? fma(momentum, m, g) : m;
      }
      store_parameter(args, at, fma(step, g, p), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
