// What a config.json says of a model's task and its labels, in the words of transformers: its class and problem_type.
#pragma once
#include <string>
#include <vector>

#include "planner/base/json.h"
#include "planner/base/result.h"
#include "planner/graph/task.h"

namespace stw {

inline constexpr size_t largest_label_count = 1 << 20;

// The class of transformers that the config names, or nothing.
std::string class_of(const Json& config);
struct Head {
  Task task = Task::language_model;
  std::vector<std::string> labels;   // by their number; none where the task has none
};
// Errors: corrupt; unsupported_field for heads that are not supported.
Result<Head> read_head(const Json& config);
// Whether the config itself says which task with labels it is. Without a problem_type transformers decides by what it is trained on.
bool says_task(const Json& config);
// Errors: bad_argument: fewer than the task needs, too many, one without a name or with one that is no text, one twice.
Status check_labels(Task task, const std::vector<std::string>& names);
size_t least_labels(Task task);   // that a head with labels has
// "LABEL_0", …: as transformers names those that have no name.
std::vector<std::string> unnamed_labels(size_t count);
// `class_name`: "Llama" of "LlamaForCausalLM". The end of text becomes what texts are padded with, where the config says nothing of that.
void write_labels(Json& config, const std::string& class_name, Task task, const std::vector<std::string>& names, int64_t vocabulary);
// What transformers pads texts with, so that it looks at a text's last token that is another one; -1: none.
int64_t padding_token(const Json& config, int64_t vocabulary);

}  // namespace stw
