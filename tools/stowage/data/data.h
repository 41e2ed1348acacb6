// Opens the tokens of a run as a dataset with the window length of its plan.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/handles.h"
#include "data/data_source.h"
#include "data/examples.h"
#include "data/labelled.h"
#include "data/masked.h"
#include "data/tokenization.h"
#include "flags/flags.h"

namespace CLI {  // its headers cost more to compile than all else here
class App;
}

namespace command {

struct DataFlags {
  std::vector<std::string> files;  // or folders, or patterns of file names
  std::string format = "auto";     // see DataReading
  // find_examples fills in the source and its name.
  DataSource source;
  std::string path;  // the name of `source`
  LabelFields fields;
  std::vector<std::string> label_names;  // names of the tags, where the file has tags that are numbers
  // find_examples fills these in. has_labels: each text has labels. has_tags: each word has a label.
  // has_pairs: pairs of answers. masks: the model learns hidden tokens.
  bool has_labels = false, has_tags = false, has_pairs = false, masks = false;
  bool holds_out_tail = false;  // examples are not shuffled, so that the last tenth of the file is held out
  MaskFlags mask;
  std::string tokenizer = "auto";   // see Tokenization::of_file
  std::string token_type = "auto";  // type of the ids in a file of token ids; auto for other files
  std::string chat_template;        // see chat_template_of
};

void add_data_flags(CLI::App& command, DataFlags& flags);
void add_tail_flag(CLI::App& command, DataFlags& flags);
void add_label_names_flag(CLI::App& command, DataFlags& flags);
// Adds --text-field, and --label-field if `with_labels`.
void add_field_flags(CLI::App& command, LabelFields& fields, bool with_labels);

struct OpenData {
  Dataset dataset;
  ExampleCounts counts;            // zero for plain text and token ids
  uint64_t held_out_examples = 0;  // examples (or pairs, or texts) in the held-out part
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

// Describes the dataset that open_data makes of files.
struct DataRequest {
  const Tokenization& tokenization;
  const ModelFlags& flags;  // of the model
  const Model& model;
  uint64_t sequence;
  std::optional<uint32_t> document_end;
  std::optional<double> held_out = {};  // share of the tokens; unset: the library's default
  bool evaluates = true;                // a Failure is thrown if the held-out part is too short
  // The end of that message: advice to the user.
  const char* advice =
      "train on all of it with --eval-batches 0, or evaluate on another file with --eval-data";
  bool in_order = false;  // an evaluation of text or token ids covers each held-out token once
};

// Fills in what `data` holds: examples, labels, tags, pairs, or texts whose tokens are hidden. Sets the
// default preference loss of pairs. If --document-end is not given, examples end with the token of the run
// that the model comes from, or with the model's end of text.
void find_examples(PlanFlags& plan, DataFlags& data, const ModelFlags& model);
// If the data has labels and the model has none, asks for a classifier with the labels of the data.
void take_labels(ModelFlags& model, const DataFlags& data);

// Throws if a flag about pairs is given and the data has no pairs.
void require_pairs(const PreferenceFlags& preference, const DataFlags& data);

// The examples, labelled texts or pairs in the data; fills in `masks` for texts with hidden tokens. Returns
// nothing if the data is plain text or token ids.
std::optional<Examples> examples_of(const DataFlags& flags, const DataSource& data,
                                    const DataRequest& request, std::optional<Masks>& masks);
// The texts or token ids of all files, end to end, as the bytes of one file of tokens. If --document-end is
// given, that token follows each file but the last. `token_type` is the type of ids (--token-type).
std::string tokens_of_files(const DataSource& data, const DataRequest& request, uint64_t vocabulary,
                            const std::string& token_type);
// Bytes of one id in a file of this --token-type. auto: the bytes that the vocabulary needs.
size_t bytes_of_type(const std::string& token_type, uint64_t vocabulary);

// `files`: the files of `flags`, or others of the same kind.
OpenData open_data(const DataFlags& flags, const DataSource& files, const DataRequest& request);
// The settings for reading files, from the flags. Files of --eval-data are read like those of --data.
DataReading reading_of(const DataFlags& flags);

// Mean number of examples in a sample.
double examples_of_sample(const OpenData& data);

// The number of samples in one epoch. They hold every example once, or as many tokens as the training part.
uint64_t samples_of_epoch(const OpenData& data, uint64_t sequence);

}  // namespace command
