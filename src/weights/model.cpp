#include "src/weights/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/elementary.h"
#include "src/base/hash.h"
#include "src/base/numbers.h"
#include "src/base/random.h"
#include "src/files/file_kind.h"
#include "src/models/file_names.h"
#include "src/models/heads/labels.h"
#include "src/weights/absent_weights.h"
#include "src/weights/adapter_files.h"
#include "src/weights/stray_tensors.h"

namespace stw {

namespace {

constexpr uint64_t converted_at_once = 4096;  // elements; on the stack

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

std::vector<int64_t> dims(const Shape& shape) {
  return {shape.dims.begin(), shape.dims.begin() + shape.rank};
}

// Draws normal values of mean 0, a function of (seed, parameter, element). Box-Muller on Philox, four
// elements a draw.
void draw_normal(uint64_t seed, uint64_t parameter, uint64_t first, uint64_t count, double std, float* out) {
  constexpr double pi2 = 6.283185307179586, unit = 1.0 / 4294967296.0;
  for (uint64_t i = 0; i < count;) {
    const uint64_t group = (first + i) / 4;
    const auto words =
        philox(seed, {static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
                      static_cast<uint32_t>(parameter), static_cast<uint32_t>(parameter >> 32)});
    double values[4];
    for (size_t pair = 0; pair < 2; ++pair) {
      const double radius = std::sqrt(-2 * portable_log((words[2 * pair] + 0.5) * unit));
      const double angle = pi2 * (words[2 * pair + 1] * unit);
      values[2 * pair] = radius * portable_cos(angle);
      values[2 * pair + 1] = radius * portable_sin(angle);
    }
    for (uint64_t lane = (first + i) % 4; lane < 4 && i < count; ++lane, ++i)
      out[i] = static_cast<float>(values[lane] * std);
  }
}

// Sets the rate in the config's JSON too: where the key is missing, readers assume a default that may not be
// 0.
void set_dropout(ModelConfig& config, float rate) {
  for (const DropoutRate& dropout : architecture_of(config).dropouts) {
    config.*dropout.rate = rate;
    config.json.set(dropout.key, as_written(rate));
  }
}

struct WithBase {
  ModelSource source;
  AdapterConfig adapters;  // read from the source's folder of adapters, if it has one
};

// Completes the source: a folder of adapters names the model that they were made for.
Result<WithBase> with_base(ModelSource source) {
  if (source.adapter.empty() && is_directory(source.source) && file_exists(adapter_config(source.source))) {
    if (!holds_adapters(source.source))
      return Error{
          Code::bad_argument,
          source.source +
              ": holds a model's weights and adapters; which of them is meant? Move one of them away"};
    source.adapter = std::exchange(source.source, {});
  }
  const bool any = source.adapters.any() || !source.adapter.empty();
  if (any && !source.weights.empty())
    return Error{
        Code::bad_argument,
        source.weights +
            ": adapters name their model by the folder of its config.json, where its weights must be, too"};
  if (holds_adapters(source.weights))
    return Error{Code::bad_argument, source.weights + ": holds adapters (--adapter), not a model's weights"};
  if (source.adapter.empty()) return WithBase{std::move(source), {}};
  if (source.new_head)
    return Error{Code::bad_argument, source.adapter + ": has a head, which a new one (new_head) contradicts"};
  if (source.adapters.any())
    return Error{Code::bad_argument, source.adapter + ": has adapters; a rank for new ones contradicts that"};
  STW_ASSIGN(found, read_adapter_config(source.adapter));
  source.adapters = found.adapters;
  if (found.label_count > 0) {
    const bool same = source.label_count == found.label_count &&
                      (source.labels.empty() || found.labels.empty() || source.labels == found.labels);
    if (source.label_count > 0 && !same)
      return Error{Code::bad_argument, source.adapter + ": has a head for " +
                                           std::to_string(found.label_count) + " labels, but " +
                                           std::to_string(source.label_count) + " were given"};
    if (source.task && found.task && *source.task != *found.task)
      return Error{Code::bad_argument, source.adapter + ": has a head for the task " +
                                           task_row(*found.task).name + "; " + task_row(*source.task).name +
                                           " was given"};
    if (found.task) source.task = found.task;
    source.label_count = found.label_count;
    if (!found.labels.empty()) source.labels = found.labels;
  }
  const auto nowhere = [&](const std::string& what) {
    return Error{Code::io_error,
                 source.adapter + ": " + what +
                     "; name the model itself, and this folder as its adapters (--model and --adapter)"};
  };
  if (source.source.empty() && source.config_json.empty()) {
    if (found.base.empty())
      return nowhere("its adapter_config.json names no model (base_model_name_or_path)");
    const std::string relative = source.adapter + "/" + found.base;
    source.source = found.base[0] != '/' && is_directory(relative) ? relative : found.base;
    if (!file_exists(source.source) && !is_directory(source.source))
      return nowhere("its model, \"" + found.base + "\", is no folder here");
  }
  if (holds_adapters(source.source))
    return nowhere("its model, " + source.source + ", is a folder of adapters too");
  return WithBase{std::move(source), std::move(found)};
}

// Refuses weights that are neither numbers nor codes of a known format.
Status check_quantization(const Json& config, const std::string& origin) {
  const Json* const quantization = find_present(config, "quantization_config");
  if (!quantization) return ok();
  const auto text = [&](const char* key, const char* absent) {
    const Json* const value = quantization->find(key);
    return value && value->as_string() ? *value->as_string() : std::string(absent);
  };
  const Json* const four_bits = quantization->find("load_in_4bit");
  const std::string method = text("quant_method", ""), type = text("bnb_4bit_quant_type", "fp4");
  const bool is_in_4_bits = four_bits && four_bits->as_bool() && *four_bits->as_bool(),
             is_ours = method == "bitsandbytes";
  if (is_ours && is_in_4_bits && type == "nf4") return ok();
  return Error{Code::unsupported_field, origin + ": its quantization_config, \"" + method + "\"" +
                                            (!is_ours       ? ""
                                             : is_in_4_bits ? " with quant_type \"" + type + "\""
                                                            : " in 8 bits") +
                                            ", is not supported: expected weights as numbers, or those of "
                                            "bitsandbytes in 4 bits with quant_type \"nf4\""};
}

// Checks the requested task and number of labels against the config.
Status check_task(Task task, size_t label_count, const ModelConfig& config, const std::string& origin) {
  const std::string name = task_row(task).name;
  const auto wrong = [&](const std::string& what) { return Error{Code::bad_argument, origin + ": " + what}; };
  if (task == Task::spans) return ok();  // set_labels() checks the rest
  if (task_row(task).has_labels())
    return label_count > 0 || !config.labels.empty()
               ? ok()
               : Status(wrong("the task " + name +
                              " needs labels (label_count, --labels), and the model has none"));
  if (label_count > 0)
    return wrong("the task " + name + " has no labels, and " + std::to_string(label_count) + " were given");
  if (!config.labels.empty())
    return wrong("the model's task is " + std::string(task_row(config.task).name) + "; " + name +
                 " was given");
  return ok();
}

bool holds_any(const std::set<std::string>& head, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return head.count(name) > 0; });
}

