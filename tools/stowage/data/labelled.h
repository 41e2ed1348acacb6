// Texts and what each of them is called, to train classifiers on: a table whose first line names its columns,
// or objects of JSON, {"text": …, "label": …} or {"text": …, "labels": […]}. Labels may be numbers that a
// model learns as such.
#pragma once
#include <stowage.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/examples.h"
#include "data/tokenization.h"

namespace command {

// Names of columns, or of members of objects.
struct LabelFields {
  std::string text = "text", label = "label", pair = "text_pair";
  bool text_given = false, label_given = false;  // a label by its name: then every .jsonl file has some
  std::string
      separator;  // of a .csv file: what stands between the labels of a field; empty: a field is one label
};

struct LabelledText {
  std::string text;
  std::vector<std::string> labels;       // numbers as they are written
  std::string place;                     // for messages
  std::optional<std::string> pair = {};  // the second one of two texts that have one label
  bool is_list = false;                  // of any number of labels
  bool has_names = false;                // whether one of the labels is no number
};

// Whether it is such data: a table, or objects of which one has a text and a label, and neither a completion
// nor messages.
bool holds_labels(const DataSource& data, const LabelFields& fields);

// What is to become of texts: the model learns their labels, or it reads them alone, or it answers to each of
// them. Where it answers, texts may be empty, and blank lines of JSON lines or of a table with one column are
// empty texts, so that answers stand in the order of the lines.
enum class Wanted : uint8_t { labels, texts, answers };
// Throws a Failure that names the line: one without a text, or where labels are wanted without a label; a
// table without these columns.
std::vector<LabelledText> read_labelled(const DataSource& data, const LabelFields& fields, Wanted wanted);
// A line each, of any other file, blank ones too.
std::vector<LabelledText> read_lines(const DataSource& data);

// All labels that are there, each once: in the order of their numbers where all are numbers, else of their
// bytes.
std::vector<std::string> labels_of(std::span<const LabelledText> texts);

// Throws where all of these labels are numbers, and two of them the same one, such as "0" and "0.0". Warns of
// those that differ in case, or in blanks around them, alone.
void check_names(std::span<const std::string> names, const std::string& path);

// STW_TASK_*: what these labels are for. Words such as "nan" among numbers are refused. Throws a Failure that
// says how to ask for each meaning where they have several: numbers, unless they are whole ones, one for each
// text, without a gap between the smallest and the largest.
uint32_t task_of(std::span<const LabelledText> texts, const std::string& path);
// How many numbers each text has. Throws a Failure that names the line: of no number, and of one that has
// more or fewer than the first.
size_t numbers_of_each(std::span<const LabelledText> texts);

// As the file of a run has them, with the task (STW_TASK_*) where it is LABELS or NUMBER; the inverse throws
// a Failure that names `path`.
std::string labels_json(std::span<const std::string> names, uint32_t task);
struct LabelsOfRun {
  std::vector<std::string> names;
  std::string task;  // as labels_json has it; empty: LABEL or TOKEN_LABEL
};
LabelsOfRun labels_in(const std::string& json, const std::string& path);

// The tokens that a classifier sees of a text, or of two, with those that the tokenizer puts around them, cut
// to at most `most` tokens, special ones counted. An encoder sees all of them; a language model sees none
// past the one that it looks at, which is the last one that is not the padding token (transformers,
// …ForSequenceClassification). None of an empty text around which the tokenizer puts none. Throws a Failure
// where the model cannot take two texts.
struct SeenText {
  std::vector<int32_t> tokens, token_types;  // token_types: empty where all are 0
  bool is_cut;
};
SeenText tokens_of(const LabelledText& text, const Tokenization& tokenization, const stw_model_info& model,
                   uint64_t most);

// Logits of all labels for each of these texts, one text after the other; with `of_tokens` for each of their
// tokens.
std::vector<float> label_logits(stw_trainer* trainer, std::span<const SeenText> texts, size_t labels,
                                bool of_tokens = false);
inline constexpr size_t texts_at_once =
    256;  // texts of a call of label_logits; more calls show answers sooner

// The number of each text's label among `labels`, which are the model's; see label_examples.
std::vector<uint32_t> label_numbers(std::span<const LabelledText> texts, std::span<const std::string> labels);
// Of LABELS 1 for each of the model's labels that a text has and else 0, of NUMBER its numbers: texts ·
// labels of them; see label_examples.
std::vector<float> label_values(std::span<const LabelledText> texts, std::span<const std::string> labels,
                                uint32_t task);

// As documents, in this order. `labels`: the model's; a label is one of their names, or where no text has
// one, and none of the names is a number, all may be their numbers. Throws a Failure that names the line of a
// label that the model does not know, or that is not of the model's task.
Examples label_examples(std::span<const LabelledText> texts, std::span<const std::string> labels,
                        const Tokenization& tokenization, const stw_model_info& model, uint64_t sequence,
                        Order order);

}  // namespace command
