// The norm of all gradients from the tensors' sums, and the scalars that depend on it (step_scalars.h). One
// block; one of its threads does the arithmetic.
#include "kernels/common/step_scalars.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) finish_step_kernel(FinishStepArgs args) {
  const double squares = serial_sum(0.0, args.sum, args.sums);
  if (threadIdx.x != 0) return;
  StepState state = *args.state;
  finish_part(args.part, squares, state);
  *args.state = state;
}

void finish_step(const Launch& l, const FinishStepArgs& args) {
  launch(l, finish_step_kernel, 1, block_threads, 0, args);
}

}  // namespace stw::kernels::cuda
