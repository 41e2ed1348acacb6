#include "src/models/labels.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "planner/utf8.h"

namespace stw {

namespace {

constexpr std::string_view classifier_suffix = "ForSequenceClassification";

bool is_text(std::string_view name) {
  if (name.find('\0') != name.npos) return false;
  for (size_t length; !name.empty(); name.remove_prefix(length))
    if ((length = utf8_sequence(name)) == 0) return false;
  return true;
}

Error corrupt(const std::string& what) { return {Code::corrupt, what}; }

// {"0": "card_arrival", …}, in any order.
Result<std::vector<std::string>> names_of(const Json& id2label) {
  const size_t count = id2label.members().size();
  std::vector<std::string> names(count);
  std::vector<bool> is_there(count);
  for (const auto& [key, value] : id2label.members()) {
    size_t id = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size() || id >= count || is_there[id])
      return corrupt("id2label: expected the numbers 0 to " + std::to_string(count - 1) + ", each once, found \"" + key + "\"");
    if (!value.as_string()) return corrupt("id2label: " + key + ": expected a string, found " + std::string(kind_name(value.kind())));
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

Result<std::vector<std::string>> read_labels(const Json& config) {
  std::vector<std::string> names;
  const std::string name = class_of(config);
  for (const char* other : {"ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"})
    if (name.ends_with(other)) return Error{Code::unsupported_field, "architectures: " + name + " is not supported"};
  if (!name.ends_with(classifier_suffix)) return names;
  STW_ASSIGN(problem, get_string(config, "problem_type", "single_label_classification"));
  if (problem != "single_label_classification") return Error{Code::unsupported_field, "problem_type \"" + problem + "\" is not supported"};
  if (find_present(config, "id2label")) {
    STW_ASSIGN(object, get_object(config, "id2label"));
    STW_ASSIGN(found, names_of(*object));
    names = std::move(found);
  } else {
    STW_ASSIGN(count, get_int(config, "num_labels", 2));   // Source: transformers, configuration_utils.py
    if (count < 0 || count > static_cast<int64_t>(largest_label_count)) return Error{Code::unsupported_field, "num_labels is " + std::to_string(count)};
    names = unnamed_labels(static_cast<size_t>(count));
  }
  if (names.size() == 1) return Error{Code::unsupported_field, "one label: a number that texts have (regression) is not supported"};
  if (auto status = check_labels(names); !status) return Error{Code::unsupported_field, status.error().message};
  return names;
}

Status check_labels(const std::vector<std::string>& names) {
  const auto wrong = [](const std::string& what) { return Error{Code::bad_argument, "labels: " + what}; };
  if (names.size() < 2 || names.size() > largest_label_count)
    return wrong("expected 2 to " + std::to_string(largest_label_count) + ", found " + std::to_string(names.size()));
  std::set<std::string_view> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return wrong("label " + std::to_string(i) + " has no name");
    if (!is_text(names[i])) return wrong("the name of label " + std::to_string(i) + " is not UTF-8, or has a zero byte");
    if (!seen.insert(names[i]).second) return wrong("\"" + names[i] + "\" is there twice");
  }
  return ok();
}

std::vector<std::string> unnamed_labels(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back("LABEL_" + std::to_string(i));
  return names;
}

void write_labels(Json& config, const std::string& class_name, const std::vector<std::string>& names, int64_t vocabulary) {
  Json::Object by_id, by_name;
  for (size_t i = 0; i < names.size(); ++i) {
    by_id.emplace_back(std::to_string(i), names[i]);
    by_name.emplace_back(names[i], i);
  }
  Json architectures = Json::array();
  architectures.push(class_name + std::string(classifier_suffix));
  config.set("architectures", std::move(architectures)).set("id2label", Json(std::move(by_id))).set("label2id", Json(std::move(by_name)));
  config.set("problem_type", "single_label_classification");
  config.erase("num_labels");
  // transformers looks at a row's last token that is not this one, and takes one row at a time where there is none.
  if (padding_token(config, vocabulary) >= 0) return;
  const Json* const end = config.find("eos_token_id");
  const Json* const first = !end ? nullptr : end->is_array() ? (end->elements().empty() ? nullptr : &end->elements()[0]) : end;
  if (const int64_t token = first && first->as_int() ? *first->as_int() : -1; token >= 0 && token < vocabulary) config.set("pad_token_id", token);
}

int64_t padding_token(const Json& config, int64_t vocabulary) {
  const Json* const found = config.find("pad_token_id");
  const int64_t token = found && found->as_int() ? *found->as_int() : -1;
  return token < vocabulary ? std::max<int64_t>(token, -1) : -1;
}

}  // namespace stw
