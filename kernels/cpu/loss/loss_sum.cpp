// Adds a micro-batch's token losses to the step's sum, sample after sample, so that the split of a global
// batch into micro-batches does not affect it. Serial: a few thousand numbers.
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

void loss_sum([[maybe_unused]] const Launch& launch, const LossSumArgs& args) {
  STW_ASSERT_WORKSPACE(loss_sum);
  for (int64_t sample = 0; sample < args.samples; ++sample) {
    double sum = 0;
    for (int64_t row = sample * args.rows_per_sample; row < (sample + 1) * args.rows_per_sample; ++row) {
      sum += (double)args.token_loss[row];
      args.state->target_count += args.targets[row] != ignored_target;
    }
    args.state->loss_sum += sum;
  }
}

}  // namespace stw::kernels::STW_ISA
