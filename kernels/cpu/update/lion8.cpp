// Lion with an 8-bit block-wise momentum: 1.016 bytes of state an element instead of 4. Blocks of 256
// elements are decoded, updated in fp32 as in lion.cpp, and encoded again with the new absolute maximum of
// the block.
#include "kernels/common/lion_step.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/update/parameter.h"
#include "kernels/cpu/update/state8.h"

namespace stw::kernels::STW_ISA {

namespace {

void update_block(const UpdateArgs& args, const LionScalars& scalars, F16 coefficient, int64_t begin,
                  int64_t count) {
  const int64_t block = begin / quantile_block;
  const F16 absmax = splat(args.first_absmax[block]);
  float momentum[quantile_block];
  decode(signed_quantiles, args.first_code + begin, count, momentum);
  F16 most = zero();
  for_groups(0, count, [&](int64_t i, int64_t n) {
    const int64_t at = begin + i;
    const F16 g = scaled_gradient(args, coefficient, at, n), m = mul(load(momentum + i), absmax);
    const F16 next = next_momentum(scalars, m, g);
    store(momentum + i, next);
    most = maximum(most, maximum(next, sub(zero(), next)));
    store_parameter(args, at, next_parameter(scalars, load_parameter(args, at, n), m, g), n);
  });
  args.first_absmax[block] = fold_maximum(most);
  encode(signed_quantiles, momentum, count, args.first_absmax[block], args.first_code + begin);
}

}  // namespace

void lion8(const Launch& launch, const List<UpdateArgs>& list) {
  if (list.first->state->skip != 0) return;
  for_elements_of(launch, list, [&](const UpdateArgs& args, int64_t begin, int64_t end, int64_t) {
    const LionScalars scalars = lion_scalars(args);
    const F16 coefficient = coefficient_of(args);
    for (int64_t at = begin; at < end; at += quantile_block)
      update_block(args, scalars, coefficient, at, min(quantile_block, end - at));
  });
}

}  // namespace stw::kernels::STW_ISA
