// The number of rows whose logits are all on the right side of 0. Serial: the logits were just written, and
// few rows have values.
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

static bool all_signs_match(const ValueHitsArgs& args, int64_t row) {
  for (int64_t j = 0; j < args.count; ++j) {
    const float x = load1(args.logits.data, args.logits.dtype, row * args.stride + j);
    const bool is_there = args.values[row * args.count + j] > 0.5f;
    if (!(is_there ? x > 0 : x <= 0)) return false;
  }
  return true;
}

void value_hits(const Launch&, const ValueHitsArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row)
    if (args.targets[row] != ignored_target) args.state->hits += all_signs_match(args, row);
}

}  // namespace stw::kernels::STW_ISA