Result<std::string> read_config(const ModelSource& source, std::string& origin, std::string& weights) {
  if (source.source.empty()) {
    origin = "config";
    return source.config_json;
  }
  std::string path = source.source;
  if (!file_exists(path) && !is_directory(path)) {
    if (const char* preset = find_preset(path)) {
      origin = "preset " + path;
      return std::string(preset);
    }
    std::string names;
    for (size_t i = 0; preset_name(i); ++i) names += std::string(i ? ", " : "") + preset_name(i);
    return Error{Code::io_error,
                 path + ": no such file or folder, and no preset of that name; presets are " + names};
  }
  if (is_directory(path)) {
    if (weights.empty()) {
      STW_ASSIGN(found, weights_in(path));
      weights = found;
    }
    path += "/config.json";
  } else {
    STW_TRY(check_config_file(path));
  }
  origin = path;
  return read_text(path, largest_config);
}

// Refuses files that are no JSON. Damaged JSON and other encodings have messages of their own.
Status check_config_text(const std::string& text, const std::string& origin, bool is_file) {
  if (const std::string kind = kind_of_download(text, text.size()); !kind.empty())
    return corrupt(origin, kind);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (is_file && first != text.npos && text[first] != '{' && text[first] > ' ')
    return corrupt(origin, "expected a model's folder or its config.json, an object of JSON");
  return ok();
}

