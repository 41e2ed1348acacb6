// Model architectures: from a Hugging Face config.json to a graph. Each family has a file (gpt2.cpp,
// llama.cpp, …), each architecture a row in `architectures`. Presets are configs with a name (presets.cpp).
#pragma once
#include <algorithm>
#include <any>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "planner/base/json.h"
#include "planner/base/result.h"
#include "planner/graph/adapters.h"
#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"

namespace stw {

inline constexpr int64_t largest_depth = 1024;  // beyond all published models; keeps planning within seconds

struct Architecture;

// The configuration of a model: the fields that all families have or that other parts of the library read,
// and the fields of the model's family alone.
struct ModelConfig {
  explicit ModelConfig(const Architecture& family_row) : architecture(&family_row) {}
  const Architecture* architecture;  // a row of architectures(); never null
  Json json;                         // as read; exports write it next to the weights
  int64_t vocabulary = 0, width = 0, layers = 0, positions = 0, intermediate = 0;
  int64_t longest = 0;          // tokens of the longest text, if it may be longer than `positions`
  int64_t embedding_width = 0;  // of the embedding tables; 0: `width`
  int heads = 0, kv_heads = 0, head_dim = 0;
  float epsilon = 0;  // of norms
  float init_std = 0.02f;
  float attention_scale = 0;
  bool tied = false;
  float embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  float head_dropout = 0;    // of an encoder's classifier, and of a token head
  float pooler_dropout = 0;  // before the pooler of an encoder's classifier, if it has a rate of its own
  int64_t token_types = 0;   // rows of the token type table; 0: no such table
  bool is_part = false;      // inside a model for images and text: tensors have longer names in files
  // A struct that only the family's parser and builder know (a DecoderConfig, …), empty where the family
  // needs none. The parser sets it, the builder reads it with std::any_cast.
  std::any family;
  Task task = Task::language_model;
  std::vector<std::string> labels;  // names, for a task with labels
  Adapters adapters;                // this field and the next two do not come from config.json
  // With adapters: parameters of a classifier's head that are frozen. The others are trained, as in PEFT.
  std::set<std::string> frozen_head;
  // Parameters that are not quantized, because the files hold them as numbers while other matrices are codes.
  std::set<std::string> unquantized;
};

// A masked language model's head: a matrix that maps to the width of the embedding tables, an activation,
// LayerNorm, and a matrix with a bias that gives the logits of all tokens. The last matrix is the word table,
// or with `tied` false a parameter of its own.
struct MaskedHead {
  const char *dense, *norm;             // modules
  const char* decoder;                  // module of the logits
  const char* bias;                     // name of the logits' bias where the matrix is tied
  std::optional<Activation> gelu = {};  // none: the blocks' activation
  // Refuses settings that only this head reads; null: nothing to check.
  Status (*check)(const Json& config) = nullptr;
};

struct DropoutRate {
  const char* key;
  float ModelConfig::*rate;
};  // a key of config.json and its field

inline constexpr const char* classifier_weight = "score.weight";  // of all decoders, as in transformers
inline constexpr const char* decoder_head[] = {classifier_weight};

// The head that gives every token a label (transformers' …ForTokenClassification): dropout and a matrix with
// a bias.
struct TokenHead {
  const char* module = "score";                // the matrix's module; null: the family has no such head
  const char* dropout = "classifier_dropout";  // the key of its dropout rate; null: none of its own
  // The field with the rate to use where the config lacks that key; null: the config's "hidden_dropout", else
  // 0.1.
  float ModelConfig::*fallback_rate = nullptr;
  bool shares_text_head = false;  // this head has the same parameters as the family's head for texts
};

// The head that finds an answer in a text (transformers' …ForQuestionAnswering): dropout in a few families,
// and a matrix with a bias that gives each token two logits, as the answer's first token and as its last one.
struct SpanHead {
  const char* module = nullptr;  // the matrix's module; null: the family has no such head
  const char* dropout =
      nullptr;  // the key of its dropout rate, 0.1 where it is absent; null: none of its own
  float ModelConfig::*rate = nullptr;  // the field with the rate, where there is no key; null: no dropout
  bool shares_text_head = false;       // this head has the same parameters as the family's head for texts
};

struct Architecture {
  const char* model_type;
  Status (*parse)(const Json& json, ModelConfig& config);
  Result<Graph> (*build)(const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional);
  const char* class_name;  // of transformers, without "ForSequenceClassification" and the like
  // A prefix of all names that some weight files leave out ("transformer." for GPT-2); may be empty.
  const char* optional_prefix;
  std::span<const DropoutRate> dropouts;
  // If a larger model has this one as its "text_config": the larger model's model_type, and transformers'
  // class of the text part alone. Null: there is no such model.
  const char *outer_model_type = nullptr, *part_class = nullptr;
  bool is_encoder = false;  // attends to all tokens of a text, and therefore does not generate
  // Names of the parameters of a classifier's head. They are random if the model had no labels.
  std::span<const char* const> head_parameters = decoder_head;
  TokenHead token_head{};
  SpanHead span_head{};
  const MaskedHead* masked_head = nullptr;  // null: the family has none
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view model_type);  // null: there is none

// A size that has two names in configs. Errors: unsupported_field where both are there and differ.
Result<int64_t> get_size(const Json& json, const char* name, const char* also, int64_t absent);
// `origin` names the source in messages. Errors: corrupt, unsupported (architecture), unsupported_field.
Result<ModelConfig> parse_model(std::string_view json, const std::string& origin);
// Whether the groups and codes of `numerics` make sense for this model. Errors: bad_argument.
Status check_numerics(const ModelConfig& config, const Numerics& numerics);
// The forward ops, with adapters. Errors: those of add_adapters.
Result<Graph> build_forward(const ModelConfig& config, int64_t sequence, Format compute,
                            GraphInputs optional);
// The complete graph: forward, backward, update, inference. Adapters and groups must have been checked.
Graph build_model(const ModelConfig& config, int64_t sequence, const Numerics& numerics);
inline int64_t longest_text(const ModelConfig& config) { return std::max(config.positions, config.longest); }
inline const Architecture& architecture_of(const ModelConfig& config) { return *config.architecture; }

// The text of a config.json, as exports write it.
std::string config_text(const Json& config);
// The text of a preset's config.json, or null.
const char* find_preset(std::string_view name);
const char* preset_name(size_t index);  // null if `index` is too large

// LayerNorm with the parameters `name`.weight and, with a bias, `name`.bias.
int layer_norm(GraphBuilder& builder, const ModelConfig& config, int x, const std::string& name,
               const char* label, bool has_bias = true);
// The head after the last norm, and the loss: logits for every token of the vocabulary (from the token table,
// if tied), or for every label of a classifier.
void add_head(GraphBuilder& builder, const ModelConfig& config, int x, int table);
// The matrix of a token head or a span head, after its dropout, and the loss.
void add_token_head(GraphBuilder& builder, const ModelConfig& config, int x);
// Sets the dropout of a token head or a span head, also in the config.json.
void set_token_dropout(ModelConfig& config, float rate);
// Gives a model a head for labels, also in its config.json, in transformers' format. Errors: bad_argument for
// invalid names, and where the model has other labels or another task with labels.
Status set_labels(ModelConfig& config, Task task, const std::vector<std::string>& names);
// Makes a classifier a model without labels, so that it can get others.
void forget_labels(ModelConfig& config);
// Whether the parameter is the matrix that gives the logits of the model's labels, or its bias.
bool gives_label_logits(const ModelConfig& config, std::string_view parameter);
// The last matrix of a masked language model's head, and the loss. `table`: the word table.
void add_masked_logits(GraphBuilder& builder, const ModelConfig& config, int x, int table, float deviation,
                       bool has_bias = true);
// Gives an encoder the head of a masked language model, also in its config.json. Errors: unsupported where
// the family has none; bad_argument where the model has labels.
Status set_masked(ModelConfig& config);
// Whether the parameter belongs to the head of the model's task.
bool is_of_head(const ModelConfig& config, std::string_view parameter);
bool has_head(Task task);  // whether the task has a head of its own, instead of a causal language model's
// Whether a parameter belongs to the family's masked-LM head, whatever the model's task; and the name of the
// matrix that gives its logits, empty where the family has no such head.
bool is_of_masked_head(const Architecture& architecture, std::string_view parameter);
std::string masked_decoder(const Architecture& architecture);
// A second name of a parameter of a masked-LM head in files; empty: none.
std::string other_name_in_head(const ModelConfig& config, std::string_view parameter);
// Whether the parameter is the bias of masked-LM logits whose matrix is the word table.
bool is_bias_of_table(const ModelConfig& config, std::string_view parameter);
// Whether any architecture has this parameter in a head for labels or a masked-LM head; and whether it is the
// matrix that gives the logits of labels.
bool is_of_any_head(std::string_view parameter);
bool computes_label_logits(std::string_view parameter);

}  // namespace stw
