// The tasks that a model is trained for, and its head: the meaning of the outputs, the rows that have a
// target, and the loss. A task is a row of a table, so that code asks the row instead of comparing tasks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/contract/losses.h"

namespace stw {

using kernels::ValueLoss;

enum class Task : uint8_t {
  // Predict the next token. An encoder with this task has no head, and is not trained.
  language_model,
  masked_language_model,  // tokens that are hidden from the model
  label,                  // one label of a text
  labels,                 // any number of labels of a text
  number,                 // a number for a text, or several
  token_label,            // one label of each token
  spans,                  // the first and the last token of an answer in a text
};
inline constexpr size_t task_count = 7;

// What the loss compares a row of outputs with.
enum class Target : uint8_t {
  token,   // the index of a token
  label,   // the index of a label
  values,  // a number for each label
  span,    // a token of the text for each label, by its index
};

struct TaskRow {
  const char* name;          // in messages and flags
  const char* class_suffix;  // of transformers' class; null: several are possible
  const char* problem_type;  // in config.json; null: none
  Target target;
  bool of_text;         // a text has one row of outputs; else each token has one
  bool hides_tokens;    // the targets are tokens that the model does not see
  bool counts_hits;     // an evaluation counts correct outputs
  bool returns_logits;  // to the host (see below)
  ValueLoss value_loss = ValueLoss::binary_cross_entropy;  // if targets are values

  // Whether each output belongs to a label, which has a name. The numbers of the task `number` have names,
  // too.
  bool has_labels() const { return target != Target::token; }
  // Whether the targets of a text are numbers, one for each label, in place of one label.
  bool has_values() const { return target == Target::values || target == Target::span; }
  // Whether a text has one target, as opposed to each of its tokens.
  bool has_targets_of_texts() const { return of_text || target == Target::span; }
  bool has_outputs_of_tokens() const { return has_labels() && !of_text; }
  bool has_labels_of_tokens() const { return target == Target::label && !of_text; }
};
// A masked language model returns no logits: it has one for each token of the vocabulary in every row. Kept
// for all rows at once, they would take more memory than training does.
inline constexpr std::array<TaskRow, task_count> task_rows{{
    {.name = "language-model",
     .class_suffix = nullptr,
     .problem_type = nullptr,
     .target = Target::token,
     .of_text = false,
     .hides_tokens = false,
     .counts_hits = false,
     .returns_logits = true},
    {.name = "masked-language-model",
     .class_suffix = "ForMaskedLM",
     .problem_type = nullptr,
     .target = Target::token,
     .of_text = false,
     .hides_tokens = true,
     .counts_hits = true,
     .returns_logits = false},
    {.name = "label",
     .class_suffix = "ForSequenceClassification",
     .problem_type = "single_label_classification",
     .target = Target::label,
     .of_text = true,
     .hides_tokens = false,
     .counts_hits = true,
     .returns_logits = true},
    {.name = "labels",
     .class_suffix = "ForSequenceClassification",
     .problem_type = "multi_label_classification",
     .target = Target::values,
     .of_text = true,
     .hides_tokens = false,
     .counts_hits = true,
     .returns_logits = true},
    {.name = "number",
     .class_suffix = "ForSequenceClassification",
     .problem_type = "regression",
     .target = Target::values,
     .of_text = true,
     .hides_tokens = false,
     .counts_hits = false,
     .returns_logits = true,
     .value_loss = ValueLoss::squared_error},
    {.name = "token-label",
     .class_suffix = "ForTokenClassification",
     .problem_type = nullptr,
     .target = Target::label,
     .of_text = false,
     .hides_tokens = false,
     .counts_hits = true,
     .returns_logits = true},
    {.name = "spans",
     .class_suffix = "ForQuestionAnswering",
     .problem_type = nullptr,
     .target = Target::span,
     .of_text = false,
     .hides_tokens = false,
     .counts_hits = false,
     .returns_logits = true},
}};
inline const TaskRow& task_row(Task task) { return task_rows[static_cast<size_t>(task)]; }

// The rows of a document that have a target of the document.
enum class TargetRow : uint8_t { last, first, every };

struct Head {
  Task task = Task::language_model;
  int64_t outputs = 0;  // numbers in a row of logits: one for each token of the vocabulary, or for each label
  TargetRow target_row = TargetRow::every;
  bool generates = true;  // attention is causal, and outputs are tokens or belong to the last one

  const TaskRow& row() const { return task_row(task); }
  int64_t labels() const { return row().has_labels() ? outputs : 0; }
};

}  // namespace stw
