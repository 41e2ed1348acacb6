// Plans as text: versioned, deterministic JSON that users can read and `plan_from_json` parses.
#pragma once
#include <string>
#include <string_view>

#include "planner/plan/plan.h"

namespace stw {

// XXH3-64. Callers pass it, because the planner links no library.
using Hash = uint64_t (*)(const void* data, size_t bytes);

std::string hexadecimal(uint64_t x);  // 16 digits, as hashes are written

// Describes the parts of a model that plans and checkpoints depend on: ops, attributes, names and shapes, but
// not storage formats.
std::string describe(const Graph& graph);

std::string plan_to_json(const Graph& graph, const Plan& plan, Hash hash);
std::string plan_fingerprint(const std::string& json);  // the value of the field "fingerprint"

// Errors: corrupt if the text is not a plan or was edited (fingerprint); unsupported if it has another
// version; bad_state if it belongs to another model. The header has the settings for building the graph that
// the plan is then checked against.
struct PlanHeader {
  int64_t sequence;
  Numerics numerics;
};
Result<PlanHeader> plan_header(std::string_view json, Hash hash);
Result<Plan> plan_from_json(const Graph& graph, std::string_view json, Hash hash);

// A table with bars, for users.
std::string plan_report(const Graph& graph, const Plan& plan);
// A relaxation in words.
std::string relaxation_text(const Relaxation& relaxation, uint64_t budget);

}  // namespace stw
