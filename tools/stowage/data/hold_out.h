// Which texts are held out for evaluations.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// The texts that a run holds out. If its data changes, the resumed run and `eval` hold out the same texts
// again, so that no evaluation is made on texts that were trained on. Checksums of the tokens of texts,
// examples or pairs, sorted. Of questions about contexts: of a question and its context, so that all its
// texts are held out, however the context is cut.
using HeldOutTexts = std::vector<uint64_t>;

// How the documents of Examples lie in their tokens, marks, origins and labels.
struct DocumentLayout {
  bool of_pairs = false;             // two documents, the answers, are one pair
  bool has_labels_of_words = false;  // labels of tokens; else of documents, or none
};

// The texts that begin at the token `first_held_out` or later.
HeldOutTexts held_out_texts(const Examples& examples, const DocumentLayout& layout, uint64_t first_held_out);

// Moves the texts that were held out to the end, each as often as it was held out. The others keep their
// order. Returns how many there are, and the share of tokens with which the library holds out just them
// (stw_dataset_options.held_out). `window`: the most tokens of a text in a sample. Empty if none of the texts
// was held out, or all were.
struct HeldOutAgain {
  uint64_t texts;
  double share;
};
std::optional<HeldOutAgain> hold_out_again(Examples& examples, const DocumentLayout& layout,
                                           const HeldOutTexts& before, uint64_t window);

// The text of the file in the run's folder, a line for each text, and its reading. Throws a Failure that
// names the file if it is not such a text.
std::string held_out_file(const HeldOutTexts& texts);
HeldOutTexts read_held_out(std::string_view text, const std::string& path);

}  // namespace command
