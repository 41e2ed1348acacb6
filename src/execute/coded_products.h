// Products with matrices that may be quantized. The codes are first turned into values. These lie in scratch
// memory, in front of the scratch memory of the op itself. Where the planner says so, a product is computed
// in pieces (planner/graph/quantize.h). The arguments describe the whole product, with the addresses of codes
// in place of values.
#pragma once
#include "src/execute/call.h"

namespace stw {

void run_product(const Call& call, const kernels::LinearArgs& args);
void run_input_gradient(const Call& call, const kernels::LinearArgs& args);

}  // namespace stw
