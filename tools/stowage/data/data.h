// Opens the tokens of a run as a dataset with the window length of its plan.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/handles.h"
#include "data/data_flags.h"
#include "data/data_source.h"
#include "data/examples.h"
#include "data/hold_out.h"
#include "data/masked.h"
#include "data/tokenization.h"
#include "flags/flags.h"

namespace command {

struct OpenData {
  Dataset dataset;
  ExampleCounts counts;            // zero for plain text and token ids
  uint64_t held_out_examples = 0;  // examples (or pairs, or texts) in the held-out part
  HeldOutTexts held_out_texts;     // the same; empty for plain text and token ids
  // How many texts are held out because the run held them out before its data changed.
  uint64_t held_out_again = 0;
  // The examples from which the dataset was made, if the model gives labels or numbers; else null.
  std::shared_ptr<const Examples> labelled;
  struct Answer {
    uint64_t tokens, learned;
  };
  std::vector<Answer> answers;  // of pairs: chosen and rejected in turn, in the order of the tokens
  // The held-out pairs as a dataset of their own. `first_token` is the number of their first token in the
  // whole data. Null if no pair is held out, or if the data are not pairs.
  struct HeldOutPairs {
    Dataset dataset;
    std::vector<Answer> answers;
    uint64_t first_token;
  };
  std::shared_ptr<const HeldOutPairs> held_out_pairs;
  // Opens the same pairs with the reference log-probabilities in the given file.
  std::function<Dataset(const std::string& reference)> against;
};

struct HeldOutBefore {
  HeldOutTexts texts;
  uint64_t content;
};
// Of the run in a folder. Empty if the folder has no run, or if the run held out no texts.
std::optional<HeldOutBefore> held_out_of_run(const std::string& folder);

// Describes the dataset that open_data makes of files.
struct DataRequest {
  const Tokenization& tokenization;
  const ModelFlags& flags;  // of the model
  const Model& model;
  uint64_t sequence, texts;  // of the plan
  std::optional<uint32_t> document_end;
  std::optional<double> held_out = {};  // share of the tokens; unset: the library's default
  bool evaluates = true;                // a Failure is thrown if the held-out part is too short
  // The end of that message: advice to the user.
  const char* advice =
      "train on all of it with --eval-batches 0, or evaluate on another file with --eval-data";
  bool sequential = false;  // an evaluation of text or token ids covers each held-out token once
  // What the run held out, and the content hash of the data on which it was last trained. If the data has
  // another hash, the same texts are held out again. Null: the last texts are held out.
  const HeldOutBefore* before = nullptr;
};

// The examples, labelled texts or pairs in the data; fills in `masks` for texts with hidden tokens. Returns
// nothing if the data is plain text or token ids.
std::optional<Examples> examples_of(const DataFlags& flags, const DataSource& data,
                                    const DataRequest& request, std::optional<Masks>& masks);
// `files`: the files of `flags`, or others of the same kind.
OpenData open_data(const DataFlags& flags, const DataSource& files, const DataRequest& request);
// Mean number of examples in a sample.
double examples_of_sample(const OpenData& data);

// The number of samples in one epoch. They hold every example once, or as many tokens as the training part.
uint64_t samples_of_epoch(const OpenData& data, uint64_t sequence);

}  // namespace command
