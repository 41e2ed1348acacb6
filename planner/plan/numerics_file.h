// Numerics as JSON. Every plan contains them.
#pragma once
#include "planner/base/json.h"
#include "planner/graph/numerics.h"

namespace stw {

Json numerics_json(const Numerics& numerics, const std::string& states_reason);
// Errors: corrupt.
Result<Numerics> numerics_from(const Json& object);

// Adds to `identity` the fields that must agree before a checkpoint may be restored. of_graph: the inputs,
// the preference loss and the parameter groups. other: all other fields.
enum class NumericsPart { of_graph, other };
void set_identity(Json& identity, const Numerics& numerics, NumericsPart part);
// The values of the fields that checkpoints of older versions lack.
Json identity_of_older_files();

}  // namespace stw