// The names of the labels that a model gets, which may be those that it has.
std::vector<std::string> names_of_labels(const ModelSource& source, const std::vector<std::string>& known) {
  if (!source.labels.empty()) return source.labels;
  if (source.task == Task::spans && source.label_count == 0) return span_labels();
  if (source.label_count == 0 || known.size() == source.label_count) return known;
  return unnamed_labels(source.label_count);
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::open(const ModelSource& given) {
  STW_ASSIGN(with, with_base(given));
  const ModelSource& source = with.source;
  std::string origin, weights = source.weights;
  STW_TRY(check_weights_file(weights));
  STW_ASSIGN(text, read_config(source, origin, weights));
  STW_TRY(check_config_text(text, origin, !source.source.empty()));
  STW_ASSIGN(config, parse_model(text, origin));
  if (source.dropout) {
    if (!(*source.dropout >= 0 && *source.dropout < 1))
      return Error{Code::bad_argument, "dropout must lie in [0, 1)"};
    set_dropout(config, *source.dropout);
  }
  auto model = std::make_shared<Model>(std::move(config));
  model->seed_ = source.seed;
  model->config_.adapters = source.adapters;
  if (source.new_head) {
    forget_labels(model->config_);
    model->draws_logits_ = true;
  }
  if (source.task) STW_TRY(check_task(*source.task, source.label_count, model->config_, origin));
  if (source.task && !task_row(*source.task).has_labels()) {
    ModelConfig& c = model->config_;
    model->has_new_head_ = *source.task != c.task;
    // Drops the head of a masked language model.
    if (*source.task == Task::language_model) c.task = Task::language_model;
    else if (auto status = set_masked(c); !status)
      return Error{status.error().code, origin + ": " + status.error().message};
  }
  if (auto status = model->take_masked_head(source, with.adapters.head); !status)
    return Error{status.error().code, origin + ": " + status.error().message};
  if (source.label_count > 0 || (source.task && task_row(*source.task).has_labels())) {
    const std::vector<std::string>& known_labels = model->config_.labels;
    model->has_new_head_ = known_labels.empty();
    const std::vector<std::string> names = names_of_labels(source, known_labels);
    const Task task = source.task ? *source.task : known_labels.empty() ? Task::label : model->config_.task;
    if (auto status = set_labels(model->config_, task, names); !status)
      return Error{status.error().code, origin + ": " + status.error().message};
  }
  if (source.dropout && task_row(model->config_.task).has_outputs_of_tokens())
    set_token_dropout(model->config_, *source.dropout);
  if (source.adapters.any())
    model->base_ = file_exists(source.source) || is_directory(source.source) ? absolute_path(source.source)
                                                                             : source.source;
  if (!weights.empty()) STW_TRY(check_quantization(model->config_.json, origin));
  model->config_.json.erase("quantization_config");  // exported weights are numbers
  if (!weights.empty()) {
    STW_ASSIGN(reader, SafetensorsReader::open(weights));
    model->weights_.emplace(std::move(reader));
  }
  if (source.adapters.any() && has_head(model->config_.task))
    STW_TRY(model->freeze_head(source.adapter, source.adapter.empty() ? nullptr : &with.adapters));
  // The parameters do not depend on the sequence length.
  auto graph = build_forward(model->config_, 1, Format::f32, {});
  if (!graph) {
    if (!source.adapter.empty()) graph.error().message = source.adapter + ": " + graph.error().message;
    return std::move(graph.error());
  }
  if (origin == "preset " + source.source && weights.empty()) model->preset_ = source;
  model->graph_ = std::move(*graph);
  for (int t = 0; t < static_cast<int>(model->graph_.tensors.size()); ++t)
    if (model->graph_.owns_bytes(t)) model->parameters_.push_back(t);
  if (model->graph_.parameter_count() >= size_limit / 64)
    return Error{Code::unsupported_field, origin + ": the model is too large"};
  if (model->weights_) STW_TRY(model->check_weights(with.adapters.head));
  if (!source.adapter.empty()) {
    STW_TRY(check_head(source.adapter, with.adapters, model->graph_, model->config_));
    // Adapters on random weights would only add noise.
    if (!model->weights_)
      return Error{Code::bad_argument,
                   source.adapter + ": its model, " + origin +
                       ", has no weights; name the folder that has (--model and --adapter)"};
    STW_TRY(model->open_adapters(source.adapter));
  }
  return std::shared_ptr<const Model>(std::move(model));
}

std::vector<std::string> Model::names_in_folder(const std::string& parameter) const {
  return names_in_exports(config_, parameter);
}

bool Model::holds(const SafetensorsReader& file, std::string_view parameter) const {
  const std::vector<std::string> names = names_in_files(config_, parameter);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return file.find(name) != nullptr; });
}

