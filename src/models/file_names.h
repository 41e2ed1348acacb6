// What a parameter is called in files: most leave its own name as it is; a language model that is a part of one that takes pictures too, or
// whose files leave out what all names begin with, has other ones there.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "src/models/model.h"

namespace stw {

// Of weights and of adapters, the one to look for first in front.
std::vector<std::string> names_in_files(const ModelConfig& config, std::string_view name);
// The one that adapters of it are written under: of the module as transformers names it in memory.
std::string name_for_adapters(const ModelConfig& config, const std::string& name);
// The parameter's, or module's, own name again: of what is written under any of them but without a prefix.
std::string own_name(std::string_view name_in_file);

}  // namespace stw
