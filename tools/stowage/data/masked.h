// Texts to train masked language models on: each one a document, or several where it is longer than a sample;
// and which of their tokens are hidden.
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
  std::optional<double> rate;  // unset: that of the run, else the default
  bool whole_words = false;
};
// --mask-rate and --mask-whole-words.
void add_mask_flags(CLI::App& command, MaskFlags& flags);
// What was not said, as the run in this folder has it.
void take_masks_of_run(MaskFlags& flags, const std::string& run);
// For a --resume. Throws where a flag asks for other masks than the run has.
void check_masks_of_run(const MaskFlags& flags, const std::string& run);

// What a dataset hides; `kinds` has a byte for each token of the model's vocabulary.
struct Masks {
  double rate;
  int32_t token;
  std::vector<uint8_t> kinds;
  bool whole_words;
};

// All texts of the data: of tables or objects, or each whole file as one text. Cut to pieces that fill a
// sample, each with the tokens that the tokenizer puts around a text; pieces are documents. Texts come in
// this order, and their pieces one after the other. Throws a Failure where the tokenizer has no mask token,
// or does not tell words although whole words are hidden.
Examples read_masked(const DataSource& data, const LabelFields& fields, const MaskFlags& flags,
                     const Tokenization& tokenization, uint64_t vocabulary, uint64_t sequence, Order order,
                     Masks& masks);

}  // namespace command
