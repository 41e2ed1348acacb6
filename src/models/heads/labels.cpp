#include "src/models/heads/labels.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "planner/base/utf8.h"

namespace stw {

namespace {

bool is_text(std::string_view name) {
  if (name.find('\0') != name.npos) return false;
  for (size_t length; !name.empty(); name.remove_prefix(length))
    if ((length = utf8_length(name)) == 0) return false;
  return true;
}

Error corrupt_labels(const std::string& what) { return {Code::corrupt, what}; }

// Parses {"0": "card_arrival", …}; the entries have any order.
Result<std::vector<std::string>> names_of(const Json& id2label) {
  const size_t count = id2label.members().size();
  std::vector<std::string> names(count);
  std::vector<bool> is_there(count);
  for (const auto& [key, value] : id2label.members()) {
    size_t id = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size() || id >= count || is_there[id])
      return corrupt_labels("id2label: expected the numbers 0 to " + std::to_string(count - 1) +
                            ", each once, found \"" + key + "\"");
    if (!value.as_string())
      return corrupt_labels("id2label: " + key + ": expected a string, found " +
                            std::string(kind_name(value.kind())));
    names[id] = *value.as_string();
    is_there[id] = true;
  }
  return names;
}

}  // namespace

std::string class_of(const Json& config) {
  const Json* const list = config.find("architectures");
  if (!list || list->elements().empty() || !list->elements()[0].as_string()) return {};
  return *list->elements()[0].as_string();
}

namespace {

// The task of a classifier of texts. Without a problem_type one output means regression. Source:
// transformers, the families' …ForSequenceClassification.
Result<Task> task_of_texts(const Json& config, size_t labels) {
  if (!has_problem_type(config)) return labels == 1 ? Task::number : Task::label;
  STW_ASSIGN(problem, get_string(config, "problem_type", ""));
  for (const Task task : {Task::label, Task::labels, Task::number})
    if (problem == task_row(task).problem_type) return task;
  return Error{Code::unsupported_field, "problem_type \"" + problem + "\" is not supported"};
}

}  // namespace

bool has_problem_type(const Json& config) {
  return !class_of(config).ends_with(task_row(Task::label).class_suffix) ||
         find_present(config, "problem_type");
}

size_t least_labels(Task task) { return task == Task::labels || task == Task::number ? 1 : 2; }

const std::vector<std::string>& span_labels() {
  static const std::vector<std::string> names{"start", "end"};
  return names;
}

// The config of a model that finds answers may give its two outputs names, or their number.
static Status check_span_outputs(const Json& config) {
  STW_ASSIGN(count, get_int(config, "num_labels", 2));
  size_t outputs = static_cast<size_t>(count);
  if (find_present(config, "id2label")) {
    STW_ASSIGN(object, get_object(config, "id2label"));
    outputs = object->members().size();
  }
  if (outputs == span_labels().size()) return ok();
  return Error{Code::unsupported_field, "num_labels is " + std::to_string(outputs) +
                                            ", expected 2: the first and the last token of an answer"};
}

Result<ConfigHead> read_head(const Json& config) {
  ConfigHead head;
  const std::string name = class_of(config);
  for (const char* other : {"ForMultipleChoice", "ForNextSentencePrediction"})
    if (name.ends_with(other))
      return Error{Code::unsupported_field, "architectures: " + name + " is not supported"};
  if (name.ends_with(task_row(Task::masked_language_model).class_suffix)) {
    head.task = Task::masked_language_model;
    return head;
  }
  if (name.ends_with(task_row(Task::spans).class_suffix)) {
    STW_TRY(check_span_outputs(config));
    head.task = Task::spans;
    head.labels = span_labels();
    return head;
  }
  const bool is_of_tokens = name.ends_with(task_row(Task::token_label).class_suffix);
  if (!is_of_tokens && !name.ends_with(task_row(Task::label).class_suffix)) return head;
  if (find_present(config, "id2label")) {
    STW_ASSIGN(object, get_object(config, "id2label"));
    STW_ASSIGN(found, names_of(*object));
    head.labels = std::move(found);
  } else {
    STW_ASSIGN(count, get_int(config, "num_labels", 2));  // Default of transformers, configuration_utils.py.
    if (count < 0 || count > static_cast<int64_t>(largest_label_count))
      return Error{Code::unsupported_field, "num_labels is " + std::to_string(count)};
    head.labels = unnamed_labels(static_cast<size_t>(count));
  }
  if (is_of_tokens) {
    head.task = Task::token_label;
  } else {
    STW_ASSIGN(task, task_of_texts(config, head.labels.size()));
    head.task = task;
  }
  if (auto status = check_labels(head.task, head.labels); !status)
    return Error{Code::unsupported_field, status.error().message};
  return head;
}

Status check_labels(Task task, const std::vector<std::string>& names) {
  const auto wrong = [](const std::string& what) { return Error{Code::bad_argument, "labels: " + what}; };
  if (names.size() < least_labels(task) || names.size() > largest_label_count)
    return wrong("expected " + std::to_string(least_labels(task)) + " to " +
                 std::to_string(largest_label_count) + ", found " + std::to_string(names.size()));
  if (task == Task::spans && names != span_labels())
    return wrong("the task spans has the labels start and end; no others are possible");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return wrong("label " + std::to_string(i) + " has no name");
    if (!is_text(names[i]))
      return wrong("the name of label " + std::to_string(i) + " is not UTF-8, or has a zero byte");
    if (!seen.insert(names[i]).second) return wrong("\"" + names[i] + "\" is there twice");
  }
  return ok();
}

std::vector<std::string> unnamed_labels(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("LABEL_" + std::to_string(i));
  return names;
}

void write_labels(Json& config, const std::string& class_name, Task task,
                  const std::vector<std::string>& names, int64_t vocabulary) {
  Json architectures = Json::array();
  architectures.push(class_name + task_row(task).class_suffix);
  config.set("architectures", std::move(architectures));
  if (task == Task::spans) {  // transformers' default is two outputs
    for (const char* key : {"id2label", "label2id", "problem_type", "num_labels"}) config.erase(key);
    return;
  }
  Json::Object by_id, by_name;
  for (size_t i = 0; i < names.size(); ++i) {
    by_id.emplace_back(std::to_string(i), names[i]);
    by_name.emplace_back(names[i], i);
  }
  config.set("id2label", Json(std::move(by_id))).set("label2id", Json(std::move(by_name)));
  if (const char* type = task_row(task).problem_type) config.set("problem_type", type);
  else config.erase("problem_type");
  config.erase("num_labels");
  // transformers reads a row's last token that is not padding. Without a padding token it accepts only one
  // row at a time.
  if (!task_row(task).of_text || padding_token(config, vocabulary) >= 0) return;
  const Json* const end = config.find("eos_token_id");
  const Json* const first = !end              ? nullptr
                            : end->is_array() ? (end->elements().empty() ? nullptr : &end->elements()[0])
                                              : end;
  if (const int64_t token = first && first->as_int() ? *first->as_int() : -1;
      token >= 0 && token < vocabulary)
    config.set("pad_token_id", token);
}

int64_t padding_token(const Json& config, int64_t vocabulary) {
  const Json* const found = config.find("pad_token_id");
  const int64_t token = found && found->as_int() ? *found->as_int() : -1;
  return token < vocabulary ? std::max<int64_t>(token, -1) : -1;
}

}  // namespace stw
