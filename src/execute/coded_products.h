// Products with matrices that may be codes: what they take is made in front of the op's scratch memory, piece by piece where the planner
// says so (planner/graph/quantize.h). The arguments are those of the whole, with the addresses of codes where values belong.
#pragma once
#include "src/execute/call.h"

namespace stw {

void run_product(const Call& call, const kernels::LinearArgs& args);
void run_input_gradient(const Call& call, const kernels::LinearArgs& args);

}  // namespace stw
