// Marks in a file that take a message, or a whole example, out of the loss.
#pragma once
#include <optional>
#include <string_view>

#include "base/json_value.h"

namespace command {

enum class Marked { message, example };

// Whether the marks of an object say that it is learned: "weight" of 0 or 1 (OpenAI), "train" (Axolotl),
// "masked" (torchtune), and in a message "training" or "loss" (ms-swift). Empty if it has no mark. Throws a
// Failure that names the member if its value is not valid, if two marks contradict each other, and if a mark
// is finer than a message: for its characters or tokens.
std::optional<bool> loss_mark(const JsonView& object, Marked kind);

bool is_loss_mark(std::string_view member);  // whether loss_mark reads a member of that name

}  // namespace command
