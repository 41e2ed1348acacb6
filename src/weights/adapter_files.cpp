#include "src/weights/adapter_files.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "planner/base/python_json.h"
#include "src/files/file.h"
#include "src/models/file_names.h"
#include "src/models/heads/labels.h"
#include "src/weights/model.h"

namespace stw {

namespace {

constexpr uint64_t largest_labels = uint64_t{1} << 28;  // limit of bytes of labels.json
constexpr std::string_view wrapper = "base_model.model.";
// Values of task_type; PEFT has none for masked language models.
constexpr const char *of_texts = "SEQ_CLS", *of_tokens = "TOKEN_CLS", *of_spans = "QUESTION_ANS";

Error unsupported(const std::string& what) { return {Code::unsupported_field, what}; }

std::string lowered(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

// Refuses settings that change the numbers and have no equivalent here. Source: peft, tuners/lora/config.py.
Status refuse_others(const Json& json) {
  STW_ASSIGN(type, get_string(json, "peft_type"));
  if (type != "LORA") return unsupported("peft_type \"" + type + "\" is not supported");
  STW_ASSIGN(bias, get_string(json, "bias", "none"));
  if (bias != "none") return unsupported("bias \"" + bias + "\" is not supported");
  for (const char* key :
       {"use_dora", "lora_bias", "use_qalora", "use_bdlora", "rank_pattern", "alpha_pattern",
        "layer_replication", "target_parameters", "trainable_token_indices", "alora_invocation_tokens",
        "arrow_config", "kasa_config"}) {
    const Json* value = json.find(key);
    if (!value || value->is_null() || (value->as_bool() && !*value->as_bool())) continue;
    if ((value->is_array() && value->elements().empty()) || (value->is_object() && value->members().empty()))
      continue;
    return unsupported(std::string(key) + " is not supported");
  }
  // These initialisations change the base weights, or train only half of an adapter. PEFT ignores case in
  // some of them.
  if (const Json* begin = json.find("init_lora_weights"); begin && begin->is_string())
    for (const char* way : {"pissa", "olora", "corda", "loftq", "lora_ga", "mica"})
      if (lowered(*begin->as_string()).starts_with(way))
        return unsupported("init_lora_weights \"" + *begin->as_string() + "\" is not supported");
  return ok();
}

Status parse(const Json& json, AdapterConfig& config) {
  STW_TRY(refuse_others(json));
  Adapters& a = config.adapters;
  STW_ASSIGN(rank, get_int(json, "r", 8));
  STW_ASSIGN(alpha, get_double(json, "lora_alpha", 8.0));
  STW_ASSIGN(dropout, get_double(json, "lora_dropout", 0.0));
  STW_ASSIGN(stabilised, get_bool(json, "use_rslora", false));
  STW_ASSIGN(base, get_string(json, "base_model_name_or_path", ""));
  if (rank < 1) return unsupported("r is " + std::to_string(rank));
  if (const Json* modules = json.find("modules_to_save"))
    for (const Json& name : modules->elements()) {
      if (!name.as_string())
        return unsupported("modules_to_save " + to_string(*modules, 0) + " is not supported");
      config.saved_modules.push_back(*name.as_string());
    }
  a.rank = rank;
  a.alpha = alpha;
  a.dropout = dropout;
  a.rank_stabilised = stabilised;
  config.base = base;
  return ok();
}

// Parses labels.json, which adapter_labels_json writes.
Status parse_labels(const Json& json, AdapterConfig& config) {
  const Json* names = &json;
  if (json.is_object()) {
    STW_ASSIGN(name, get_string(json, "task"));
    const auto row =
        std::find_if(task_rows.begin(), task_rows.end(), [&](const TaskRow& r) { return name == r.name; });
    if (row == task_rows.end() || !row->has_labels())
      return Error{Code::unsupported_field, "task \"" + name + "\" is not supported"};
    config.task = static_cast<Task>(row - task_rows.begin());
    names = json.find("labels");
  }
  if (!names || !names->is_array()) return Error{Code::corrupt, "expected a list of strings"};
  for (const Json& name : names->elements()) {
    if (!name.as_string()) return Error{Code::corrupt, "expected a list of strings"};
    config.labels.push_back(*name.as_string());
  }
  if (config.labels.size() != config.label_count)
    return Error{Code::corrupt, "expected " + std::to_string(config.label_count) +
                                    " names, as many as the head has rows, found " +
                                    std::to_string(config.labels.size())};
  if (auto status = check_labels(config.task.value_or(Task::label), config.labels); !status)
    return Error{Code::corrupt, status.error().message};
  return ok();
}

// Whether PEFT's task_type allows a task.
bool is_for(const std::string& task_type, Task task) {
  if (task_type == of_texts) return task_row(task).of_text;
  if (task_type == of_spans) return task == Task::spans;
  return task_type != of_tokens || task == Task::token_label;
}

// Takes a head's number of labels from its shape, and the labels' names from labels.json.
Status find_labels(const std::string& folder, const std::vector<int64_t>& shape, AdapterConfig& config) {
  const std::string path = adapter_labels(folder);
  if (shape.size() != 2 || shape[0] < 1 || shape[0] > static_cast<int64_t>(largest_label_count))
    return corrupt(adapter_weights(folder), "expected a head for one label or more");
  config.label_count = static_cast<size_t>(shape[0]);
  if (config.task_type == of_spans) {
    if (config.label_count != span_labels().size())
      return corrupt(adapter_weights(folder), "expected a head with two outputs, start and end");
    config.task = Task::spans;
    config.labels = span_labels();
    return ok();
  }
  if (config.task_type == of_tokens) config.task = Task::token_label;
  // transformers treats a single output as regression.
  else if (config.label_count == 1) config.task = Task::number;
  if (!file_exists(path)) return ok();
  STW_ASSIGN(text, read_text(path, largest_labels));
  auto json = parse_python_json(text);
  if (!json) return corrupt(path, json.error().message);
  if (auto status = parse_labels(*json, config); !status)
    return Error{status.error().code, path + ": " + status.error().message};
  if (config.task && !is_for(config.task_type, *config.task))
    return corrupt(path, std::string("expected a task for task_type \"") + config.task_type +
                             "\" of adapter_config.json, found \"" + task_row(*config.task).name + "\"");
  return ok();
}

Error stray(const std::string& folder, const std::string& tensor) {
  return {Code::unsupported,
          adapter_weights(folder) + ": tensor " + tensor + " is none of a low-rank adapter of a matrix"};
}

// Finds the modules that have adapter tensors, which are the resolved target_modules, and the labels of a
// head.
Status find_targets(const std::string& folder, AdapterConfig& config) {
  Adapters& adapters = config.adapters;
  const std::string path = adapter_weights(folder);
  if (!file_exists(path) && file_exists(folder + "/adapter_model.bin"))
    return Error{
        Code::unsupported,
        folder + "/adapter_model.bin: weights of this format are not read; save them as safetensors"};
  STW_ASSIGN(reader, SafetensorsReader::open(path));
  std::set<std::string> targets;
  for (const SafetensorsInfo& t : reader.tensors()) {
    std::string_view name = t.name;
    if (name.starts_with(wrapper)) name.remove_prefix(wrapper.size());
    if (is_of_any_head(name)) {
      const std::string& task = config.task_type;
      if (!task.empty() && task != of_texts && task != of_tokens && task != of_spans &&
          task != "FEATURE_EXTRACTION")
        return Error{Code::unsupported_field,
                     adapter_config(folder) + ": task_type \"" + task + "\" with a head is not supported"};
      if (computes_label_logits(name)) STW_TRY(find_labels(folder, t.shape, config));
      config.head.emplace(name);
      continue;
    }
    const std::string_view low = low_suffix, high = high_suffix;
    if (!name.ends_with(low) && !name.ends_with(high)) return stray(folder, t.name);
    targets.insert(name_in_model(name.substr(0, name.size() - low.size())));
    static_assert(std::string_view(low_suffix).size() == std::string_view(high_suffix).size());
  }
  if (targets.empty()) return corrupt(path, "there are no adapters");
  adapters.targets.assign(targets.begin(), targets.end());
  return ok();
}

// Escapes a name for a regular expression.
std::string escaped(const std::string& name) {
  std::string expression;
  for (const char c : name) expression += c == '.' ? std::string("\\.") : std::string(1, c);
  return expression;
}

// The shortest ending of a module's name that no other matrix has.
std::string shortest_target(const std::string& module, const std::set<std::string>& others) {
  for (size_t dot = module.rfind('.'); dot != module.npos && dot > 0; dot = module.rfind('.', dot - 1)) {
    const std::string target = module.substr(dot + 1);
    if (std::none_of(others.begin(), others.end(),
                     [&](const std::string& other) { return names_module(target, other); }))
      return target;
  }
  return module;
}

// The value of target_modules: the last parts of the modules' names where these are unambiguous, else longer
// endings. Within a model for images and text, other parts have modules of the same names; a regular
// expression then gives the part as well.
Json target_modules(const Graph& graph, const ModelConfig& config) {
  std::set<std::string> modules, last, others;
  for (const Tensor& t : graph.tensors)
    if (t.adapter_of >= 0) modules.insert(module_name(graph.at(t.adapter_of)));
  for (const Tensor& t : graph.tensors)
    if (t.role == Role::parameter && t.shape.rank == 2 && t.adapter_of < 0 && !modules.count(module_name(t)))
      others.insert(module_name(t));
  for (const std::string& module : modules) last.insert(shortest_target(module, others));
  if (config.is_part) {
    if (std::any_of(last.begin(), last.end(),
                    [](const std::string& target) { return target.find('.') != target.npos; }))
      last = modules;
    std::string any;
    for (const std::string& name : last)
      any += (any.empty() ? "" : "|") + (last == modules ? escaped(name_for_adapters(config, name)) : name);
    return last == modules ? "(" + any + ")" : "(.*\\.)?language_model\\..*\\.(" + any + ")";
  }
  Json list = Json::array();
  for (const std::string& name : last) list.push(name);
  return list;
}

Json number(double x) {
  return x == std::floor(x) && std::abs(x) < 1e15 ? Json(static_cast<int64_t>(x)) : Json(x);
}

}  // namespace

bool holds_adapters(const std::string& folder) {
  return is_directory(folder) && file_exists(adapter_config(folder)) &&
         !file_exists(folder + "/model.safetensors") &&
         !file_exists(folder + "/model.safetensors.index.json");
}

Result<AdapterConfig> read_adapter_config(const std::string& folder) {
  const std::string path = adapter_config(folder);
  if (!is_directory(folder) || !file_exists(path))
    return Error{Code::io_error, folder + ": expected a folder of adapters, with an adapter_config.json"};
  const auto with_path = [&](Error e) {
    e.message = path + ": " + e.message;
    return e;
  };
  STW_ASSIGN(text, read_text(path, largest_config));
  auto json = parse_python_json(text);
  if (!json) return with_path(std::move(json.error()));
  if (!json->is_object()) return corrupt(path, "expected an object");
  AdapterConfig config;
  if (auto status = parse(*json, config); !status) return with_path(std::move(status.error()));
  auto task = get_string(*json, "task_type", "");
  if (!task) return with_path(std::move(task.error()));
  config.task_type = *task;
  STW_TRY(find_targets(folder, config));
  return config;
}

// Source: peft, PeftModelForSequenceClassification, …ForTokenClassification, …ForQuestionAnswering
const std::vector<std::string>& default_saved_modules(Task task) {
  static const std::vector<std::string> list{"classifier", "score"}, of_answers{"qa_outputs"};
  return task == Task::spans ? of_answers : list;
}

// A module matches if its name ends with one of these. Source: peft, utils/other.py, _set_trainable.
bool is_saved(const std::vector<std::string>& modules, std::string_view parameter) {
  for (size_t dot = parameter.rfind('.'); dot != parameter.npos && dot > 0;
       dot = parameter.rfind('.', dot - 1))
    for (const std::string& module : modules)
      if (parameter.substr(0, dot).ends_with(module)) return true;
  return false;
}

Status check_head(const std::string& folder, const AdapterConfig& found, const Graph& graph,
                  const ModelConfig& config) {
  if (!is_for(found.task_type, config.task))
    return Error{Code::unsupported_field, adapter_config(folder) + ": task_type \"" + found.task_type +
                                              "\" is not that of the model's task, " +
                                              task_row(config.task).name};
  for (const std::string& module : found.saved_modules) {
    bool is_of_other = false, is_known = is_saved(default_saved_modules(config.task), module + ".");
    for (const Tensor& t : graph.tensors) {
      if (t.role != Role::parameter || t.adapter_of >= 0 || !is_saved({module}, t.name)) continue;
      (is_of_head(config, t.name) ? is_known : is_of_other) = true;
    }
    if (is_of_other || !is_known)
      return Error{Code::unsupported_field,
                   adapter_config(folder) + ": modules_to_save \"" + module + "\" is not supported"};
  }
  for (const std::string& name : found.head)
    if (!is_of_head(config, name)) return stray(folder, name);
  return ok();
}

std::string adapter_tensor_name(const ModelConfig& config, const std::string& parameter) {
  return std::string(wrapper) + name_for_adapters(config, parameter);
}

const SafetensorsInfo* find_adapter(const SafetensorsReader& weights, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const std::string& in_file : {std::string(wrapper) + name, name})
      if (const SafetensorsInfo* found = weights.find(in_file)) return found;
  return nullptr;
}

Json adapter_labels_json(Task task, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push(name);
  if (!task_row(task).has_values()) return list;
  return Json::object().set("task", task_row(task).name).set("labels", std::move(list));
}

Json adapter_config_json(const Graph& graph, const ModelConfig& config, const std::string& base) {
  const Adapters& adapters = config.adapters;
  bool is_transposed = false;
  Json modules, task;
  if (graph.head.labels() > 0)
    for (const std::string& module : default_saved_modules(config.task)) modules.push(module);
  for (const Tensor& t : graph.tensors)
    if (t.of_adapters && t.adapter_of < 0 && t.name.ends_with(".weight") &&
        !(graph.head.labels() > 0 && is_saved(default_saved_modules(config.task), t.name)))
      modules.push(module_name(t));
  if (config.task != Task::masked_language_model)
    task = config.task == Task::token_label ? of_tokens
           : config.task == Task::spans     ? of_spans
           : graph.head.labels() > 0        ? of_texts
                                            : "CAUSAL_LM";
  for (const Op& op : graph.ops) is_transposed |= op.attributes.transposed;
  return Json::object()
      .set("peft_type", "LORA")
      .set("task_type", task)
      .set("base_model_name_or_path", base)
      .set("r", adapters.rank)
      .set("lora_alpha", number(adapters.alpha))
      .set("lora_dropout", adapters.dropout)
      .set("use_rslora", adapters.rank_stabilised)
      .set("use_dora", false)
      .set("bias", "none")
      .set("target_modules", target_modules(graph, config))
      .set("modules_to_save", modules)
      .set("fan_in_fan_out", is_transposed)
      .set("inference_mode", true);
}

}  // namespace stw