// A folder of adapters may hold a masked-language-model head that its model lacks, or a decoder matrix of its
// own. The matrix is then no longer tied to the embedding table: PEFT makes a copy of it.
Status Model::take_masked_head(const ModelSource& source, const std::set<std::string>& head) {
  const Architecture& a = architecture_of(config_);
  const bool is_masked = std::any_of(head.begin(), head.end(),
                                     [&](const std::string& name) { return is_of_masked_head(a, name); });
  if (is_masked && !source.task && source.label_count == 0 && config_.task == Task::language_model) {
    has_new_head_ = true;
    STW_TRY(set_masked(config_));
  }
  if (config_.task != Task::masked_language_model || !config_.tied || head.count(masked_decoder(a)) == 0)
    return ok();
  config_.tied = false;
  config_.json.set("tie_word_embeddings", false);
  return ok();
}

// PEFT trains the modules of the default list, which lacks BERT's pooler. Here a pooler that no file has is
// trained too, and so is a masked-language-model head. PEFT cannot train a bias without its matrix: a new
// head's bias stays 0 where the matrix is the embedding table.
Result<std::set<std::string>> Model::find_frozen_head(const std::string& folder,
                                                      const AdapterConfig* found) const {
  std::set<std::string> frozen;
  ModelConfig config = config_;
  config.adapters = {};
  STW_ASSIGN(graph, build_forward(config, 1, Format::f32, {}));
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t) {
    const std::string& name = graph.at(t).name;
    if (!graph.owns_bytes(t) || !is_of_head(config_, name) ||
        (found && holds_any(found->head, names_in_files(config_, name))))
      continue;
    const bool is_in_weights = weights_ && holds(*weights_, name), stays = is_bias_of_table(config_, name);
    if (found && weights_ && !found->head.empty() && !is_in_weights && !stays)
      return Error{Code::corrupt,
                   adapter_weights(folder) + ": tensor " + name + " is missing, and the model has none"};
    if (stays || (is_in_weights && !is_saved(default_saved_modules(config_.task), name))) frozen.insert(name);
  }
  return frozen;
}

