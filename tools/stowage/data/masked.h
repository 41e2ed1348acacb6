// Texts to train masked language models on, and the tokens that are hidden in them. Each text is a document,
// or several if it is longer than a sample.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/examples.h"
#include "data/labelled.h"
#include "data/tokenization.h"
#include "flags/flags.h"

namespace CLI {  // its headers cost more to compile than all else here
class App;
}

namespace command {

inline constexpr double default_mask_rate = 0.15;  // Devlin et al., arXiv 1810.04805

struct MaskFlags {
  std::optional<double> rate;  // unset: the rate of the run, else the default
  bool whole_words = false;
};
// --mask-rate and --mask-whole-words.
void add_mask_flags(CLI::App& command, MaskFlags& flags);
// Takes the settings that no flag gave from the run in this folder.
void take_masks_of_run(MaskFlags& flags, const std::string& run);
// For --resume. Throws if a flag asks for other masks than those of the run.
void check_masks_of_run(const MaskFlags& flags, const std::string& run);

// How a dataset hides tokens. `kinds` has one byte (STW_TOKEN_*) for each token of the model's vocabulary.
struct Masks {
  double rate;
  int32_t token;
  std::vector<uint8_t> kinds;
  bool whole_words;
};

// Reads the texts of tables or JSON objects; any other file is one text. Cuts each text into pieces that fill
// a sample together with the special tokens that the tokenizer adds; each piece is a document. `order` is the
// order of the texts; the pieces of a text stay together. Throws a Failure if the tokenizer has no mask
// token, or if whole words are hidden and the tokenizer does not show which tokens continue a word.
Examples read_masked(const DataSource& data, const LabelFields& fields, const MaskFlags& flags,
                     const Tokenization& tokenization, uint64_t vocabulary, uint64_t sequence, Order order,
                     Masks& masks);

}  // namespace command
