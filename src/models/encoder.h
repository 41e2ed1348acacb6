// What BERT and the encoders that came of it have in common: learned positions, attention to all tokens of a text, LayerNorm after each
// half of a block, and a classifier over the text's first token. A family has a record of what its tensors are called and a function
// that reads its config.json; the graph of all of them is built here.
#pragma once
#include "src/models/model.h"

namespace stw {

// Names of modules, as transformers has them. Of a block they stand after the prefix, `blocks` and the block's number.
struct EncoderNames {
  const char* prefix;           // "bert.": of all but the head
  const char* embeddings_norm;  // after "embeddings."
  const char* blocks;           // "encoder.layer."
  const char *query, *key, *value, *attention_out, *attention_norm, *up, *down, *output_norm;
  // The head: a matrix over the first token, an activation, and a matrix that gives the logits.
  const char *pooler, *classifier;
  Activation pooler_activation;
  bool dropout_before_pooler;
};

// Adds what all of these configs have in common to `config`, from the keys that BERT has for it; `absent`: what the family has
// where the config does not say.
struct EncoderDefaults {
  int64_t vocabulary = 30522, token_types = 2;
  bool first_position_after_padding = false;   // positions count from pad_token_id + 1, as RoBERTa's do
};
Status parse_encoder(const Json& json, ModelConfig& config, const EncoderDefaults& absent);
// The activation inside of blocks, or of the pooler, that a config names. Errors: unsupported_field.
Result<Activation> parse_activation(const Json& json, const char* key, const char* absent);
// Refuses what makes a decoder of an encoder, or changes its positions. Errors: unsupported_field.
Status check_encoder(const Json& json);

// The body, and a classifier's head where the config has labels.
Graph build_encoder(const EncoderNames& names, const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional);

}  // namespace stw
