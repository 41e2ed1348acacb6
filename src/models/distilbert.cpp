// DistilBERT (Sanh et al., arXiv 1910.01108): BERT with half of its blocks and no types of tokens, under names and keys of its own.
#include <cmath>

#include "src/models/encoder.h"

namespace stw {

namespace {

constexpr EncoderNames distilbert_names = {"distilbert.",    "LayerNorm",      "transformer.layer.", "attention.q_lin",   "attention.k_lin",
                                "attention.v_lin", "attention.out_lin", "sa_layer_norm",   "ffn.lin1",          "ffn.lin2",
                                "output_layer_norm", "pre_classifier", "classifier",       Activation::relu,    false};

Status parse_distilbert(const Json& json, ModelConfig& c) {
  STW_TRY(check_encoder(json));
  STW_ASSIGN(vocabulary, get_int(json, "vocab_size", 30522));
  STW_ASSIGN(positions, get_int(json, "max_position_embeddings", 512));
  STW_ASSIGN(width, get_int(json, "dim", 768));
  STW_ASSIGN(layers, get_int(json, "n_layers", 6));
  STW_ASSIGN(heads, get_int(json, "n_heads", 12));
  STW_ASSIGN(intermediate, get_int(json, "hidden_dim", 3072));
  STW_ASSIGN(activation, parse_activation(json, "activation", "gelu"));
  STW_ASSIGN(dropout, get_double(json, "dropout", 0.1));
  STW_ASSIGN(attention, get_double(json, "attention_dropout", 0.1));
  STW_ASSIGN(head, get_double(json, "seq_classif_dropout", 0.2));
  STW_ASSIGN(range, get_double(json, "initializer_range", 0.02));
  if (heads < 1 || heads > width || width % heads != 0)
    return Error{Code::unsupported_field, "dim " + std::to_string(width) + " is not a multiple of n_heads " + std::to_string(heads)};
  c.vocabulary = vocabulary;
  c.positions = positions;
  c.width = c.embedding_width = width;
  c.layers = layers;
  c.heads = c.kv_heads = static_cast<int>(heads);
  c.head_dim = static_cast<int>(width / heads);
  c.intermediate = intermediate;
  c.gelu = activation;
  c.embedding_dropout = c.residual_dropout = static_cast<float>(dropout);
  c.attention_dropout = static_cast<float>(attention);
  c.head_dropout = static_cast<float>(head);
  c.init_std = static_cast<float>(range);
  c.epsilon = 1e-12f;
  c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  return ok();
}

Graph build_distilbert(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) { return build_encoder(distilbert_names, c, sequence, compute, optional); }

constexpr DropoutRate distilbert_rates[] = {{"dropout", &ModelConfig::embedding_dropout}, {"dropout", &ModelConfig::residual_dropout},
                                 {"attention_dropout", &ModelConfig::attention_dropout}, {"seq_classif_dropout", &ModelConfig::head_dropout}};
constexpr const char* distilbert_head[] = {"pre_classifier.weight", "pre_classifier.bias", "classifier.weight", "classifier.bias"};

constexpr Architecture distilbert() {
  Architecture a{"distilbert", parse_distilbert, build_distilbert, "DistilBert", "distilbert.", distilbert_rates};
  a.is_encoder = true;
  a.head_parameters = distilbert_head;
  return a;
}

}  // namespace

const Architecture distilbert_architecture = distilbert();

}  // namespace stw