Status Model::freeze_head(const std::string& folder, const AdapterConfig* found) {
  STW_ASSIGN(frozen, find_frozen_head(folder, found));
  config_.frozen_head = std::move(frozen);
  return ok();
}

Result<ModelConfig> Model::config_with_adapters(int64_t rank) const {
  ModelConfig config = config_;
  config.adapters = {.rank = rank, .alpha = 2.0 * static_cast<double>(rank), .targets = {all_targets}};
  if (has_head(config.task)) {
    STW_ASSIGN(frozen, find_frozen_head("", nullptr));
    config.frozen_head = std::move(frozen);
  }
  STW_TRY(build_forward(config, 1, Format::f32, {}));
  return config;
}

Result<std::shared_ptr<const Model>> Model::of_preset(const std::string& name) const {
  ModelSource source = *preset_;
  source.source = name;
  return open(source);
}

// The files' entry of the tensor that is tied to this parameter; null where no tensor is tied to it, or the
// files do not hold that tensor.
const SafetensorsInfo* Model::find_tied(const Tensor& parameter) const {
  for (const Tensor& tensor : graph_.tensors)
    if (tensor.tied_to >= 0 && graph_.at(tensor.tied_to).name == parameter.name)
      if (const SafetensorsInfo* found = find_weight(tensor.name)) return found;
  return nullptr;
}

const SafetensorsInfo* Model::find_in_adapters(const Tensor& p) const {
  const auto found = in_adapters_.find(p.name);
  return found == in_adapters_.end() ? nullptr : found->second;
}

bool Model::is_drawn(const Tensor& p) const {
  return !weights_ || p.adapter_of >= 0 || (draws_logits_ && gives_label_logits(config_, p.name)) ||
         (has_new_head_ && is_of_head(config_, p.name) && !find_weight(p.name));
}

bool Model::has_drawn_head() const {
  const auto is_new = [&](int t) {
    const Tensor& p = graph_.at(t);
    return p.adapter_of < 0 && !config_.frozen_head.count(p.name) && !find_in_adapters(p) && is_drawn(p);
  };
  return weights_ && std::any_of(parameters_.begin(), parameters_.end(), is_new);
}

const SafetensorsInfo* Model::find_weight(const std::string& name) const {
  const auto found = in_weights_.find(name);
  return found == in_weights_.end() ? nullptr : found->second;
}

