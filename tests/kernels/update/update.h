// Shared by tests of the update: a step's state, and the arguments of an update of an fp32 parameter.
#pragma once
#include "tests/kernels/harness.h"

namespace stw::kernels::test {

// The state as the runtime leaves it if gradients carry no scale.
inline StepState unscaled_state() {
  StepState state{};
  state.loss_scale = state.batch_factor = 1;
  return state;
}
inline StepState finished(const Table& table, StepState state, std::vector<double> sums) {
  run(table.finish_step, FinishStepArgs{static_cast<int64_t>(sums.size()), sums.data(), &state}, 1, 0);
  return state;
}

// Without moments, which differ between rules.
inline UpdateArgs update_args(std::vector<float>& parameter, const std::vector<float>& gradient,
                              const StepState& state, double decay) {
  UpdateArgs args = {};
  args.count = static_cast<int64_t>(parameter.size());
  args.dtype = DType::f32;
  args.parameter = parameter.data();
  args.gradient[0] = gradient.data();
  args.rate = 1, args.decay = decay;
  args.state = &state;
  return args;
}

}  // namespace stw::kernels::test
