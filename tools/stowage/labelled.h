// Texts and what each of them is called, to train classifiers on: a .csv file whose first line names its columns, or a .jsonl file of
// objects, {"text": …, "label": …}.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "examples.h"
#include "tokenization.h"

namespace command {

// Names of columns, or of members of objects.
struct LabelFields {
  std::string text = "text", label = "label";
  bool text_given = false, label_given = false;   // a label by its name: then every .jsonl file has some
};

struct LabelledText {
  std::string text, label;   // a number as it is written
  std::string place;         // for messages
};

bool is_csv(const std::string& path);   // as its name says
// Whether it is such a file: a .csv file, or a .jsonl file of which an object has a text and a label, and neither a completion nor messages.
bool holds_labels(const std::string& path, const LabelFields& fields);

// Throws a Failure that names the line: one without a text, or where labels are wanted without a label; a .csv file without these columns.
std::vector<LabelledText> read_labelled(const std::string& path, const LabelFields& fields, bool with_labels);
// A line each, of any other file.
std::vector<LabelledText> read_lines(const std::string& path);

// All labels that are there, each once: in the order of their numbers where all are numbers, else of their bytes.
std::vector<std::string> labels_of(std::span<const LabelledText> texts);

// As the file of a run has them, a list of names; the inverse throws a Failure that names `path`.
std::string labels_json(std::span<const std::string> names);
std::vector<std::string> labels_in(const std::string& json, const std::string& path);

// The tokens that a classifier sees of a text, up to the one that it looks at: with those that the tokenizer puts around it, cut so that all of them
// are at most `most`, and then without `padding` at the end (transformers, …ForSequenceClassification). Throws a Failure where there are none.
struct SeenText {
  std::vector<int32_t> tokens;
  bool is_cut;
};
SeenText tokens_of(const LabelledText& text, const Tokenization& tokenization, int64_t padding, uint64_t most);

// As documents, in an order of their own. `labels`: the model's; a label is one of their names, or where no text has one, and none of the names is
// a number, all may be their numbers.
// Throws a Failure that names the line of a label that the model does not know.
Examples label_examples(std::span<const LabelledText> texts, std::span<const std::string> labels, const Tokenization& tokenization, int64_t padding, uint64_t sequence);

}  // namespace command
