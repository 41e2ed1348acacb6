// Model architectures: from a Hugging Face config.json to a graph. One file a family (gpt2.cpp, llama.cpp, …), one
// row an architecture in `architectures`; presets are configs with a name (presets.cpp).
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "planner/graph/adapters.h"
#include "planner/graph/graph.h"
#include "planner/base/json.h"
#include "planner/graph/numerics.h"
#include "planner/base/result.h"
#include "src/models/rotary.h"

namespace stw {

// What attention of one layer differs by from that of others.
struct LayerAttention {
  int64_t window = 0;   // keys up to its own that a token sees; 0: all of them
  int rotary = 0;       // of ModelConfig::rotary; -1: it has no positions
};

inline constexpr int64_t largest_depth = 1024;   // beyond all published models; keeps planning in seconds

// What all architectures have in common, in the words of the field; each fills in its own part.
struct ModelConfig {
  std::string architecture;        // "gpt2", "llama", …: a model_type
  Json json;                       // as read: written beside exported weights
  int64_t vocabulary = 0, width = 0, layers = 0, positions = 0, intermediate = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  float epsilon = 0;
  float init_std = 0.02f;
  bool tied = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false, qk_norm = false;
  bool joined_matrices = false;    // queries, keys and values are one parameter, and so are gate and up
  bool norms_behind = false;       // both halves of a block are normed before they are added, too
  float norm_weight_offset = 0;    // what weights of norms count from: 0 or 1
  Gate gate = Gate::silu;
  float embedding_scale = 1;
  Activation gelu = Activation::gelu_tanh;
  bool norm_bias = true;           // of LayerNorms
  float embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  float head_dropout = 0;          // of an encoder's classifier, and of a head of tokens
  bool head_bias = true;           // of an encoder's head, whatever its task: of its first matrix
  bool logits_bias = true;         // of a masked language model
  bool head_reads_mean = false;    // of the same: it reads the mean of a text's tokens in place of the first one
  int64_t embedding_width = 0;     // of an encoder: width of its embedding tables
  int64_t token_types = 0;         // of an encoder: rows of its table of token types; 0: no such table
  int64_t first_position = 0;      // of an encoder: the row of its position table that a text's first token takes
  float attention_scale = 0;
  std::vector<RotaryConfig> rotary;
  std::vector<LayerAttention> layer_attention;   // of every layer; none: all as they are by themselves
  bool is_part = false;            // of a model that takes pictures too: its tensors have longer names in files
  Task task = Task::language_model;
  std::vector<std::string> labels; // names, of a task that has some
  Adapters adapters;               // not of config.json, and neither are the next two
  std::set<std::string> frozen_head;    // parameters of a classifier's head that are frozen beside adapters, as PEFT has it; it trains the others
  std::set<std::string> kept_numbers;   // of a model whose files hold codes: parameters that they hold as numbers, and that stay so
};

// A masked language model's head: a matrix as wide as the tables of embeddings, an activation, LayerNorm, and a matrix with a bias that
// gives the logits of all tokens. The latter matrix is the table of words, or with `tied` false a parameter of its own.
struct MaskedHead {
  const char *dense, *norm;           // modules
  const char *decoder;                // module of the logits
  const char *bias;                   // of the logits, where the matrix is tied
  std::optional<Activation> gelu = {};  // none: that of the blocks
  Status (*check)(const Json& config) = nullptr;   // refuses what only such a head reads of a config.json; null: there is nothing
};

struct DropoutRate { const char* key; float ModelConfig::* rate; };   // of config.json

inline constexpr const char* classifier_weight = "score.weight";   // of all decoders, as in transformers
inline constexpr const char* decoder_head[] = {classifier_weight};

// The head that gives every token a label, transformers' …ForTokenClassification: a dropout and a matrix with bias.
struct TokenHead {
  const char* module = "score";   // the matrix's name; null: the family has no such head
  const char* dropout = "classifier_dropout";   // the key of its rate; null: it has none of its own
  float ModelConfig::* otherwise = nullptr;     // its rate where the config has no such key; null: "hidden_dropout", else 0.1
  bool is_that_of_texts = false;                // it has all parameters of the head of a text
};

struct Architecture {
  const char* model_type;
  Status (*parse)(const Json& json, ModelConfig& config);
  Graph (*build)(const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional);
  const char* class_name;   // of transformers, without "ForSequenceClassification" and the like
  // Prefix that some weight files leave out in front of every name ("transformer." for GPT-2); may be empty.
  const char* optional_prefix;
  std::span<const DropoutRate> dropouts;
  // Of models that take pictures too, and have such a one as their "text_config": their model_type, and transformers' class of the part
  // alone; null: there are none.
  const char *whole_model_type = nullptr, *part_class = nullptr;
  bool is_encoder = false;   // attends to all tokens of a text, and so generates nothing
  std::span<const char* const> head_parameters = decoder_head;   // names of a classifier's head; drawn at random if the model had no labels
  TokenHead token_head{};
  const MaskedHead* masked_head = nullptr;   // null: the family has none
};

std::span<const Architecture> architectures();
extern const Architecture albert_architecture, bert_architecture, distilbert_architecture, electra_architecture, modernbert_architecture, roberta_architecture, xlm_roberta_architecture;
extern const Architecture bloom_architecture, gemma3_architecture, gpt2_architecture, llama_architecture, ministral_architecture, mistral_architecture, phi3_architecture, qwen2_architecture, qwen3_architecture,
    smollm3_architecture;

// A size that transformers reads under two names. Errors: unsupported_field where both are there and differ.
Result<int64_t> get_size(const Json& json, const char* name, const char* also, int64_t absent);
// `origin` names the source in messages. Errors: corrupt, unsupported (architecture), unsupported_field.
Result<ModelConfig> parse_model(std::string_view json, const std::string& origin);
// Whether the groups and codes of `numerics` make sense for this model. Errors: bad_argument.
Status check_numerics(const ModelConfig& config, const Numerics& numerics);
// The forward ops, with adapters. Errors: those of add_adapters.
Result<Graph> build_forward(const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional);
// The complete graph: forward, backward, update, inference. For adapters and groups that make sense.
Graph build_model(const ModelConfig& config, int64_t sequence, const Numerics& numerics);
const Architecture& architecture_of(const ModelConfig& config);

// Text of the preset's config.json, or null.
const char* find_preset(std::string_view name);
const char* preset_name(size_t index);   // null past the last one

// LayerNorm with the parameters `name`.weight and, where norms have one, `name`.bias.
int layer_norm(GraphBuilder& builder, const ModelConfig& config, int x, const std::string& name, const char* label);
// The head and the loss behind the last norm: one logit for every token of the vocabulary, by the table of tokens where they are tied,
// or of a classifier for every label.
void add_head(GraphBuilder& builder, const ModelConfig& config, int x, int table);
void add_token_head(GraphBuilder& builder, const ModelConfig& config, int x);   // behind its dropout, and the loss
void set_token_dropout(ModelConfig& config, float rate);   // of a head of tokens, also in the config.json
// Gives a model a head for labels, also in its config.json, as transformers writes it. Errors: bad_argument, of names that
// make no sense, and where the model has other labels or another task with labels.
Status set_labels(ModelConfig& config, Task task, const std::vector<std::string>& names);
// The head of a masked language model, and the loss, behind the last block. `table`: of words.
void add_masked_head(GraphBuilder& builder, const ModelConfig& config, int x, int table);
void add_masked_logits(GraphBuilder& builder, const ModelConfig& config, int x, int table, float deviation);   // its last matrix, and the loss
// Gives an encoder the head of a masked language model, also in its config.json. Errors: unsupported where the family has none, or the model
// has labels.
Status set_masked(ModelConfig& config);
bool is_of_head(const ModelConfig& config, std::string_view parameter);   // whether it belongs to the head of the model's task
bool has_head(Task task);   // one of its own, in place of that of a language model
// Whether it belongs to the head that the family has for masked tokens, whatever the model's task; and the name of the matrix that gives the
// logits there, empty where the family has none.
bool is_of_masked_head(const Architecture& architecture, std::string_view parameter);
std::string masked_decoder(const Architecture& architecture);
// What the parameter may be called besides, as part of a masked language model's head; empty: nothing.
std::string other_name_in_head(const ModelConfig& config, std::string_view parameter);
// Whether it is the bias of masked tokens' logits where their matrix is the table of words.
bool is_bias_of_table(const ModelConfig& config, std::string_view parameter);
// Whether any architecture has this parameter in a head of labels or of masked tokens; and whether it is the matrix that gives the logits of labels.
bool is_of_any_head(std::string_view parameter);
bool gives_logits(std::string_view parameter);

}  // namespace stw
