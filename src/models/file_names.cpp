#include "src/models/file_names.h"

#include <utility>

namespace stw {

namespace {
// Prefixes of names of a language model: inside a larger model's files, alone, and inside a larger model in
// transformers' memory. Source: transformers, modeling_gemma3.py, conversion_mapping.py.
constexpr std::string_view in_files = "language_model.", alone = "model.",
                           in_memory = "model.language_model.";
}  // namespace

std::vector<std::string> names_in_files(const ModelConfig& config, std::string_view name) {
  std::vector<std::string> names;
  if (config.is_part) {
    names.push_back(std::string(in_files).append(name));
    if (name.starts_with(alone)) names.push_back(std::string(in_memory).append(name.substr(alone.size())));
  }
  names.emplace_back(name);
  if (std::string other = other_name_in_head(config, name); !other.empty()) names.push_back(std::move(other));
  const std::string_view optional = architecture_of(config).optional_prefix;
  if (!optional.empty() && name.starts_with(optional)) names.emplace_back(name.substr(optional.size()));
  // BERT's first files, converted from TensorFlow, have these names for the weights and biases of norms.
  for (const auto& [now, once] :
       {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
    for (size_t k = 0, n = name.ends_with(now) ? names.size() : 0; k < n; ++k)
      names.push_back(names[k].substr(0, names[k].size() - std::string_view(now).size()) + once);
  return names;
}

std::vector<std::string> names_in_exports(const ModelConfig& config, const std::string& name) {
  std::vector<std::string> names{name};
  if (std::string other = other_name_in_head(config, name); !config.tied && !other.empty() && other != name)
    names.push_back(std::move(other));
  return names;
}

std::string name_for_adapters(const ModelConfig& config, const std::string& name) {
  return config.is_part && name.starts_with(alone) ? std::string(in_memory).append(name.substr(alone.size()))
                                                   : name;
}

std::string name_in_model(std::string_view name) {
  if (name.starts_with(in_memory)) return std::string(alone).append(name.substr(in_memory.size()));
  return std::string(name.starts_with(in_files) ? name.substr(in_files.size()) : name);
}

}  // namespace stw
