// Plans as text: versioned, deterministic JSON that people read and `plan_from_json` takes back.
#pragma once
#include <string>
#include <string_view>

#include "planner/plan/plan.h"

namespace stw {

using Hash = uint64_t (*)(const void* data, size_t bytes);   // XXH3-64; the planner links no library

std::string hexadecimal(uint64_t x);   // 16 digits, as hashes are written

// The model as far as plans and checkpoints depend on it: ops, attributes, names and shapes, not storage formats.
std::string describe(const Graph& graph);

std::string plan_to_json(const Graph& graph, const Plan& plan, Hash hash);
std::string plan_fingerprint(const std::string& json);   // the field's value

// Errors: corrupt where the text is no plan, of another version, was edited (fingerprint) or is of another model.
// The header tells which graph to build before the plan can be read against it.
struct PlanHeader { int64_t sequence; Numerics numerics; };
Result<PlanHeader> plan_header(std::string_view json, Hash hash);
Result<Plan> plan_from_json(const Graph& graph, std::string_view json, Hash hash);

// A table for people, with bars.
std::string plan_report(const Graph& graph, const Plan& plan);
// What could be given up, in words.
std::string relaxation_text(const Relaxation& relaxation);

}  // namespace stw
