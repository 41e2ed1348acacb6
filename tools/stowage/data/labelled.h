// Reads texts with labels to train classifiers on: a table whose first line names its columns, or JSON
// objects, {"text": …, "label": …} or {"text": …, "labels": […]}. Labels may also be numbers to predict
// (regression).
#pragma once
#include <stowage.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/tokenization.h"

namespace command {

// Names of columns of a table, or of members of JSON objects.
struct LabelFields {
  std::string text = "text", label = "label", pair = "text_pair";
  // Whether a flag names the field. If label_given, every object of a .jsonl file must have the label.
  bool text_given = false, label_given = false, pair_given = false;
  // The columns of words and tags in the files of the run that a model comes from. Empty: not given.
  std::string run_text = {}, run_label = {};
  std::string separator;  // between the labels in one field of a .csv file; empty: a field is one label
};

struct LabelledText {
  std::string text;
  std::vector<std::string> labels;       // numbers as they are written
  std::string place;                     // for messages
  std::optional<std::string> pair = {};  // the second text, if a label belongs to two texts
  bool is_list = false;                  // the labels are a list of any length
  bool is_marked = false;                // its author took it out of the loss
};

// Whether the data is texts with labels: a table, or JSON objects in which a text with a label comes before
// any completion or messages.
bool holds_labels(const DataSource& data, const LabelFields& fields);

// The purpose of reading texts: to learn their labels, to learn from the texts alone, or to answer each one.
// `answers` allows empty texts: a blank line of JSON lines, or of a table with one column, is an empty text,
// so that the answers keep the order of the lines.
enum class ReadPurpose : uint8_t { labels, texts, answers };
// Throws a Failure that names the line if it has no text, or no label although labels are wanted, and if a
// table lacks these columns. Texts that are marked out of the loss are answered, but not learned: they are
// left out, and `*marked` is their number.
std::vector<LabelledText> read_labelled(const DataSource& data, const LabelFields& fields,
                                        ReadPurpose purpose, uint64_t* marked = nullptr);
// Reads files of another kind: each line is a text, blank lines too.
std::vector<LabelledText> read_lines(const DataSource& data);

// The labels as JSON for the file of a run, with the task (STW_TASK_*) if it is LABELS or NUMBER.
std::string labels_json(std::span<const std::string> names, uint32_t task);
struct LabelsOfRun {
  std::vector<std::string> names;
  std::string task;  // as labels_json writes it; empty: LABEL or TOKEN_LABEL
};
// The inverse of labels_json. Throws a Failure that names `path`.
LabelsOfRun labels_in(const std::string& json, const std::string& path);

// The tokens of one text or of a pair that a classifier reads, with the special tokens that the tokenizer
// adds, cut to at most `most` tokens in all. An encoder reads all of them. A language model classifies by the
// last token that is not padding, and the tokens after it are dropped (transformers,
// …ForSequenceClassification). Empty for an empty text if the tokenizer adds no tokens. Throws a Failure if
// the model cannot take two texts.
struct EncodedText {
  std::vector<int32_t> tokens, token_types;  // token_types: empty where all are 0
  bool is_cut;
};
// The mark of a text's token in a dataset. Throws a Failure for a token type that marks cannot hold.
char mark_of(std::span<const int32_t> token_types, size_t token, const std::string& place);
EncodedText tokens_of(const LabelledText& text, const Tokenization& tokenization, const stw_model_info& model,
                      uint64_t most);

// Logits of all labels for each text, one text after the other; with `of_tokens` for each token of each text.
std::vector<float> label_logits(stw_trainer* trainer, std::span<const EncodedText> texts, size_t labels,
                                bool of_tokens = false);
// The end of the texts that one call of label_logits takes from number `first` on; there are `count` in all.
// Text number i has rows(i) rows of `labels` logits. With small calls the first answers appear soon, and
// logits take little memory: a call has 1 to 256 texts, and up to 2^22 logits if it has several.
template <class Rows>
size_t end_of_call(size_t first, size_t count, size_t labels, const Rows& rows) {
  constexpr size_t most_texts = 256, most_logits = size_t{1} << 22;
  size_t end = first + 1;
  for (size_t logits = rows(first) * labels; end < std::min(count, first + most_texts); ++end)
    if (logits += rows(end) * labels; logits > most_logits) break;
  return end;
}

}  // namespace command
