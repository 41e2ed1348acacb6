// Which texts are held out for evaluations, by their labels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/examples.h"

namespace command {

// Orders texts, of which the last tenth will be held out, so that each label keeps a text to train on where
// there are enough others. `tokens` and `labels` belong to the texts in the order before. Returns the
// numbers of the texts in the new order, which is the old one if no label is in danger.
std::vector<size_t> keeping_labels(std::span<const size_t> tokens,
                                   std::span<const std::vector<uint32_t>> labels);

// Warns of labels that no text before the token `first_held_out` has. `task` is the model's (STW_TASK_*).
void warn_of_unlearned_labels(const Examples& examples, uint64_t first_held_out,
                              std::span<const std::string> labels, uint32_t task, const std::string& path);

}  // namespace command
