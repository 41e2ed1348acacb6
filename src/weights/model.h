// A model as the host gives it: its configuration and the source of its weights.
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

// Limit of bytes of a config.json, which may name a million labels.
constexpr uint64_t largest_config = 1 << 28;

struct ModelSource {
  std::string source;  // folder, config.json or preset; empty: config_json
  std::string config_json;
  std::string weights;  // file or folder; empty: the source's own, if any
  uint64_t seed = 1337;
  std::optional<float> dropout;
  Adapters adapters;    // new adapters
  std::string adapter;  // or a folder of adapters
  // nullopt: Task::label if the host gives labels and the config has none, otherwise the config's task
  std::optional<Task> task;
  size_t label_count = 0;           // labels of the head that the model gets; 0: as in the config
  std::vector<std::string> labels;  // the labels' names; none: the model's own, else LABEL_0, …
  bool new_head = false;            // replaces the model's labels; needs label_count
};

class Model {
 public:
  // Errors: see stw_model_create.
  static Result<std::shared_ptr<const Model>> open(const ModelSource& source);
  explicit Model(ModelConfig config) : config_(std::move(config)) {}  // for open()

  const ModelConfig& config() const { return config_; }
  // A graph of the model in fp32, for its parameters' names and shapes. parameters(): the tensors that own
  // bytes, so that tied ones count once.
  const Graph& graph() const { return graph_; }
  const std::vector<int>& parameters() const { return parameters_; }
  bool has_weights() const { return weights_.has_value(); }
  bool has_drawn_head() const;                      // random, although the other weights come from files
  bool has_codes() const { return !nf4_.empty(); }  // whether its files hold 4-bit matrices
  uint64_t seed() const { return seed_; }
  int64_t layers_in_files() const { return layers_in_files_; }  // 0: there are no files
  // The base model's name in an adapters' folder: an absolute path, or a preset; empty if unknown.
  const std::string& base() const { return base_; }
  // The preset that the model was made from, with random weights; empty if it was not.
  const std::string& preset() const { return preset_ ? preset_->source : no_preset_; }
  // This model with another preset in place of preset(). Errors: those of open().
  Result<std::shared_ptr<const Model>> of_preset(const std::string& name) const;
  // The configuration with new adapters of this rank for all matrices. Errors: those of build_forward().
  Result<ModelConfig> config_with_adapters(int64_t rank) const;

  // Reads `count` elements of a parameter from element `first`, as fp32, from the files or drawn from the
  // seed. Rows are in the graph's order (WeightLayout). Allocates nothing.
  Status read(const Tensor& parameter, uint64_t first, uint64_t count, float* out) const;
  // Whether the files hold the parameter as nf4 codes. read_codes() reads these and their scales; `first`
  // must begin a block.
  bool holds_codes(const Tensor& parameter) const { return nf4_.count(parameter.name) > 0; }
  Status read_codes(const Tensor& parameter, uint64_t first, uint64_t count, uint8_t* codes,
                    float* scales) const;
  // The names of a parameter in the file of a whole model.
  std::vector<std::string> names_in_folder(const std::string& parameter) const;
  // Whether its weights come from this folder.
  bool reads_from(const std::string& folder) const;
  // The parameter's dtype in its file, or the dtype that its codes were made from; fp32 where it comes from
  // no file.
  TensorDType dtype_of(const Tensor& parameter) const;

 private:
  // Checks that the files have every parameter with its shape. `head_of_adapters`: parameters that may be
  // missing, as the adapters' folder has them.
  Status check_weights(const std::set<std::string>& head_of_adapters);
  // Whether a file holds this parameter under any of its names.
  bool holds(const SafetensorsReader& file, std::string_view parameter) const;
  // Takes over a masked-language-model head from the adapters' folder. Errors: those of set_masked.
  Status take_masked_head(const ModelSource& source, const std::set<std::string>& head);
  // The head's parameters that are frozen while adapters are trained. `found`: the adapters' folder; null for
  // new adapters.
  Result<std::set<std::string>> find_frozen_head(const std::string& folder, const AdapterConfig* found) const;
  Status freeze_head(const std::string& folder, const AdapterConfig* found);
  // The parameter's entry in the adapters' folder; null where it comes from elsewhere.
  const SafetensorsInfo* find_in_adapters(const Tensor& parameter) const;
  bool is_drawn(const Tensor& parameter) const;  // from the seed
  Status open_adapters(const std::string& folder);
  static Status check_shape(const SafetensorsReader& file, const Tensor& parameter,
                            const SafetensorsInfo& found, const std::vector<int64_t>& shape);
  static Status check_weight(const SafetensorsReader& file, const Tensor& parameter,
                             const SafetensorsInfo& found);
  const SafetensorsInfo* find_tied(const Tensor& parameter) const;
  static Status read_weight(const SafetensorsReader& file, const SafetensorsInfo& info,
                            const Tensor& parameter, uint64_t first, uint64_t count, float* out);
  static Status read_values(const SafetensorsReader& file, const SafetensorsInfo& info, uint64_t first,
                            uint64_t count, float* out);
  const SafetensorsInfo* find_weight(const std::string& name) const;

  ModelConfig config_;
  Graph graph_;
  std::vector<int> parameters_;
  std::optional<SafetensorsReader> weights_, adapter_weights_;
  // Entries of these files by the graph's names of the tensors, so that reading allocates nothing.
  std::map<std::string, const SafetensorsInfo*> in_weights_, in_adapters_;
  std::map<std::string, Nf4Weight> nf4_;  // by parameter; from weights_
  bool has_new_head_ = false;             // the head is not the config's; it is drawn where files lack it
  bool draws_logits_ = false;  // the head's last matrix and its bias are drawn, also where files have them
  int64_t layers_in_files_ = 0;
  std::string base_;
  std::optional<ModelSource> preset_;
  std::string no_preset_;
  uint64_t seed_ = 1337;
};

}  // namespace stw
