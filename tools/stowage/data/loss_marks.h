// Marks by which a file says that a message, or a whole example, is not learned.
#pragma once
#include <optional>
#include <string_view>

#include "base/json_value.h"

namespace command {

enum class Marked { message, example };

// Whether the object says that it is learned: "weight" of 0 or 1 (OpenAI), "train" (Axolotl), "masked"
// (torchtune), and of a message "loss" (ms-swift). Nothing: it says neither. Throws a Failure that names the
// member where its value is another one, where two of them contradict each other, and where a mark goes below
// the message, to its letters or tokens.
std::optional<bool> loss_mark(const JsonView& object, Marked kind);

bool is_loss_mark(std::string_view member);  // whether it looks at a member of that name

}  // namespace command
