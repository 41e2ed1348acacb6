// Which texts are held out for evaluations, by their labels or the tags of their words.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/examples.h"
#include "data/label_lists.h"

namespace command {

// Orders texts, of which the last tenth will be held out, so that each label keeps a text to train on where
// there are enough others. `tokens` and `labels` belong to the texts in the order before. Returns the
// numbers of the texts in the new order, which is the old one if no label is in danger.
std::vector<size_t> keeping_labels(std::span<const size_t> tokens, const LabelLists& labels);
// Orders documents in this way.
template <class Document>
void keep_labels(std::vector<Document>& documents, std::span<const size_t> tokens, const LabelLists& labels) {
  std::vector<Document> ordered;
  for (const size_t i : keeping_labels(tokens, labels)) ordered.push_back(std::move(documents[i]));
  documents = std::move(ordered);
}

// Warns of labels that no text before the token `first_held_out` has. `task` is the model's (STW_TASK_*).
void warn_of_unlearned_labels(const Examples& examples, uint64_t first_held_out,
                              std::span<const std::string> labels, uint32_t task, const std::string& path);

}  // namespace command
