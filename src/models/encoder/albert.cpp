// ALBERT (Lan et al., arXiv 1909.11942): BERT whose blocks share one set of parameters, with embeddings
// narrower than the blocks.
#include "src/models/encoder/encoder.h"

namespace stw {

namespace {

constexpr EncoderNames names_of_albert() {
  EncoderNames n{"albert.",
                 "LayerNorm",
                 "encoder.albert_layer_groups.0.albert_layers.",
                 "attention.query",
                 "attention.key",
                 "attention.value",
                 "attention.dense",
                 "attention.LayerNorm",
                 "ffn",
                 "ffn_output",
                 "full_layer_layer_norm",
                 "albert.pooler",
                 "classifier",
                 Activation::tanh,
                 false};
  n.projection = "encoder.embedding_hidden_mapping_in";
  n.always_projects = n.shares_block = true;
  n.feed_forward_dropout = false;
  return n;
}
constexpr EncoderNames albert_names = names_of_albert();

constexpr EncoderKeys keys_of_albert() {
  EncoderKeys keys;
  keys.head_dropout = "classifier_dropout_prob";
  return keys;
}

Status parse_albert(const Json& json, ModelConfig& c) {
  for (const char* key : {"num_hidden_groups", "inner_group_num"}) {
    STW_ASSIGN(count, get_int(json, key, 1));
    if (count != 1)
      return Error{Code::unsupported_field,
                   std::string(key) + " " + std::to_string(count) +
                       " is not supported: expected 1, one block of parameters for all layers"};
  }
  EncoderDefaults absent;
  absent.vocabulary = 30000, absent.width = 4096, absent.heads = 64, absent.intermediate = 16384;
  absent.activation = "gelu_new";
  absent.dropout = 0;
  absent.head_dropout = 0.1;
  STW_TRY(parse_encoder(json, c, absent, keys_of_albert()));
  STW_ASSIGN(embeddings, get_int(json, "embedding_size", 128));
  if (embeddings < 1)
    return Error{Code::unsupported_field,
                 "embedding_size is " + std::to_string(embeddings) + ": expected 1 or more"};
  c.embedding_width = embeddings;
  return ok();
}

Result<Graph> build_albert(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  return build_encoder(albert_names, c, sequence, compute, optional);
}

constexpr DropoutRate albert_rates[] = {{"hidden_dropout_prob", &ModelConfig::embedding_dropout},
                                        {"hidden_dropout_prob", &ModelConfig::residual_dropout},
                                        {"attention_probs_dropout_prob", &ModelConfig::attention_dropout},
                                        {"classifier_dropout_prob", &ModelConfig::head_dropout}};
constexpr const char* albert_head[] = {"albert.pooler.weight", "albert.pooler.bias", "classifier.weight",
                                       "classifier.bias"};

constexpr MaskedHead albert_masked = {"predictions.dense", "predictions.LayerNorm", "predictions.decoder",
                                      "predictions.bias"};

}  // namespace

extern const Architecture albert_architecture = {.model_type = "albert",
                                                 .parse = parse_albert,
                                                 .build = build_albert,
                                                 .class_name = "Albert",
                                                 .optional_prefix = "albert.",
                                                 .dropouts = albert_rates,
                                                 .is_encoder = true,
                                                 .head_parameters = albert_head,
                                                 .token_head = {.module = "classifier",
                                                                .dropout = "classifier_dropout_prob",
                                                                .fallback_rate = &ModelConfig::head_dropout},
                                                 .span_head = {.module = "qa_outputs"},
                                                 .masked_head = &albert_masked};

}  // namespace stw
