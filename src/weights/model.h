// A model as the host handed it over: its configuration, and where its weights come from.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "src/models/model.h"
#include "src/weights/nf4_weights.h"
#include "src/weights/safetensors.h"

namespace stw {

struct AdapterConfig;

constexpr uint64_t largest_config = 1 << 28;   // bytes of a config.json, which may name a million labels

struct ModelSource {
  std::string source;                 // folder, config.json or preset; empty: config_json
  std::string config_json;
  std::string weights;                // file or folder; empty: the source's own, if any
  uint64_t seed = 1337;
  std::optional<float> dropout;
  Adapters adapters;                  // new ones
  std::string adapter;                // or those in this folder
  std::optional<Task> task;           // none: with labels that of the config, if it has labels, else Task::label
  size_t label_count = 0;             // gives the model a head for labels; 0: as the config says
  std::vector<std::string> labels;    // their names; none: the model's own, else LABEL_0, …
};

class Model {
 public:
  // Errors: see stw_model_create.
  static Result<std::shared_ptr<const Model>> open(const ModelSource& source);

  const ModelConfig& config() const { return config_; }
  // Parameters with names and shapes, tied ones once; fp32, of the longest sequence.
  const Graph& graph() const { return graph_; }
  const std::vector<int>& parameters() const { return parameters_; }
  bool has_weights() const { return weights_.has_value(); }
  bool has_drawn_head() const;   // although its other weights come from files
  bool has_codes() const { return !nf4_.empty(); }   // whether its files hold matrices in 4 bits
  uint64_t seed() const { return seed_; }
  // What adapters were made for, as a folder of them names it: an absolute path, or a preset; empty where nobody knows.
  const std::string& base() const { return base_; }

  // Values of `count` elements of a parameter from element `first`, in fp32, from the files or from the seed, in the graph's order of rows
  // (WeightLayout). Takes no memory.
  Status read(const Tensor& parameter, uint64_t first, uint64_t count, float* out) const;
  // Whether files hold the parameter as nf4 codes; and these, with their scales, from an element on that begins a block.
  bool holds_codes(const Tensor& parameter) const { return nf4_.count(parameter.name) > 0; }
  Status read_codes(const Tensor& parameter, uint64_t first, uint64_t count, uint8_t* codes, float* scales) const;
  // Whether its weights come from this folder.
  bool reads_from(const std::string& folder) const;
  // What a file that this parameter comes from stores it as, or has made its codes of; fp32 where it comes from none.
  TensorDType dtype_of(const Tensor& parameter) const;

 private:
  Status check_weights(const std::set<std::string>& head_of_adapters);   // names in their folder
  // Whether a file holds this parameter under any of its names.
  bool holds(const SafetensorsReader& file, std::string_view parameter) const;
  // What a head in the adapters' folder says of the model's own. Errors: those of set_masked.
  Status take_masked_head(const ModelSource& source, const std::set<std::string>& head);
  // Which parameters of a new or another's head are frozen beside adapters. `found`: what their folder says; null for new ones.
  Status find_frozen_head(const std::string& folder, const AdapterConfig* found);
  // What the adapters' folder holds of a parameter; null where that is elsewhere.
  const SafetensorsInfo* find_in_adapters(const Tensor& parameter) const;
  bool is_drawn(const Tensor& parameter) const;   // from the seed
  Status open_adapters(const std::string& folder);
  static Status check_shape(const SafetensorsReader& file, const Tensor& parameter, const SafetensorsInfo& found, const std::vector<int64_t>& shape);
  static Status check_weight(const SafetensorsReader& file, const Tensor& parameter, const SafetensorsInfo& found);
  const SafetensorsInfo* find_tied(const Tensor& parameter) const;
  static Status read_weight(const SafetensorsReader& file, const SafetensorsInfo& info, const Tensor& parameter, uint64_t first, uint64_t count, float* out);
  static Status read_values(const SafetensorsReader& file, const SafetensorsInfo& info, uint64_t first, uint64_t count, float* out);
  const SafetensorsInfo* find_weight(const std::string& name) const;

  ModelConfig config_;
  Graph graph_;
  std::vector<int> parameters_;
  std::optional<SafetensorsReader> weights_, adapter_weights_;
  // Where tensors of the graph lie in them, by their own names: what reads takes no memory.
  std::map<std::string, const SafetensorsInfo*> in_weights_, in_adapters_;
  std::map<std::string, Nf4Weight> nf4_;   // by parameter, of weights_
  bool has_new_head_ = false;              // although there are weights
  std::string base_;
  uint64_t seed_ = 1337;
};

}  // namespace stw
