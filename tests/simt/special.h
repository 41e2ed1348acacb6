// The special function unit, which is less exact than other units: of the answers that its error allows (PTX ISA) it gives now one,
// now another, so that no kernel relies on what some device happens to give. Subnormal numbers are 0 to it.
#pragma once

namespace simt {

enum class Answer { any, below, nearest, above };   // `any`: each number has its own; the others: the one beside the nearest float
extern Answer inverse_answer;

float approximate_inverse(float x);   // rcp.approx.ftz.f32: within 1 ulp
float approximate_exp2(float x);      // ex2.approx.ftz.f32: within 2 ulp, exact for whole numbers

}  // namespace simt
