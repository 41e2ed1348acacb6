#include "src/models/model.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "planner/base/python_json.h"
#include "planner/graph/parameter_groups.h"
#include "planner/program/complete.h"
#include "src/base/numbers.h"
#include "src/models/heads/labels.h"

namespace stw {

namespace {

constexpr int64_t largest_size = int64_t{1} << 31;

// The config.json of the language model inside a model for images and text, as transformers would write it
// alone. It takes over the outer config's keys that concern text.
Result<Json> language_part(const Json& outer, const Architecture& architecture) {
  STW_ASSIGN(text, get_object(outer, "text_config"));
  Json part = *text;
  STW_ASSIGN(type, get_string(part, "model_type", architecture.model_type));
  if (type != architecture.model_type)
    return Error{Code::unsupported, std::string("text_config: expected model_type ") +
                                        architecture.model_type + ", found \"" + type + "\""};
  part.set("model_type", architecture.model_type);
  for (const char* key :
       {"bos_token_id", "eos_token_id", "pad_token_id", "tie_word_embeddings", "dtype", "torch_dtype",
        "quantization_config", "id2label", "label2id", "problem_type", "transformers_version"})
    if (const Json* given = find_present(outer, key); given && !find_present(part, key))
      part.set(key, *given);
  const std::string outer_class = class_of(outer);
  const size_t purpose = outer_class.find("For");
  const bool is_for_texts = purpose != outer_class.npos && !outer_class.ends_with("ForConditionalGeneration");
  Json classes = Json::array();
  classes.push(is_for_texts ? architecture.class_name + outer_class.substr(purpose)
                            : architecture.part_class);
  part.set("architectures", std::move(classes));
  return part;
}

}  // namespace

// The families. The row NAME_architecture of each is defined in the family's file.
#define STW_FAMILIES(X) \
  X(albert)             \
  X(bert)               \
  X(bloom)              \
  X(camembert)          \
  X(deberta_v2)         \
  X(distilbert)         \
  X(electra)            \
  X(gemma3)             \
  X(gpt2)               \
  X(llama)              \
  X(ministral)          \
  X(mistral)            \
  X(modernbert)         \
  X(phi3)               \
  X(qwen2)              \
  X(qwen3)              \
  X(roberta)            \
  X(smollm3)            \
  X(xlm_roberta)

#define STW_DECLARE(name) extern const Architecture name##_architecture;
STW_FAMILIES(STW_DECLARE)
#undef STW_DECLARE

std::span<const Architecture> architectures() {
#define STW_ROW(name) name##_architecture,
  static const Architecture list[] = {STW_FAMILIES(STW_ROW)};
#undef STW_ROW
  return list;
}

Result<int64_t> get_size(const Json& json, const char* name, const char* also, int64_t absent) {
  STW_ASSIGN(other, get_int(json, also, absent));
  STW_ASSIGN(size, get_int(json, name, other));
  if (find_present(json, also) && size != other)
    return Error{Code::unsupported_field, std::string(name) + " is " + std::to_string(size) + " and " + also +
                                              " " + std::to_string(other)};
  return size;
}

static const char* token_module(const ModelConfig& config) {
  const Architecture& a = architecture_of(config);
  return config.task == Task::spans ? a.span_head.module : a.token_head.module;
}
static std::string token_parameter(const ModelConfig& config, const char* part) {
  return std::string(token_module(config)) + part;
}
static bool is_of_token_head(const Architecture& a, std::string_view parameter, const char* part) {
  for (const char* module : {a.token_head.module, a.span_head.module})
    if (module && parameter == std::string(module) + part) return true;
  return false;
}

std::string config_text(const Json& config) { return to_string(config, 2) + "\n"; }

// Reads the dropout of a token head. Source: transformers, modeling_layers.py, and the families'
// …ForTokenClassification.
static Status read_token_head(ModelConfig& config) {
  const Architecture& a = architecture_of(config);
  if (!a.token_head.module)
    return Error{Code::unsupported_field, std::string(a.class_name) +
                                              task_row(Task::token_label).class_suffix +
                                              " is not supported: transformers has no such class"};
  STW_ASSIGN(has_bias, get_bool(config.json, "token_classification_bias", true));
  if (!has_bias) return Error{Code::unsupported_field, "token_classification_bias false is not supported"};
  const char* key = a.token_head.dropout;
  if (key && !find_present(config.json, key)) key = a.token_head.fallback_rate ? nullptr : "hidden_dropout";
  STW_ASSIGN(rate,
             key ? get_double(config.json, key, 0.1) : Result<double>(config.*a.token_head.fallback_rate));
  config.head_dropout = static_cast<float>(rate);
  if (config.head_dropout >= 0 && config.head_dropout < 1) return ok();
  return Error{Code::unsupported_field, "a dropout rate is outside of [0, 1)"};
}

// Reads the dropout of a span head. Source: transformers, the families' …ForQuestionAnswering.
static Status read_span_head(ModelConfig& config) {
  const Architecture& a = architecture_of(config);
  if (!a.span_head.module)
    return Error{Code::unsupported_field,
                 std::string(a.class_name) + task_row(Task::spans).class_suffix +
                     " is not supported: answers are found by encoders, and this model is a decoder"};
  STW_ASSIGN(rate, a.span_head.dropout ? get_double(config.json, a.span_head.dropout, 0.1)
                   : a.span_head.rate  ? Result<double>(config.*a.span_head.rate)
                                       : Result<double>(0.0));
  config.head_dropout = static_cast<float>(rate);
  if (config.head_dropout >= 0 && config.head_dropout < 1) return ok();
  return Error{Code::unsupported_field, "a dropout rate is outside of [0, 1)"};
}

// The head of the tasks with outputs of tokens.
static Status read_row_head(ModelConfig& config) {
  if (config.task == Task::token_label) return read_token_head(config);
  return config.task == Task::spans ? read_span_head(config) : ok();
}

static Status check_masked_head(const ModelConfig& config) {
  const MaskedHead& head = *architecture_of(config).masked_head;
  return head.check ? head.check(config.json) : ok();
}

static std::string bias_of_logits(const ModelConfig& config, const MaskedHead& head) {
  return config.tied ? head.bias : head.decoder + std::string(".bias");
}

bool is_of_head(const ModelConfig& config, std::string_view parameter) {
  const Architecture& a = architecture_of(config);
  if ((config.task == Task::token_label && !a.token_head.shares_text_head) ||
      (config.task == Task::spans && !a.span_head.shares_text_head))
    return parameter == token_parameter(config, ".weight") || parameter == token_parameter(config, ".bias");
  if (config.task == Task::masked_language_model)
    return is_of_masked_head(architecture_of(config), parameter);
  const std::span<const char* const> head = architecture_of(config).head_parameters;
  return std::find(head.begin(), head.end(), parameter) != head.end();
}

bool has_head(Task task) { return task_row(task).has_labels() || task == Task::masked_language_model; }

bool is_of_masked_head(const Architecture& architecture, std::string_view parameter) {
  const MaskedHead* const head = architecture.masked_head;
  const std::string_view module = parameter.substr(0, parameter.rfind('.'));
  return head && (module == head->dense || module == head->norm || module == head->decoder ||
                  parameter == head->bias);
}

std::string masked_decoder(const Architecture& architecture) {
  return architecture.masked_head ? architecture.masked_head->decoder + std::string(".weight") : "";
}

bool is_bias_of_table(const ModelConfig& config, std::string_view parameter) {
  return config.task == Task::masked_language_model && config.tied &&
         parameter == bias_of_logits(config, *architecture_of(config).masked_head);
}

// Where the matrix is tied, transformers has two names for the bias.
std::string other_name_in_head(const ModelConfig& config, std::string_view parameter) {
  const MaskedHead* const masked =
      config.task == Task::masked_language_model ? architecture_of(config).masked_head : nullptr;
  if (!masked || parameter != bias_of_logits(config, *masked)) return {};
  return config.tied ? masked->decoder + std::string(".bias") : std::string(masked->bias);
}

bool is_of_any_head(std::string_view parameter) {
  return std::any_of(architectures().begin(), architectures().end(), [&](const Architecture& a) {
    return std::find(a.head_parameters.begin(), a.head_parameters.end(), parameter) !=
               a.head_parameters.end() ||
           is_of_masked_head(a, parameter) || is_of_token_head(a, parameter, ".weight") ||
           is_of_token_head(a, parameter, ".bias");
  });
}

bool computes_label_logits(std::string_view parameter) {
  return std::any_of(architectures().begin(), architectures().end(), [&](const Architecture& a) {
    const auto last = std::find_if(a.head_parameters.rbegin(), a.head_parameters.rend(),
                                   [](std::string_view name) { return name.ends_with(".weight"); });
    return (last != a.head_parameters.rend() && *last == parameter) ||
           is_of_token_head(a, parameter, ".weight");
  });
}

const Architecture* find_architecture(std::string_view model_type) {
  for (const Architecture& a : architectures())
    if (model_type == a.model_type) return &a;
  return nullptr;
}

Result<ModelConfig> parse_model(std::string_view text, const std::string& origin) {
  auto with_origin = [&](Error e) {
    e.message = origin + ": " + e.message;
    return e;
  };
  auto json = parse_python_json(text);
  if (!json) return with_origin(std::move(json.error()));
  if (!json->is_object()) return Error{Code::corrupt, origin + ": expected an object"};
  auto type = get_string(*json, "model_type");
  if (!type) return with_origin(std::move(type.error()));
  bool is_part = false;
  for (const Architecture& a : architectures()) {
    if (!a.outer_model_type || *type != a.outer_model_type) continue;
    auto part = language_part(*json, a);
    if (!part) return with_origin(std::move(part.error()));
    *json = std::move(*part);
    type = std::string(a.model_type);
    is_part = true;
  }
  std::string known;
  for (const Architecture& a : architectures()) {
    for (const char* name : {a.outer_model_type, a.model_type})
      if (name) known += std::string(known.empty() ? "" : ", ") + name;
    if (*type != a.model_type) continue;
    const auto causal = get_bool(*json, "is_causal", true);
    if (!causal) return with_origin(causal.error());
    const Json* const given = json->find("is_causal");  // transformers treats null as false
    if (!a.is_encoder && (!*causal || (given && given->is_null())))
      return Error{Code::unsupported_field,
                   origin + ": is_causal " + to_string(*given, 0) + " is not supported"};
    ModelConfig config(a);
    if (auto status = a.parse(*json, config); !status) return with_origin(std::move(status.error()));
    const std::pair<const char*, int64_t> sizes[] = {
        {"vocabulary", config.vocabulary},
        {"width", config.width},
        {"number of layers", config.layers},
        {"number of positions", config.positions},
        {"intermediate width", config.intermediate},
        {"width of embeddings", config.embedding_width == 0 ? config.width : config.embedding_width},
        {"number of heads", config.heads},
        {"number of key-value heads", config.kv_heads},
        {"head width", config.head_dim}};
    for (const auto& [name, size] : sizes)
      if (size < 1 || size > largest_size)
        return Error{Code::unsupported_field, origin + ": " + name + " is " + std::to_string(size)};
    if (config.heads % config.kv_heads != 0)
      return Error{Code::unsupported_field, origin + ": " + std::to_string(config.heads) +
                                                " heads cannot share " + std::to_string(config.kv_heads) +
                                                " key-value heads evenly"};
    if (config.head_dim % 2 != 0 || config.head_dim > 256)
      return Error{Code::unsupported_field, origin + ": expected an even head width of at most 256, found " +
                                                std::to_string(config.head_dim)};
    if (config.layers > largest_depth)
      return Error{Code::unsupported_field, origin + ": expected at most " + std::to_string(largest_depth) +
                                                " layers, found " + std::to_string(config.layers)};
    if (!(config.epsilon >= 0) || !(config.init_std >= 0) || !std::isfinite(config.epsilon + config.init_std))
      return Error{
          Code::unsupported_field,
          origin + ": the norms' epsilon and initializer_range must not be negative, and finite in fp32"};
    for (float p : {config.embedding_dropout, config.attention_dropout, config.residual_dropout,
                    config.head_dropout, config.pooler_dropout})
      if (!(p >= 0 && p < 1))
        return Error{Code::unsupported_field, origin + ": a dropout rate is outside of [0, 1)"};
    auto head = read_head(*json);
    if (!head) return with_origin(std::move(head.error()));
    // A masked-LM class that the family does not have: only the body is used.
    config.task =
        head->task == Task::masked_language_model && !a.masked_head ? Task::language_model : head->task;
    config.labels = std::move(head->labels);
    config.json = std::move(*json);
    if (config.task == Task::masked_language_model)
      if (auto status = check_masked_head(config); !status) return with_origin(std::move(status.error()));
    if (auto status = read_row_head(config); !status) return with_origin(std::move(status.error()));
    config.is_part = is_part;
    return config;
  }
  return Error{Code::unsupported, origin + ": expected model_type " + known + ", found \"" + *type + "\""};
}

Status check_numerics(const ModelConfig& config, const Numerics& numerics) {
  if (architecture_of(config).is_encoder && config.task == Task::language_model)
    return Error{Code::unsupported, std::string("a model of type ") + architecture_of(config).model_type +
                                        " is trained with a head: it needs labels (label_count, --labels), "
                                        "or the task masked-language-model (--task masked), and this one has "
                                        "neither"};
  for (const auto& [name, how] :
       {std::pair{"quantize ", numerics.quantize}, {"quantize_embeddings ", numerics.quantize_embeddings}})
    if (how != Quantize::none && !config.adapters.any())
      return Error{Code::bad_argument, std::string(name) + name_of(how) +
                                           " is for the matrices below low-rank adapters, of which the model "
                                           "has none (--lora, --adapter)"};
  if (numerics.inputs.texts > 0 && !(architecture_of(config).is_encoder && task_row(config.task).of_text))
    return Error{Code::bad_argument,
                 "texts is for encoders with an output for each text, this model is none"};
  if (numerics.inputs.preference != Preference::none && config.task != Task::language_model)
    return Error{Code::bad_argument, std::string("preference ") + name_of(numerics.inputs.preference) +
                                         " is for language models, this one is a " +
                                         (config.labels.empty() ? "masked language model" : "classifier")};
  STW_ASSIGN(graph, build_forward(config, 1, compute_format(numerics.precision), numerics.inputs));
  return apply_groups(graph, numerics);
}

Result<Graph> build_forward(const ModelConfig& config, int64_t sequence, Format compute,
                            GraphInputs optional) {
  STW_ASSIGN(graph, architecture_of(config).build(config, sequence, compute, optional));
  // All of a new head is trained with the adapters: untrained it would be useless.
  const auto is_trained_head = [&](const Tensor& t) {
    return has_head(config.task) && t.tied_to < 0 && is_of_head(config, t.name) &&
           !config.frozen_head.count(t.name);
  };
  STW_TRY(add_adapters(graph, config.adapters, is_trained_head));
  return std::move(graph);
}

int layer_norm(GraphBuilder& b, const ModelConfig& c, int x, const std::string& name, const char* label,
               bool has_bias) {
  const int64_t width = b.features(x);
  const int weight = b.parameter(name + ".weight", {width}, Initializer::ones);
  const int bias = has_bias ? b.parameter(name + ".bias", {width}, Initializer::zeros) : -1;
  return b.norm(x, weight, bias, c.epsilon, false, label);
}

void add_token_head(GraphBuilder& b, const ModelConfig& c, int x) {
  const auto labels = static_cast<int64_t>(c.labels.size());
  b.task(c.task, labels, c.task == Task::spans ? TargetRow::first : TargetRow::every);
  b.begin(SegmentKind::head, -1, x);
  const int weight =
      b.parameter(token_parameter(c, ".weight"), {labels, c.width}, Initializer::normal, c.init_std);
  b.loss(b.linear(x, {{weight, b.parameter(token_parameter(c, ".bias"), {labels}, Initializer::zeros)}},
                  false, "logits"));
}

void set_token_dropout(ModelConfig& config, float rate) {
  const Architecture& a = architecture_of(config);
  const bool has_spans = config.task == Task::spans;
  config.head_dropout = has_spans && !a.span_head.dropout && !a.span_head.rate ? 0 : rate;
  if (const char* key = has_spans ? a.span_head.dropout : a.token_head.dropout)
    config.json.set(key, as_written(rate));
}

void add_head(GraphBuilder& b, const ModelConfig& c, int x, int table) {
  if (c.task == Task::token_label) return add_token_head(b, c, x);
  b.begin(SegmentKind::head, -1, x);
  const auto matrix = [&](const char* name, int64_t rows) {
    return b.parameter(name, {rows, c.width}, Initializer::normal, c.init_std);
  };
  int head;
  if (!c.labels.empty()) {
    b.task(c.task, static_cast<int64_t>(c.labels.size()), TargetRow::last);
    head = matrix(classifier_weight, static_cast<int64_t>(c.labels.size()));
  } else {
    head = c.tied ? b.tied("lm_head.weight", table) : matrix("lm_head.weight", c.vocabulary);
  }
  b.loss(b.linear(x, {{head, -1}}, false, "logits"));
}

void add_masked_logits(GraphBuilder& b, const ModelConfig& c, int x, int table, float deviation,
                       bool has_bias) {
  const MaskedHead& head = *architecture_of(c).masked_head;
  const std::string name = head.decoder + std::string(".weight");
  b.begin(SegmentKind::head, -1, x);
  const int decoder = c.tied
                          ? b.tied(name, table)
                          : b.parameter(name, {c.vocabulary, b.features(x)}, Initializer::normal, deviation);
  const int bias = has_bias ? b.parameter(bias_of_logits(c, head), {c.vocabulary}, Initializer::zeros) : -1;
  b.cross_entropy(b.linear(x, {{decoder, bias}}, false, "logits"));
}

Status set_masked(ModelConfig& config) {
  if (config.task == Task::masked_language_model) return ok();
  const std::string name = task_row(Task::masked_language_model).name;
  if (!config.labels.empty())
    return Error{Code::bad_argument, "the model's task is " + std::string(task_row(config.task).name) + "; " +
                                         name + " was given"};
  if (!architecture_of(config).masked_head)
    return Error{Code::unsupported, std::string("a model of type ") + architecture_of(config).model_type +
                                        " has no head for masked tokens: the task " + name +
                                        " is not supported"};
  STW_TRY(check_masked_head(config));
  config.task = Task::masked_language_model;
  Json classes = Json::array();
  classes.push(std::string(architecture_of(config).class_name) + task_row(config.task).class_suffix);
  config.json.set("architectures", std::move(classes));
  return ok();
}

void forget_labels(ModelConfig& config) {
  if (config.labels.empty()) return;
  config.task = Task::language_model;
  config.labels.clear();
}

bool gives_label_logits(const ModelConfig& config, std::string_view parameter) {
  if (!is_of_head(config, parameter)) return false;
  const std::string module(parameter.substr(0, parameter.rfind('.')));
  return computes_label_logits(module + ".weight");
}

Status set_labels(ModelConfig& config, Task task, const std::vector<std::string>& names) {
  STW_TRY(check_labels(task, names));
  if (!config.labels.empty()) {
    if (config.task != task && (has_problem_type(config.json) || !task_row(task).of_text))
      return Error{Code::bad_argument, std::string("the model's task is ") + task_row(config.task).name +
                                           "; " + task_row(task).name + " was given"};
    if (config.labels == names && config.task == task) return ok();
    if (config.labels != names)
      return Error{Code::bad_argument,
                   "the model is a classifier with " + std::to_string(config.labels.size()) +
                       " labels of its own, which are not the " + std::to_string(names.size()) +
                       " that were given (new_head replaces them)"};
  }
  config.task = task;
  config.labels = names;
  STW_TRY(read_row_head(config));
  write_labels(config.json, architecture_of(config).class_name, task, names, config.vocabulary);
  return ok();
}

Graph build_model(const ModelConfig& config, int64_t sequence, const Numerics& numerics) {
  auto forward = build_forward(config, sequence, compute_format(numerics.precision), numerics.inputs);
  assert(forward);
  auto graph = complete(std::move(*forward), numerics,
                        [&](const Tensor& t) { return config.unquantized.count(t.name) > 0; });
  assert(graph);
  return std::move(*graph);
}

}  // namespace stw
