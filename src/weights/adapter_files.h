// Folders of low-rank adapters in the format of Hugging Face's PEFT: adapter_config.json and
// adapter_model.safetensors.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/json.h"
#include "planner/base/result.h"
#include "planner/graph/graph.h"
#include "src/models/model.h"
#include "src/weights/safetensors.h"

namespace stw {

struct AdapterConfig {
  Adapters adapters;           // exactly the modules that have tensors in the folder
  std::string base;            // folder or name of the base model
  std::string task_type;       // PEFT's; may be empty
  size_t label_count = 0;      // rows of a label head in the folder; 0: it has no label head
  std::set<std::string> head;  // parameters of a head in the folder
  // "modules_to_save": modules trained in full, given by endings of their names
  std::vector<std::string> saved_modules;
  std::vector<std::string> labels;  // the labels' names; empty where the folder does not give them
  std::optional<Task> task;         // the head's task, where the folder gives it
};

inline std::string adapter_config(const std::string& folder) { return folder + "/adapter_config.json"; }
inline std::string adapter_weights(const std::string& folder) {
  return folder + "/adapter_model.safetensors";
}

// Labels of a head. This file is Stowage's own; PEFT has none.
inline std::string adapter_labels(const std::string& folder) { return folder + "/labels.json"; }

// Whether a path is a folder with adapters and without a model's weights.
bool holds_adapters(const std::string& folder);
// Errors: io_error; corrupt; unsupported_field for unknown settings that change the numbers; unsupported for
// weights that are not safetensors, and for tensors that are not of low-rank adapters.
Result<AdapterConfig> read_adapter_config(const std::string& folder);
// is_saved(): whether a parameter belongs to one of these modules, by PEFT's rule for modules_to_save.
// default_saved_modules(): the modules that PEFT always trains with a classifier's adapters.
bool is_saved(const std::vector<std::string>& modules, std::string_view parameter);
const std::vector<std::string>& default_saved_modules(Task task);
// Refuses a folder whose task_type belongs to another task, whose modules to save are not of this model's
// head, or whose head has parameters that this model's head lacks.
Status check_head(const std::string& folder, const AdapterConfig& found, const Graph& graph,
                  const ModelConfig& config);
// The tensor of a parameter with one of these names; null where there is none.
const SafetensorsInfo* find_adapter(const SafetensorsReader& weights, const std::vector<std::string>& names);

// The name of a parameter's tensor in adapter_model.safetensors.
std::string adapter_tensor_name(const ModelConfig& config, const std::string& parameter);
// The contents of labels.json: a list of names, or for a task with values {"task": …, "labels": names}.
Json adapter_labels_json(Task task, const std::vector<std::string>& names);
// The contents of adapter_config.json for a graph's adapters and the trained parts of its head.
Json adapter_config_json(const Graph& graph, const ModelConfig& config, const std::string& base);

}  // namespace stw
