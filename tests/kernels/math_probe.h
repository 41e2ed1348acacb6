// The functions of math.h and philox.h of one instruction set, for math_test. math_probe.cpp is compiled once
// for each instruction set, with the flags of the kernels.
#pragma once
#include <cstdint>

#include "kernels/contract/kernels.h"

namespace stw::kernels::test {

struct MathProbe {
  void (*exp)(const float* x, float* y, int64_t count);  // count: a multiple of 16.
  void (*log)(const float* x, float* y, int64_t count);
  void (*tanh)(const float* x, float* y, int64_t count);
  void (*erf)(const float* x, float* y, int64_t count);
  float (*exp1)(float);
  float (*log1)(float);
  float (*tanh1)(float);
  float (*erf1)(float);
  void (*philox)(const uint32_t counter[4], uint64_t key, uint32_t words[4]);
  void (*dropout_factors)(const StepState& state, float p, uint32_t stream, int64_t sample, int64_t first,
                          int64_t count, float* factors);
  float (*dropout_factor)(const StepState& state, float p, uint32_t stream, int64_t sample, int64_t element);
};

}  // namespace stw::kernels::test
