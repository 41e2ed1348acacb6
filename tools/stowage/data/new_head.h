// What to do with a model whose labels are not those of the data.
#pragma once
#include <functional>
#include <span>
#include <string>

namespace command {

// "2 labels (spam, ham)"
std::string count_and_labels(std::span<const std::string> labels);
// Runs `check`, which throws a failure if the model's labels are not those of the data. The failure's message
// gets the advice to draw a new head.
void with_advice(const std::function<void()>& check);

}  // namespace command
