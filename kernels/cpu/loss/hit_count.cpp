// The number of rows whose largest logit is the target's. Serial: the logits were just written, and few rows
// of a classifier have a target.
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

static bool is_hit(const HitCountArgs& args, int64_t row) {
  const int64_t target = args.targets[row], at = row * args.stride;
  const float wanted = load1(args.logits.data, args.logits.dtype, at + target);
  for (int64_t j = 0; j < args.classes; ++j) {
    const float x = load1(args.logits.data, args.logits.dtype, at + j);
    if (!(x < wanted || (x == wanted && j >= target))) return false;
  }
  return true;
}

void hit_count(const Launch&, const HitCountArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row)
    if (args.targets[row] != ignored_target) args.state->hits += is_hit(args, row);
}

}  // namespace stw::kernels::STW_ISA
