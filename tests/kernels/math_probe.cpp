// Makes math.h and philox.h of one instruction set callable from math_test.
#include "tests/kernels/math_probe.h"

#include "kernels/common/math.h"
#include "kernels/cpu/philox8.h"

namespace stw::kernels::STW_ISA {
namespace {

#define STW_PROBE_LANES(function)                                                \
  void function##_lanes(const float* x, float* y, int64_t count) {               \
    for (int64_t i = 0; i < count; i += 16) store(y + i, function(load(x + i))); \
  }                                                                              \
  float function##_one(float x) { return function##1(x); }
STW_PROBE_LANES(exp)
STW_PROBE_LANES(log)
STW_PROBE_LANES(tanh)
STW_PROBE_LANES(erf)
#undef STW_PROBE_LANES

void philox_words(const uint32_t counter[4], uint64_t key, uint32_t words[4]) {
  Philox4 r = philox(counter[0], counter[1], counter[2], counter[3], key);
  for (int i = 0; i < 4; ++i) words[i] = r.w[i];
}
void many_factors(const StepState& state, float p, uint32_t stream, int64_t sample, int64_t first,
                  int64_t count, float* factors) {
  dropout_factors(dropout_of(p, stream, state, sample), first, count, factors);
}
float one_factor(const StepState& state, float p, uint32_t stream, int64_t sample, int64_t element) {
  return dropout_factor(dropout_of(p, stream, state, sample), element);
}

}  // namespace

extern const test::MathProbe math_probe;
const test::MathProbe math_probe = {exp_lanes, log_lanes, tanh_lanes,   erf_lanes,    exp_one,   log_one,
                                    tanh_one,  erf_one,   philox_words, many_factors, one_factor};

}  // namespace stw::kernels::STW_ISA
