// Logarithm, exponential, sine and cosine in double precision from sums, products, quotients and exact scaling alone, in
// one fixed order: C libraries differ in the last bits of theirs, and initial weights, schedules and rotary tables must be
// the same bits on every machine. Within 4 units in the last place (sine and cosine: 1e-15 absolute) of the true values.
#pragma once

namespace stw {

double portable_log(double x);              // finite x > 0
double portable_exp(double x);              // 0 where it underflows, infinity where it overflows
double portable_pow(double x, double y);    // finite x > 0; relative error grows with |y log x|
double portable_cos(double x);              // |x| < 2^27
double portable_sin(double x);

}  // namespace stw
