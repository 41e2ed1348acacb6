// Numerics as JSON. Every plan contains them.
#pragma once
#include "planner/base/json.h"
#include "planner/graph/numerics.h"

namespace stw {

Json inputs_json(const GraphInputs& inputs);
Json groups_json(const std::vector<ParameterGroup>& groups);
Json numerics_json(const Numerics& numerics, const std::string& states_reason);
// Errors: corrupt.
Result<Numerics> numerics_from(const Json& object);

}  // namespace stw
