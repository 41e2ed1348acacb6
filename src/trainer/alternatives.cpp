#include "src/trainer/alternatives.h"

#include <algorithm>
#include <utility>

#include "src/trainer/planned.h"

namespace stw {

namespace {

// "qwen2.5-3b" and "qwen2.5-7b" are of one family.
std::string_view family_of(std::string_view preset) { return preset.substr(0, preset.find('-')); }

Result<GraphSource> changed_source(const Model& model, const ModelChange& change, const Request& request) {
  std::shared_ptr<const Model> other;
  if (!change.preset.empty()) {
    STW_ASSIGN(opened, model.of_preset(change.preset));
    other = std::move(opened);
  }
  const Model& base = other ? *other : model;
  auto config = std::make_shared<ModelConfig>(base.config());
  if (change.adapter_rank > 0) {
    STW_ASSIGN(with, base.config_with_adapters(change.adapter_rank));
    *config = std::move(with);
  }
  STW_TRY(check_sequence(base, request.sequence));
  STW_TRY(check_numerics(*config, numerics_of(request, 32)));
  return GraphSource([config, sequence = request.sequence](const Numerics& numerics) {
    return build_model(*config, sequence, numerics);
  });
}

std::vector<std::string> smaller_presets(const Model& model) {
  std::vector<std::pair<int64_t, std::string>> found;  // by parameters
  const auto parameters = [](const Model& m) { return static_cast<int64_t>(m.graph().parameter_count()); };
  for (size_t i = 0; const char* name = preset_name(i); ++i) {
    if (family_of(name) != family_of(model.preset()) || name == model.preset()) continue;
    if (const auto other = model.of_preset(name); other && parameters(**other) < parameters(model))
      found.emplace_back(-parameters(**other), name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [count, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace

Alternatives alternatives_of(const Model& model) {
  Alternatives alternatives;
  alternatives.source = [&model](const ModelChange& change, const Request& request) {
    return changed_source(model, change, request);
  };
  if (!model.preset().empty()) alternatives.smaller_presets = [&model] { return smaller_presets(model); };
  return alternatives;
}

}  // namespace stw
