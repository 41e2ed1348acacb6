// The common parts of BERT and the encoders derived from it: learned positions, attention to all tokens of a
// text, LayerNorm after each half of a block, and the head of a task. A family has a record of tensor names
// and a function that reads its config.json. The graph of all families is built here.
#pragma once
#include <optional>

#include "src/models/model.h"

namespace stw {

// Names of modules in transformers. The full name of a module in a block is: prefix, `blocks`, the block's
// number, ".", the name here.
struct EncoderNames {
  const char* prefix;           // "bert."; names of the head have no prefix
  const char* embeddings_norm;  // after "embeddings."
  const char* blocks;           // "encoder.layer."
  const char *query, *key, *value, *attention_out, *attention_norm, *up, *down, *output_norm;
  // The head: a matrix over the first token, an activation, and a matrix that gives the logits.
  const char *pooler, *classifier;
  Activation pooler_activation;
  bool dropout_before_pooler;
  // The matrix from the embeddings' width to the blocks' width, if these differ.
  const char* projection = "embeddings_project";
  bool always_projects = false;          // even if the widths are equal
  bool shares_block = false;             // all blocks share the parameters of the first one
  bool attention_output_dropout = true;  // after the matrix that ends the first half of a block
  bool feed_forward_dropout = true;      // after the matrix that ends the second half
  bool projects_before_norm = false;     // the projection comes before the embeddings' norm, without a bias
  // Of relative positions: the table and its norm, after `prefix`; keys and queries of a block.
  const char *relative_table = nullptr, *relative_norm = nullptr;
  const char *relative_key = nullptr, *relative_query = nullptr;
};

// Relative positions as in DeBERTa (He et al., arXiv 2006.03654 and 2111.09543).
struct RelativeConfig {
  // The table has 2·span rows. Distances d from -span to span - 1 have row d + span; distances beyond have
  // the first or the last row.
  int64_t span = 0;
  // If positive: distances of at least buckets / 2 share rows, in ranges that grow exponentially up to
  // `most`.
  int64_t buckets = 0, most = 0;
  bool keys = false, queries = false;  // content to position, position to content
  bool shares_matrices = false;        // with those of the content
  bool has_norm = false;
};
// The row of each distance from 1 - sequence to sequence - 1, in the fp32 arithmetic of transformers.
std::vector<int32_t> relative_rows(const RelativeConfig& relative, int64_t sequence);

// The part of an encoder's configuration that build_encoder alone reads: ModelConfig::family.
struct EncoderConfig {
  Activation gelu;
  int64_t first_position;                            // the row of the position table for a text's first token
  bool has_positions = true;                         // there is a table of positions
  std::optional<Activation> pooler_activation = {};  // none: as in EncoderNames
  std::optional<RelativeConfig> relative = {};
};

// The keys of a config.json that differ between families.
struct EncoderKeys {
  const char *width = "hidden_size", *layers = "num_hidden_layers", *heads = "num_attention_heads",
             *intermediate = "intermediate_size", *activation = "hidden_act",
             *dropout = "hidden_dropout_prob", *attention_dropout = "attention_probs_dropout_prob",
             *head_dropout = "classifier_dropout";
};
// A family's values for keys that a config lacks.
struct EncoderDefaults {
  int64_t vocabulary = 30522, width = 768, layers = 12, heads = 12, intermediate = 3072;
  int64_t token_types = 2;                    // 0: the family has none
  bool first_position_after_padding = false;  // positions count from pad_token_id + 1, as in RoBERTa
  std::optional<double> head_dropout = {};    // none: as in hidden layers
  const char* activation = "gelu";
  double dropout = 0.1;  // of hidden layers and attention
};
// Errors: unsupported_field for an unknown activation.
Result<Activation> parse_activation(const Json& json, const char* key, const char* absent = "gelu");
// Reads all sizes, rates and the activation. Errors: unsupported_field for a decoder, for an unknown
// activation or kind of positions, and for sizes that do not fit each other.
Status parse_encoder(const Json& json, ModelConfig& config, const EncoderDefaults& absent,
                     const EncoderKeys& keys = {});

// Builds the base model, and the head of the config's task: a classifier's, or a masked language model's.
Result<Graph> build_encoder(const EncoderNames& names, const ModelConfig& config, int64_t sequence,
                            Format compute, GraphInputs optional);

}  // namespace stw
