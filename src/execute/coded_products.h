// Products with matrices that may be quantized. Their values are computed into scratch memory before the op's
// own, in pieces where the planner says so (planner/graph/quantize.h). The arguments describe the whole
// product, with the addresses of codes in place of values.
#pragma once
#include "src/execute/call.h"

namespace stw {

void run_product(const Call& call, const kernels::LinearArgs& args);
void run_input_gradient(const Call& call, const kernels::LinearArgs& args);

}  // namespace stw
