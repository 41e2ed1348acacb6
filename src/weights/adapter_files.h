// Folders of low-rank adapters as Hugging Face's PEFT reads and writes them: adapter_config.json and adapter_model.safetensors.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/graph/graph.h"
#include "planner/base/json.h"
#include "planner/base/result.h"
#include "src/models/model.h"
#include "src/weights/safetensors.h"

namespace stw {

struct AdapterConfig {
  Adapters adapters;   // for exactly the modules that the folder has tensors of
  std::string base;    // the model's folder or name
  std::string task_type;   // PEFT's; may be empty
  size_t label_count = 0;            // of a head of labels in the folder; 0: it has none
  std::set<std::string> head;        // the head's parameters in the folder
  std::vector<std::string> saved_modules;   // "modules_to_save": what is trained whole; each names modules by how their names end
  std::vector<std::string> labels;   // their names; none where the folder does not know them
  std::optional<Task> task;          // of the head, where the folder says it
};

inline std::string adapter_config(const std::string& folder) { return folder + "/adapter_config.json"; }
inline std::string adapter_weights(const std::string& folder) { return folder + "/adapter_model.safetensors"; }

inline std::string adapter_labels(const std::string& folder) { return folder + "/labels.json"; }   // beside a head: ours, PEFT knows none

// Whether a path is a folder that has adapters and no weights of a model.
bool holds_adapters(const std::string& folder);
// Errors: io_error; corrupt; unsupported_field for what changes the numbers and is not known here; unsupported for weights that are
// no safetensors, and tensors that are not of such adapters.
Result<AdapterConfig> read_adapter_config(const std::string& folder);
// Whether modules to save name a parameter, as PEFT has it. Beside a classifier's adapters it trains what the default list names.
bool is_saved(const std::vector<std::string>& modules, std::string_view parameter);
const std::vector<std::string>& default_saved_modules();
// Refuses modules to save, and parameters in the folder, that are not of this model's head, and a task_type of another task.
Status check_head(const std::string& folder, const AdapterConfig& found, const Graph& graph, const ModelConfig& config);
// Of a parameter with one of these names; null where there is none.
const SafetensorsInfo* find_adapter(const SafetensorsReader& weights, const std::vector<std::string>& names);

// The name that a parameter's tensor has in such a file.
std::string adapter_tensor_name(const ModelConfig& config, const std::string& parameter);
// What labels.json has: a list of names, or of a task with values {"task": …, "labels": names}.
Json adapter_labels_json(Task task, const std::vector<std::string>& names);
// The text of adapter_config.json for the adapters of a graph, and what of its head is trained.
Json adapter_config_json(const Graph& graph, const ModelConfig& config, const std::string& base);

}  // namespace stw
