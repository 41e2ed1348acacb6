// Logarithm, exponential, sine and cosine in double precision. They use only sums, products, quotients and
// exact scaling, in a fixed order: C libraries differ in the last bits, and initial weights, schedules and
// rotary tables must have the same bits on every machine. Results are within 4 units in the last place of the
// true values (sine and cosine: within 1e-15).
#pragma once

namespace stw {

double portable_log(double x);            // finite x > 0
double portable_exp(double x);            // 0 on underflow, infinity on overflow
double portable_pow(double x, double y);  // finite x > 0; relative error grows with |y log x|
double portable_cos(double x);            // |x| < 2^27
double portable_sin(double x);

}  // namespace stw
