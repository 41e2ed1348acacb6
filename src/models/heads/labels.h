// A model's task and labels in a config.json, in transformers' terms: the class and problem_type.
#pragma once
#include <string>
#include <vector>

#include "planner/base/json.h"
#include "planner/base/result.h"
#include "planner/graph/head.h"

namespace stw {

inline constexpr size_t largest_label_count = 1 << 20;

// The class name in the config's "architectures", such as "BertForSequenceClassification"; empty without one.
std::string class_of(const Json& config);
struct ConfigHead {
  Task task = Task::language_model;
  std::vector<std::string> labels;  // by number; empty where the task has none
};
// Reads the task and the labels of the head. Errors: corrupt; unsupported_field for heads that are not
// supported.
Result<ConfigHead> read_head(const Json& config);
// Whether the config fixes the task of its labels. Without a problem_type transformers infers the task from
// the training data.
bool has_problem_type(const Json& config);
// Errors: bad_argument for fewer labels than the task needs, for too many, for an empty name, a name that is
// not UTF-8 or has a NUL, and for a name that appears twice.
Status check_labels(Task task, const std::vector<std::string>& names);
// The names of the two outputs of the task `spans`, in transformers' order.
const std::vector<std::string>& span_labels();
size_t least_labels(Task task);  // the fewest labels that a head for this task may have
// "LABEL_0", …: transformers' names for labels without names.
std::vector<std::string> unnamed_labels(size_t count);
// `class_name`: "Llama" in "LlamaForCausalLM". If the config gives no padding token, the end-of-text token
// becomes the padding token.
void write_labels(Json& config, const std::string& class_name, Task task,
                  const std::vector<std::string>& names, int64_t vocabulary);
// The padding token, which transformers skips to find a text's last token; -1: none.
int64_t padding_token(const Json& config, int64_t vocabulary);

}  // namespace stw
