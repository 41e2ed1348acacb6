// What flags of other trainers are called here: of Hugging Face's Trainer and TRL, Axolotl, Unsloth and mlx-lm.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// The rest of a refusal of `word`, such as "; it is --lr here", for a command with these flags ("--lr"); none where nothing is known. Words may have underscores, and a value
// after "=".
std::optional<std::string> foreign_flag(std::string_view word, const std::vector<std::string>& flags);

// The same of a value of one of our flags ("--optimizer", "adamw_8bit").
std::optional<std::string> foreign_value(std::string_view flag, std::string_view value);

}  // namespace command