Status Model::check_weights(const std::set<std::string>& head_of_adapters) {
  for (const Tensor& tensor : graph_.tensors) {
    if (tensor.role != Role::parameter) continue;  // keeps tied tensors, which are parameters too
    for (const std::string& in_file : names_in_files(config_, tensor.name))
      if (const SafetensorsInfo* found = weights_->find(in_file);
          found && in_weights_.emplace(tensor.name, found).second)
        break;
  }
  for (int t : parameters_) {
    const Tensor& p = graph_.at(t);
    if (is_drawn(p)) continue;
    const SafetensorsInfo *tied = find_tied(p), *entry = find_weight(p.name);
    if (!entry && !tied) {
      if (holds_any(head_of_adapters, names_in_files(config_, p.name))) continue;
      const std::string where =
          weights_->tensors().empty() ? "weights" : weights_->path_of(weights_->tensors()[0]);
      return Error{Code::corrupt, where + ": tensor " + p.name + " is missing"};
    }
    if (entry && Nf4Weight::is_one(*weights_, *entry)) {
      // transformers transposes gpt2's matrices before it turns them into codes. Reading would have to
      // transpose the codes back. Source: transformers, quantizer_bnb_4bit.py.
      if (architecture_of(config_).model_type == std::string_view("gpt2"))
        return Error{Code::unsupported, weights_->path_of(*entry) + ": tensor " + entry->name +
                                            ": matrices of gpt2 in 4 bits are not supported"};
      if (!p.layout.is_plain())  // reordering rows would have to move the scales of blocks too
        return Error{Code::unsupported,
                     weights_->path_of(*entry) + ": tensor " + entry->name +
                         ": in 4 bits, and with rows in order of heads, which is not supported"};
      if (tied)
        return Error{Code::unsupported, weights_->path_of(*entry) + ": tensor " + entry->name +
                                            ": in 4 bits, and tied to " + tied->name};
      STW_ASSIGN(codes, Nf4Weight::open(*weights_, *entry));
      STW_TRY(check_shape(*weights_, p, *entry, codes.shape()));
      nf4_.emplace(p.name, std::move(codes));
      continue;
    }
    for (const SafetensorsInfo* found : {entry, tied})
      if (found) STW_TRY(check_weight(*weights_, p, *found));
  }
  layers_in_files_ = layers_in(*weights_, graph_, config_);
  std::set<const SafetensorsInfo*> used;
  for (const auto& [name, info] : in_weights_) used.insert(info);
  if (const SafetensorsInfo* const stray = find_stray(*weights_, used, graph_, config_, draws_logits_)) {
    const std::string setting = setting_of(stray->name, config_);
    return Error{Code::unsupported,
                 weights_->path_of(*stray) + ": tensor " + stray->name + " is none of this " +
                     architecture_of(config_).model_type + ": it would be left out; the config" +
                     (setting.empty() ? "" : " (" + setting + ")") + " describes no such tensor"};
  }
  if (!has_codes()) return ok();
  for (int t : parameters_)
    if (!nf4_.count(graph_.at(t).name)) config_.unquantized.insert(graph_.at(t).name);
  return ok();
}

// The graph has adapters exactly where the folder has tensors of them (read_adapter_config).
Status Model::open_adapters(const std::string& folder) {
  STW_ASSIGN(reader, SafetensorsReader::open(adapter_weights(folder)));
  adapter_weights_.emplace(std::move(reader));
  for (int t : parameters_) {
    const Tensor& p = graph_.at(t);
    if (!p.of_adapters) continue;
    const SafetensorsInfo* found = find_adapter(*adapter_weights_, names_in_files(config_, p.name));
    if (!found && p.adapter_of < 0) continue;  // the model's own head, or a new one
    if (!found) return Error{Code::corrupt, adapter_weights(folder) + ": tensor " + p.name + " is missing"};
    STW_TRY(check_weight(*adapter_weights_, p, *found));
    in_adapters_.emplace(p.name, found);
  }
  return ok();
}

Status Model::check_shape(const SafetensorsReader& file, const Tensor& parameter,
                          const SafetensorsInfo& found, const std::vector<int64_t>& shape) {
  if (shape == dims(parameter.shape)) return ok();
  return Error{Code::corrupt, file.path_of(found) + ": tensor " + found.name + ": expected shape " +
                                  shape_text(dims(parameter.shape)) + ", found " + shape_text(shape)};
}

Status Model::check_weight(const SafetensorsReader& file, const Tensor& parameter,
                           const SafetensorsInfo& found) {
  if (found.dtype != TensorDType::f32 && found.dtype != TensorDType::bf16 &&
      found.dtype != TensorDType::f16 && found.dtype != TensorDType::f64)
    return Error{Code::corrupt, file.path_of(found) + ": tensor " + found.name +
                                    ": expected dtype F32, BF16, F16 or F64, found " + found.format};
  return check_shape(file, parameter, found, found.shape);
}

