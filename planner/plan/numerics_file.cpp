#include "planner/plan/numerics_file.h"

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
    if (bits != 8 && bits != 32) return wrong("group \"" + pattern + "\" has states of " + std::to_string(bits) + " bits");
    g.state_bits = static_cast<int>(bits);
  }
  return g;
}

// The enum value that a field names.
template <class Enum, int count>
Result<Enum> value_of(const Json& object, const char* key, const char* const (&names)[count]) {
  STW_ASSIGN(name, get_string(object, key));
  const auto value = named<Enum>(names, name);
  if (!value) return wrong(std::string("unknown ") + key + " \"" + name + "\"");
  return *value;
}

}  // namespace

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

Json numerics_json(const Numerics& n, const std::string& states_reason) {
  return Json::object()
      .set("precision", name_of(n.precision)).set("optimizer", name_of(n.optimizer)).set("state_bits", n.state_bits)
      .set("master", master_name(n)).set("gradients", gradients_name(n)).set("fused_update", n.fused_update).set("exact", n.exact).set("kernels", kernels_name(n))
      .set("attention", attention_name(n)).set("quantize", name_of(n.quantize)).set("quantize_embeddings", name_of(n.quantize_embeddings))
      .set("preference", name_of(n.inputs.preference)).set("inputs", inputs_json(n.inputs)).set("groups", groups_json(n.groups)).set("states_reason", states_reason);
}

Result<Numerics> numerics_from(const Json& object) {
  Numerics n;
  STW_ASSIGN(precision, value_of<Precision>(object, "precision", precision_names));
  n.precision = precision;
  STW_ASSIGN(master, get_string(object, "master"));
  int kind = 0;
  while (kind < master_count && (n.master = static_cast<Master>(kind), master != master_name(n))) ++kind;
  if (kind == master_count) return wrong("unknown master \"" + master + "\" for " + name_of(precision));
  STW_ASSIGN(optimizer, get_string(object, "optimizer"));
  int index = 0;
  while (index < optimizer_count && optimizer != name_of(static_cast<Optimizer>(index))) ++index;
  if (index == optimizer_count) return wrong("unknown optimizer \"" + optimizer + "\"");
  n.optimizer = static_cast<Optimizer>(index);
  STW_ASSIGN(bits, get_int(object, "state_bits"));
  if (bits != 32 && !(bits == 8 && optimizer_row(n.optimizer).has_8bit_states))
    return wrong("optimizer " + optimizer + " has no states of " + std::to_string(bits) + " bits");
  n.state_bits = static_cast<int>(bits);
  STW_ASSIGN(exact, get_bool(object, "exact"));
  STW_ASSIGN(gradients, value_of<Gradients>(object, "gradients", gradients_names));
  n.gradients = gradients;
  STW_ASSIGN(fused, get_bool(object, "fused_update", false));
  n.fused_update = fused;
  if (object.find("kernels")) {
    STW_ASSIGN(kernels, value_of<Kernels>(object, "kernels", kernels_names));
    n.kernels = kernels;
  }
  if (object.find("attention")) {
    STW_ASSIGN(attention, value_of<Attention>(object, "attention", attention_names));
    n.attention = attention;
  }
  if (object.find("quantize")) {
    STW_ASSIGN(quantize, value_of<Quantize>(object, "quantize", quantize_names));
    n.quantize = quantize;
  }
  if (object.find("quantize_embeddings")) {
    STW_ASSIGN(embeddings, value_of<Quantize>(object, "quantize_embeddings", quantize_names));
    if (embeddings == Quantize::nf4) return wrong("embeddings are quantized to int8 or not at all");
    n.quantize_embeddings = embeddings;
  }
  n.exact = exact;
  if (!exact && !uses_cublaslt(n.kernels)) return wrong("kernels \"" + std::string(kernels_name(n)) + "\" know exact plans only");
  STW_ASSIGN(inputs, get_array(object, "inputs"));
  for (const Json& entry : inputs->elements()) {
    const std::string name = entry.as_string() ? *entry.as_string() : "";
    if (name != "positions" && name != "weights") return wrong("unknown input \"" + name + "\"");
    (name == "positions" ? n.inputs.positions : n.inputs.weights) = true;
  }
  if (object.find("preference")) {
    STW_ASSIGN(preference, value_of<Preference>(object, "preference", preference_names));
    n.inputs.preference = preference;
  }
  STW_ASSIGN(groups, get_array(object, "groups"));
  for (const Json& entry : groups->elements()) {
    STW_ASSIGN(group, group_from(entry));
    n.groups.push_back(std::move(group));
  }
  return n;
}

}  // namespace stw
