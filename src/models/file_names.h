// Names of parameters in files. Most are the parameter's name in the graph. Other names occur for a language
// model inside a model for images and text, and in files that leave out the common prefix.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/models/model.h"

namespace stw {

// All names that weights and adapters may have in files, the preferred one first.
std::vector<std::string> names_in_files(const ModelConfig& config, std::string_view name);
// All names under which a whole model's file gets the parameter. transformers has the bias of masked-LM
// logits under two names where the matrix is not tied to the word table.
std::vector<std::string> names_in_exports(const ModelConfig& config, const std::string& name);
// The name under which adapters of a module are written: the module's name in transformers' model object.
std::string name_for_adapters(const ModelConfig& config, const std::string& name);
// The model's name of a parameter or module, from a name with one of these prefixes. Other names are returned
// unchanged.
std::string name_in_model(std::string_view name_in_file);

}  // namespace stw
