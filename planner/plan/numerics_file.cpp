#include "planner/plan/numerics_file.h"

#include <utility>

#include "planner/graph/optimizer.h"

namespace stw {

namespace {

Error wrong(const std::string& what) { return {Code::corrupt, "plan: numerics: " + what}; }

Json group_json(const ParameterGroup& g) {
  Json group = Json::object().set("pattern", g.pattern);
  if (g.frozen) group.set("frozen", *g.frozen);
  if (g.rate) group.set("learning_rate_factor", *g.rate);
  if (g.decay) group.set("weight_decay", *g.decay);
  if (g.state_bits) group.set("state_bits", *g.state_bits);
  return group;
}

Result<ParameterGroup> group_from(const Json& object) {
  ParameterGroup g;
  STW_ASSIGN(pattern, get_string(object, "pattern"));
  g.pattern = pattern;
  if (object.find("frozen")) {
    STW_ASSIGN(frozen, get_bool(object, "frozen"));
    g.frozen = frozen;
  }
  for (const auto& [key, field] : {std::pair{"learning_rate_factor", &g.rate}, {"weight_decay", &g.decay}}) {
    if (!object.find(key)) continue;
    STW_ASSIGN(value, get_double(object, key));
    *field = value;
  }
  if (object.find("state_bits")) {
    STW_ASSIGN(bits, get_int(object, "state_bits"));
    if (bits != 8 && bits != 32)
      return wrong("group \"" + pattern + "\" has states of " + std::to_string(bits) + " bits");
    g.state_bits = static_cast<int>(bits);
  }
  return g;
}

// Reads the enum value that a field names.
template <class Enum, int count>
Status read_name(const Json& object, const char* key, const char* const (&names)[count], Enum& out) {
  STW_ASSIGN(name, get_string(object, key));
  const auto value = named<Enum>(names, name);
  if (!value) return wrong(std::string("unknown ") + key + " \"" + name + "\"");
  out = *value;
  return ok();
}

Status read_optimizer(const Json& object, Numerics& n) {
  STW_ASSIGN(name, get_string(object, "optimizer"));
  int index = 0;
  while (index < optimizer_count && name != name_of(static_cast<Optimizer>(index))) ++index;
  if (index == optimizer_count) return wrong("unknown optimizer \"" + name + "\"");
  n.optimizer = static_cast<Optimizer>(index);
  return ok();
}

// Requires that the optimizer has been read.
Status read_state_bits(const Json& object, Numerics& n) {
  STW_ASSIGN(bits, get_int(object, "state_bits"));
  if (bits != 32 && !(bits == 8 && optimizer_row(n.optimizer).has_8bit_states))
    return wrong(std::string("optimizer ") + name_of(n.optimizer) + " has no states of " +
                 std::to_string(bits) + " bits");
  n.state_bits = static_cast<int>(bits);
  return ok();
}

// Requires that the precision has been read, because the names depend on it.
Status read_master(const Json& object, Numerics& n) {
  STW_ASSIGN(name, get_string(object, "master"));
  int kind = 0;
  while (kind < master_count && (n.master = static_cast<Master>(kind), name != master_name(n))) ++kind;
  return kind < master_count ? ok() : wrong("unknown master \"" + name + "\" for " + name_of(n.precision));
}

Status read_quantized_embeddings(const Json& object, Numerics& n) {
  STW_TRY(read_name(object, "quantize_embeddings", quantize_names, n.quantize_embeddings));
  return n.quantize_embeddings == Quantize::nf4 ? wrong("embeddings are quantized to int8 or not at all")
                                                : ok();
}

Status read_flag(const Json& object, const char* key, bool& out) {
  STW_ASSIGN(value, get_bool(object, key));
  out = value;
  return ok();
}

Status read_inputs(const Json& object, Numerics& n) {
  STW_ASSIGN(inputs, get_array(object, "inputs"));
  for (const Json& entry : inputs->elements()) {
    const std::string name = entry.as_string() ? *entry.as_string() : "";
    if (name != "positions" && name != "weights") return wrong("unknown input \"" + name + "\"");
    (name == "positions" ? n.inputs.positions : n.inputs.weights) = true;
  }
  return ok();
}

Status read_texts(const Json& object, Numerics& n) {
  STW_ASSIGN(texts, get_int(object, "texts"));
  if (texts < 0 || texts > INT32_MAX) return wrong("texts is " + std::to_string(texts));
  n.inputs.texts = texts;
  return ok();
}

Status read_groups(const Json& object, Numerics& n) {
  STW_ASSIGN(groups, get_array(object, "groups"));
  for (const Json& entry : groups->elements()) {
    STW_ASSIGN(group, group_from(entry));
    n.groups.push_back(std::move(group));
  }
  return ok();
}

Json inputs_json(const GraphInputs& inputs) {
  Json list = Json::array();
  if (inputs.positions) list.push("positions");
  if (inputs.weights) list.push("weights");
  return list;
}

Json groups_json(const std::vector<ParameterGroup>& groups) {
  Json list = Json::array();
  for (const ParameterGroup& g : groups) list.push(group_json(g));
  return list;
}

// The table of the fields of Numerics. The code that writes, reads and compares them in plans and checkpoints
// uses it.
struct NumericsField {
  const char* name;
  Json (*write)(const Numerics&);
  Status (*read)(const Json& object, Numerics&);
  bool is_new = false;       // files of older versions lack it, and mean the default
  bool is_of_graph = false;  // decides which inputs the graph has and which parameters it trains
};

constexpr bool is_new = true, is_of_graph = true;

const NumericsField fields[] = {
    {"precision", [](const Numerics& n) { return Json(name_of(n.precision)); },
     [](const Json& o, Numerics& n) { return read_name(o, "precision", precision_names, n.precision); }},
    {"optimizer", [](const Numerics& n) { return Json(name_of(n.optimizer)); }, read_optimizer},
    {"state_bits", [](const Numerics& n) { return Json(n.state_bits); }, read_state_bits},
    {"master", [](const Numerics& n) { return Json(master_name(n)); }, read_master},
    {"gradients", [](const Numerics& n) { return Json(gradients_name(n)); },
     [](const Json& o, Numerics& n) { return read_name(o, "gradients", gradients_names, n.gradients); },
     is_new},
    {"fused_update", [](const Numerics& n) { return Json(n.fused_update); },
     [](const Json& o, Numerics& n) { return read_flag(o, "fused_update", n.fused_update); }, is_new},
    {"exact", [](const Numerics& n) { return Json(n.exact); },
     [](const Json& o, Numerics& n) { return read_flag(o, "exact", n.exact); }},
    {"kernels", [](const Numerics& n) { return Json(kernels_name(n)); },
     [](const Json& o, Numerics& n) { return read_name(o, "kernels", kernels_names, n.kernels); }, is_new},
    {"attention", [](const Numerics& n) { return Json(attention_name(n)); },
     [](const Json& o, Numerics& n) { return read_name(o, "attention", attention_names, n.attention); },
     is_new},
    {"quantize", [](const Numerics& n) { return Json(name_of(n.quantize)); },
     [](const Json& o, Numerics& n) { return read_name(o, "quantize", quantize_names, n.quantize); }, is_new},
    {"quantize_embeddings", [](const Numerics& n) { return Json(name_of(n.quantize_embeddings)); },
     read_quantized_embeddings, is_new},
    {"preference", [](const Numerics& n) { return Json(name_of(n.inputs.preference)); },
     [](const Json& o, Numerics& n) {
       return read_name(o, "preference", preference_names, n.inputs.preference);
     },
     is_new, is_of_graph},
    {"inputs", [](const Numerics& n) { return inputs_json(n.inputs); }, read_inputs, false, is_of_graph},
    {"texts", [](const Numerics& n) { return Json(n.inputs.texts); }, read_texts, is_new, is_of_graph},
    {"groups", [](const Numerics& n) { return groups_json(n.groups); }, read_groups, false, is_of_graph},
};

}  // namespace

Json numerics_json(const Numerics& n, const std::string& states_reason) {
  Json object = Json::object();
  for (const NumericsField& field : fields) object.set(field.name, field.write(n));
  return object.set("states_reason", states_reason);
}

Result<Numerics> numerics_from(const Json& object) {
  Numerics n;
  for (const NumericsField& field : fields)
    if (!field.is_new || object.find(field.name)) STW_TRY(field.read(object, n));
  if (!n.exact && !uses_cublaslt(n.kernels))
    return wrong("kernels \"" + std::string(kernels_name(n)) + "\" support exact plans only");
  return n;
}

void set_identity(Json& identity, const Numerics& n, NumericsPart part) {
  for (const NumericsField& field : fields)
    if (field.is_of_graph == (part == NumericsPart::of_graph)) identity.set(field.name, field.write(n));
}

Json identity_of_older_files() {
  Json identity = Json::object();
  for (const NumericsField& field : fields)
    if (field.is_new) identity.set(field.name, field.write({}));
  return identity;
}

}  // namespace stw
