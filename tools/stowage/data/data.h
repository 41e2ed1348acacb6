// The tokens of a run, as a dataset that is opened for a plan's windows.
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
  std::vector<std::string> files;  // and folders of them, and patterns
  std::string format = "auto";     // see DataReading
  // Filled in by find_examples.
  DataSource source;
  std::string path;  // its name
  LabelFields fields;
  std::vector<std::string> label_names;  // of tags that are numbers
  // Filled in by find_examples. has_tags: labels of words, else has_labels; masks: tokens are hidden.
  bool has_labels = false, has_tags = false, has_pairs = false, masks = false;
  bool holds_out_tail = false;  // the file's own last tenth, of examples too
  MaskFlags mask;
  std::string tokenizer = "auto";   // see Tokenization::of_file
  std::string token_type = "auto";  // of ids, else auto
  std::string chat_template;        // see chat_template_of
};

void add_data_flags(CLI::App& command, DataFlags& flags);
void add_tail_flag(CLI::App& command, DataFlags& flags);
void add_label_names_flag(CLI::App& command, DataFlags& flags);
// --text-field, and where `with_labels` --label-field.
void add_field_flags(CLI::App& command, LabelFields& fields, bool with_labels);

struct OpenData {
  Dataset dataset;
  ExampleCounts counts;  // of prompts and answers, pairs of answers, or texts with labels; else no examples
  uint64_t held_out_examples = 0;  // of these
  std::shared_ptr<const Examples>
      labelled;  // what the dataset was made of where the model has labels or numbers; else none
  struct Answer {
    uint64_t tokens, learned;
  };
  std::vector<Answer> answers;  // of pairs: chosen and rejected in turn, in the order of the tokens
  // Of pairs: those that are held out by themselves, whose first token is that one of all. Null: none are.
  struct HeldOutPairs {
    Dataset dataset;
    std::vector<Answer> answers;
    uint64_t first_token;
  };
  std::shared_ptr<const HeldOutPairs> held_out_pairs;
  std::function<Dataset(const std::string& reference)>
      against;  // of pairs: the same with the log-probabilities in that file
};

// What the tokens of a file shall be.
struct DataRequest {
  const Tokenization& tokenization;
  const ModelFlags& flags;  // of the model
  const Model& model;
  uint64_t sequence;
  std::optional<uint32_t> document_end;
  std::optional<double> held_out = {};  // share; unset: the library's
  bool evaluates = true;                // the held-out part must be long enough, too,
  const char* way_out =
      "train on all of it with --eval-batches 0, or evaluate on another file with --eval-data";  // else there
                                                                                                 // is this to
                                                                                                 // do
  bool in_order = false;  // of a text or tokens: evaluations are of every token of the held-out part, once
};

// Whether the data is examples, and has labels or pairs, or its tokens are to be hidden, and what is learned
// of these; and what ends an example where nothing is given: the model's end of text, or what the run had
// that it comes from.
void find_examples(PlanFlags& plan, DataFlags& data, const ModelFlags& model);
// Where the data has labels and the model is a language model, it is to become a classifier with those.
void take_labels(ModelFlags& model, const DataFlags& data);

// Throws where the data has none, and something is said of what pairs weigh.
void require_pairs(const PreferenceFlags& preference, const DataFlags& data);

// What examples, texts with labels or pairs hold, and of texts with hidden tokens `masks`. Nothing where the
// data is text, or tokens.
std::optional<Examples> examples_of(const DataFlags& flags, const DataSource& data,
                                    const DataRequest& request, std::optional<Masks>& masks);
// Texts and token ids end to end, as a file of tokens. Of several each but the last is followed by
// --document-end, if that is given. Ids are stored as `token_type` says (--token-type).
std::string tokens_of_files(const DataSource& data, const DataRequest& request, uint64_t vocabulary,
                            const std::string& token_type);
// Bytes of an id in a file of that --token-type; auto: those that the vocabulary needs.
size_t bytes_of_type(const std::string& token_type, uint64_t vocabulary);

// `files`: those of `flags`, or others of the same kind.
OpenData open_data(const DataFlags& flags, const DataSource& files, const DataRequest& request);
// How files beside those of --data are read.
DataReading reading_of(const DataFlags& flags);

// How many examples a sample holds, on average.
double examples_of_sample(const OpenData& data);

// Samples that go over the data once: all examples, or as many tokens as there are.
uint64_t samples_of_epoch(const OpenData& data, uint64_t sequence);

}  // namespace command
