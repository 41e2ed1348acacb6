// AdamW with 8-bit block-wise moments: 2.03 bytes of state an element instead of 8. Blocks of 256 elements
// are decoded, updated in fp32 as in adamw.cpp, and encoded again with the new absolute maximum of the block.
// The parameter's update uses the new moments before they are rounded.
//
// The second moment v is kept as √v. If v itself were kept, values below 1.6e-7 of the block's maximum would
// become 0. These belong to gradients below 4e-4 of the largest, whose first moment survives: their steps
// would be 26 to 29 times too long.
#include "kernels/common/adamw_step.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/update/parameter.h"
#include "kernels/cpu/update/state8.h"

namespace stw::kernels::STW_ISA {

namespace {

void update_block(const UpdateArgs& args, const AdamWScalars& scalars, F16 coefficient, int64_t begin,
                  int64_t count) {
  const int64_t block = begin / quantile_block;
  const F16 old_first = splat(args.first_absmax[block]), old_second = splat(args.second_absmax[block]);
  float first[quantile_block], second[quantile_block];
  decode(signed_quantiles, args.first_code + begin, count, first);
  decode(unsigned_quantiles, args.second_code + begin, count, second);
  F16 most_first = zero(), most_second = zero();
  for_groups(0, count, [&](int64_t i, int64_t n) {
    const int64_t at = begin + i;
    F16 g = scaled_gradient(args, coefficient, at, n);
    F16 m = next_first(scalars, mul(load(first + i), old_first), g);
    F16 root = mul(load(second + i), old_second);
    root = sqrt(next_second(scalars, mul(root, root), g));
    store(first + i, m);
    store(second + i, root);
    most_first = maximum(most_first, maximum(m, sub(zero(), m)));
    most_second = maximum(most_second, root);
    store_parameter(args, at, next_parameter(scalars, load_parameter(args, at, n), m, root), n);
  });
  args.first_absmax[block] = fold_maximum(most_first);
  args.second_absmax[block] = fold_maximum(most_second);
  encode(signed_quantiles, first, count, args.first_absmax[block], args.first_code + begin);
  encode(unsigned_quantiles, second, count, args.second_absmax[block], args.second_code + begin);
}

}  // namespace

void adamw8(const Launch& launch, const List<UpdateArgs>& list) {
  if (list.first->state->skip != 0) return;
  for_elements_of(launch, list, [&](const UpdateArgs& args, int64_t begin, int64_t end, int64_t) {
    const AdamWScalars scalars = adamw_scalars(args);
    const F16 coefficient = coefficient_of(args);
    for (int64_t at = begin; at < end; at += quantile_block)
      update_block(args, scalars, coefficient, at, min(quantile_block, end - at));
  });
}

}  // namespace stw::kernels::STW_ISA
