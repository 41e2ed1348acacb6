// DistilBERT (Sanh et al., arXiv 1910.01108): BERT with half as many blocks and no token types, under its own
// names and keys.
#include "src/models/encoder/encoder.h"

namespace stw {

namespace {

constexpr EncoderNames distilbert_names = {.prefix = "distilbert.",
                                           .embeddings_norm = "LayerNorm",
                                           .blocks = "transformer.layer.",
                                           .query = "attention.q_lin",
                                           .key = "attention.k_lin",
                                           .value = "attention.v_lin",
                                           .attention_out = "attention.out_lin",
                                           .attention_norm = "sa_layer_norm",
                                           .up = "ffn.lin1",
                                           .down = "ffn.lin2",
                                           .output_norm = "output_layer_norm",
                                           .pooler = "pre_classifier",
                                           .classifier = "classifier",
                                           .pooler_activation = Activation::relu,
                                           .dropout_before_pooler = false,
                                           .attention_output_dropout = false};

constexpr EncoderKeys keys_of_distilbert = {
    "dim",        "n_layers", "n_heads",           "hidden_dim",
    "activation", "dropout",  "attention_dropout", "seq_classif_dropout"};

Status parse_distilbert(const Json& json, ModelConfig& c) {
  EncoderDefaults absent;
  absent.layers = 6;
  absent.token_types = 0;
  absent.head_dropout = 0.2;
  STW_TRY(parse_encoder(json, c, absent, keys_of_distilbert));
  c.epsilon = 1e-12f;  // transformers ignores the config's value
  return ok();
}

Result<Graph> build_distilbert(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  return build_encoder(distilbert_names, c, sequence, compute, optional);
}

constexpr DropoutRate distilbert_rates[] = {{"dropout", &ModelConfig::embedding_dropout},
                                            {"dropout", &ModelConfig::residual_dropout},
                                            {"attention_dropout", &ModelConfig::attention_dropout},
                                            {"seq_classif_dropout", &ModelConfig::head_dropout}};
constexpr const char* distilbert_head[] = {"pre_classifier.weight", "pre_classifier.bias",
                                           "classifier.weight", "classifier.bias"};
constexpr MaskedHead distilbert_masked = {"vocab_transform", "vocab_layer_norm", "vocab_projector",
                                          "vocab_projector.bias"};

}  // namespace

extern const Architecture distilbert_architecture = {
    .model_type = "distilbert",
    .parse = parse_distilbert,
    .build = build_distilbert,
    .class_name = "DistilBert",
    .optional_prefix = "distilbert.",
    .dropouts = distilbert_rates,
    .is_encoder = true,
    .head_parameters = distilbert_head,
    .token_head = {.module = "classifier",
                   .dropout = nullptr,
                   .fallback_rate = &ModelConfig::residual_dropout},
    .span_head = {.module = "qa_outputs", .dropout = "qa_dropout"},
    .masked_head = &distilbert_masked};

}  // namespace stw
