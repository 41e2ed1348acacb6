// The norm of all gradients from the tensors' sums, and the scalars that depend on it (step_scalars.h).
#include "kernels/common/step_scalars.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

void finish_step(const Launch&, const FinishStepArgs& args) {
  double squares = 0;
  for (int64_t i = 0; i < args.sums; ++i) squares += args.sum[i];
  finish_part(args.part, squares, *args.state);
}

}  // namespace stw::kernels::STW_ISA
