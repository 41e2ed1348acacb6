// The special function unit, which is less exact than other units. This one returns different results among
// those that the error bound of the PTX ISA allows, so that no kernel relies on the results of one device. It
// treats subnormal numbers as 0.
#pragma once

namespace simt {

// `any`: varies with the number; the others: the nearest float, or the float next to it.
enum class Answer { any, below, nearest, above };
extern Answer inverse_answer;

float approximate_inverse(float x);  // rcp.approx.ftz.f32: within 1 ulp.
float approximate_exp2(float x);     // ex2.approx.ftz.f32: within 2 ulp, exact for integers.

}  // namespace simt
