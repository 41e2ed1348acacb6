// The flags about data, and the kind of data that they name.
#pragma once
#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/labelled.h"
#include "data/masked.h"
#include "data/questions.h"
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
  std::string columns_of_run;  // a run whose columns of words and tags are used for .conll files; or empty
  std::vector<std::string> label_names;  // where the file has labels or tags that are numbers
  // find_examples fills these in. has_labels: each text has labels. has_tags: each word has a label.
  // has_pairs: pairs of answers. has_questions: questions about contexts. masks: the model learns hidden
  // tokens.
  bool has_labels = false, has_tags = false, has_pairs = false, has_questions = false, masks = false;
  bool holds_out_tail = false;  // examples are not shuffled, so that the last tenth of the file is held out
  MaskFlags mask;
  QuestionFlags questions;
  std::string tokenizer = "auto";   // see Tokenization::of_file
  std::string token_type = "auto";  // type of the ids in a file of token ids; auto for other files
  std::string chat_template;        // see chat_template_of
};

void add_data_flags(CLI::App& command, DataFlags& flags);
void add_tail_flag(CLI::App& command, DataFlags& flags);
void add_label_names_flag(CLI::App& command, DataFlags& flags);
// Reads files of words like those of a run: takes the columns that its flags name.
void take_columns_of_run(LabelFields& fields, const std::string& run);
// Adds --text-field and --pair-field, and --label-field if `with_labels`.
void add_field_flags(CLI::App& command, LabelFields& fields, bool with_labels);

// The settings for reading files, from the flags. Files of --eval-data are read like those of --data.
DataReading reading_of(const DataFlags& flags);

// Fills in what `data` holds: examples, labels, tags, pairs, or texts whose tokens are hidden. Sets the
// default preference loss of pairs. If --document-end is not given, examples end with the token of the run
// that the model comes from, or with the model's end of text.
void find_examples(PlanFlags& plan, DataFlags& data, const ModelFlags& model);
// Throws if a flag about pairs is given and the data has no pairs.
void require_pairs(const PreferenceFlags& preference, const DataFlags& data);

}  // namespace command
