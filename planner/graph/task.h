// The tasks that a model is trained for: the meaning of its outputs, and the tokens of a sample that have a
// target.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace stw {

enum class Task : uint8_t {
  // Predict the next token. An encoder with this task has no head, and is not trained.
  language_model,
  masked_language_model,  // tokens that are hidden from the model
  label,                  // one label of a text
  labels,                 // any number of labels of a text
  number,                 // a number for a text, or several
  token_label,            // one label of each token
};
inline constexpr size_t task_count = 6;

struct TaskRow {
  const char* name;          // in messages and flags
  const char* class_suffix;  // of transformers' class; null: several are possible
  const char* problem_type;  // in config.json; null: none
};
inline constexpr std::array<TaskRow, task_count> task_rows{{
    {"language-model", nullptr, nullptr},
    {"masked-language-model", "ForMaskedLM", nullptr},
    {"label", "ForSequenceClassification", "single_label_classification"},
    {"labels", "ForSequenceClassification", "multi_label_classification"},
    {"number", "ForSequenceClassification", "regression"},
    {"token-label", "ForTokenClassification", nullptr},
}};
inline const TaskRow& task_row(Task task) { return task_rows[static_cast<size_t>(task)]; }
// Whether each output belongs to a label, which has a name. The outputs of the task `number` have names, too.
inline bool has_labels(Task task) { return task >= Task::label; }
// Whether a target has a value for each label, instead of the index of one label.
inline bool has_values(Task task) { return task == Task::labels || task == Task::number; }
// Whether a text has one row of outputs.
inline bool is_of_text(Task task) { return task >= Task::label && task <= Task::number; }

}  // namespace stw