Status Model::read(const Tensor& p, uint64_t first, uint64_t count, float* out) const {
  if (const SafetensorsInfo* found = find_in_adapters(p))
    return read_weight(*adapter_weights_, *found, p, first, count, out);
  if (is_drawn(p)) {
    const uint64_t key = hash64(p.name.data(), p.name.size());
    switch (p.initializer) {
      case Initializer::normal: draw_normal(seed_, key, first, count, p.init_std, out); break;
      case Initializer::ones: std::fill_n(out, count, 1.0f); break;
      default: std::fill_n(out, count, 0.0f);
    }
    return ok();
  }
  if (const auto codes = nf4_.find(p.name); codes != nf4_.end())
    return codes->second.read(*weights_, first, count, out);
  const SafetensorsInfo *tied = find_tied(p), *entry = find_weight(p.name);
  STW_TRY(read_weight(*weights_, entry ? *entry : *tied, p, first, count, out));
  if (!entry || !tied) return ok();
  // If the files hold both tensors and these differ, tying them would lose one.
  std::array<float, converted_at_once> other;
  for (uint64_t done = 0; done < count;) {
    const uint64_t n = std::min(count - done, converted_at_once);
    STW_TRY(read_weight(*weights_, *tied, p, first + done, n, other.data()));
    if (std::memcmp(other.data(), out + done, n * sizeof(float)) != 0)
      return Error{Code::corrupt, weights_->path_of(*tied) + ": tensor " + tied->name +
                                      ": expected the values of " + entry->name +
                                      ", found others: the config's tie_word_embeddings should be false"};
    done += n;
  }
  return ok();
}

Status Model::read_codes(const Tensor& p, uint64_t first, uint64_t count, uint8_t* codes,
                         float* scales) const {
  return nf4_.at(p.name).read_codes(*weights_, first, count, codes, scales);
}

bool Model::reads_from(const std::string& folder) const {
  if (!weights_) return false;
  const std::string found = absolute_path(folder);
  return std::any_of(weights_->tensors().begin(), weights_->tensors().end(), [&](const SafetensorsInfo& t) {
    const std::string path = absolute_path(weights_->path_of(t));
    return path.substr(0, path.rfind('/')) == found;
  });
}

TensorDType Model::dtype_of(const Tensor& p) const {
  if (const SafetensorsInfo* found = find_in_adapters(p)) return *found->dtype;
  if (is_drawn(p)) return TensorDType::f32;
  if (const auto codes = nf4_.find(p.name); codes != nf4_.end()) return codes->second.dtype();
  const SafetensorsInfo* entry = find_weight(p.name);
  return *(entry ? entry : find_tied(p))->dtype;
}

Status Model::read_weight(const SafetensorsReader& file, const SafetensorsInfo& info, const Tensor& p,
                          uint64_t first, uint64_t count, float* out) {
  for (uint64_t done = 0; done < count;) {
    const WeightLayout::Run run = p.layout.in_file(first + done, count - done, p.shape.elements());
    STW_TRY(read_values(file, info, run.at, run.count, out + done));
    done += run.count;
  }
  return ok();
}

Status Model::read_values(const SafetensorsReader& file, const SafetensorsInfo& info, uint64_t first,
                          uint64_t count, float* out) {
  const TensorDType dtype = *info.dtype;  // check_weights() has checked the dtype
  const uint64_t size = dtype_bytes(dtype);
  std::array<std::byte, converted_at_once * sizeof(double)> raw;
  for (uint64_t done = 0; done < count;) {
    const uint64_t n = std::min(count - done, converted_at_once);
    STW_TRY(file.read(info, (first + done) * size, {raw.data(), static_cast<size_t>(n * size)}));
    for (uint64_t i = 0; i < n; ++i) {
      const std::byte* at = raw.data() + i * size;
      uint16_t half;
      double wide;
      switch (dtype) {
        case TensorDType::f32: std::memcpy(out + done + i, at, 4); break;
        case TensorDType::bf16:
          std::memcpy(&half, at, 2);
          out[done + i] = from_bf16(half);
          break;
        case TensorDType::f16:
          std::memcpy(&half, at, 2);
          out[done + i] = from_f16(half);
          break;
        default: std::memcpy(&wide, at, 8); out[done + i] = static_cast<float>(wide);
      }
    }
    done += n;
  }
  return ok();
}

}  // namespace stw
