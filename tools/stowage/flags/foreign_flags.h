// The names that flags of other trainers have here: Hugging Face's Trainer and TRL, Axolotl, Unsloth and
// mlx-lm.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// The end of the message that refuses `word`, such as "; it is --lr here". `flags` are those of the command
// ("--lr"). Empty if the word is unknown. `word` may contain underscores, and a value after "=".
std::optional<std::string> foreign_flag(std::string_view word, const std::vector<std::string>& flags);

// The same for a value of one of the flags here ("--optimizer", "adamw_8bit").
std::optional<std::string> foreign_value(std::string_view flag, std::string_view value);

}  // namespace command
