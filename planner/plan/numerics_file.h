// Numerics as JSON. Every plan contains them.
#pragma once
#include "planner/base/json.h"
#include "planner/graph/numerics.h"

namespace stw {

Json numerics_json(const Numerics& numerics, const std::string& states_reason);
// Errors: corrupt.
Result<Numerics> numerics_from(const Json& object);

// Sets the fields that must agree before a checkpoint may be restored. The fields of the graph are its
// inputs, its preference and its groups of parameters.
enum class NumericsPart { of_graph, other };
void set_identity(Json& identity, const Numerics& numerics, NumericsPart part);
// The values of fields that checkpoints of older versions lack.
Json identity_of_older_files();

}  // namespace stw
