// The texts that a run holds out for evaluations. If its data changes, the resumed run and `eval` hold out
// the same texts again, so that no evaluation is made on texts that were trained on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples.h"

namespace command {

// Checksums of the tokens of texts, examples or pairs, sorted.
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
