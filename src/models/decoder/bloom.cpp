// BLOOM (BigScience, arXiv 2211.05100): linear biases of attention scores in place of positions (ALiBi),
// LayerNorm after the embedding and before each half of a block, GELU, biases in all matrices. Source:
// transformers, modeling_bloom.py.
#include <algorithm>
#include <cmath>

#include "src/models/model.h"

namespace stw {

namespace {

Status parse_bloom(const Json& json, ModelConfig& c) {
  STW_ASSIGN(vocabulary, get_int(json, "vocab_size", 250880));
  STW_ASSIGN(positions, get_int(json, "seq_length", 2048));  // the training length: the model has no limit
  STW_ASSIGN(width, get_size(json, "hidden_size", "n_embed", 64));
  STW_ASSIGN(layers, get_size(json, "n_layer", "num_hidden_layers", 2));
  STW_ASSIGN(heads, get_size(json, "n_head", "num_attention_heads", 8));
  // parse_model refuses absurd widths later. Until then their multiples must not overflow.
  const int64_t inner = 4 * std::clamp<int64_t>(width, 0, int64_t{1} << 40);
  STW_ASSIGN(given_inner, get_int(json, "n_inner", inner));
  STW_ASSIGN(epsilon, get_double(json, "layer_norm_epsilon", 1e-5));
  STW_ASSIGN(attention, get_double(json, "attention_dropout", 0.0));
  STW_ASSIGN(residual, get_double(json, "hidden_dropout", 0.0));
  STW_ASSIGN(range, get_double(json, "initializer_range", 0.02));
  STW_ASSIGN(tied, get_bool(json, "tie_word_embeddings", true));
  STW_ASSIGN(normed_residual, get_bool(json, "apply_residual_connection_post_layernorm", false));
  STW_ASSIGN(slices, get_int(json, "pretraining_tp", 1));
  STW_ASSIGN(in_slices, get_bool(json, "slow_but_exact", false));
  if (heads < 1 || heads > width || width % heads != 0)
    return Error{Code::unsupported_field, "hidden_size " + std::to_string(width) +
                                              " is not a multiple of n_head " + std::to_string(heads)};
  if (given_inner != inner)
    return Error{Code::unsupported_field,
                 "n_inner is " + std::to_string(given_inner) + ": expected 4 times hidden_size"};
  if (normed_residual)
    return Error{Code::unsupported_field, "apply_residual_connection_post_layernorm is not supported"};
  // Either setting alone changes nothing. With both, transformers leaves out the biases of the matrices that
  // it slices.
  if (in_slices && slices > 1)
    return Error{Code::unsupported_field,
                 "slow_but_exact with pretraining_tp " + std::to_string(slices) + " is not supported"};
  c.vocabulary = vocabulary;
  c.positions = positions;
  c.width = width;
  c.layers = layers;
  c.heads = c.kv_heads = static_cast<int>(heads);
  c.head_dim = static_cast<int>(width / heads);
  c.intermediate = inner;
  c.epsilon = static_cast<float>(epsilon);
  c.attention_dropout = static_cast<float>(attention);
  c.residual_dropout = static_cast<float>(residual);
  c.init_std = static_cast<float>(range);
  c.tied = tied;
  c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  return ok();
}

Result<Graph> build_bloom(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  GraphBuilder b("bloom", sequence, c.vocabulary, compute, optional);
  const auto matrix = [&](const std::string& name, int64_t inputs, int64_t features,
                          WeightLayout layout = {}) {
    const int weight =
        b.parameter(name + ".weight", {features, inputs}, Initializer::normal, c.init_std, layout);
    return std::vector<LinearWeights>{
        {weight, b.parameter(name + ".bias", {features}, Initializer::zeros, 0, layout)}};
  };
  const auto norm = [&](int x, const std::string& name, const char* label) {
    return layer_norm(b, c, x, name, label);
  };
  AttentionRule rule;
  rule.alibi = true;
  const WeightLayout by_head{static_cast<uint64_t>(c.heads), 3};

  b.begin(SegmentKind::embedding, -1, -1);
  const int table = b.parameter("transformer.word_embeddings.weight", {c.vocabulary, c.width},
                                Initializer::normal, c.init_std);
  int x =
      norm(b.embedding(table, -1, "embedding"), "transformer.word_embeddings_layernorm", "embedding_norm");
  b.end(x);

  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string name = "transformer.h." + std::to_string(layer) + ".";
    b.begin(SegmentKind::block, static_cast<int>(layer), x);
    int n = norm(x, name + "input_layernorm", "attn_norm");
    const int qkv = b.linear(
        n, matrix(name + "self_attention.query_key_value", c.width, 3 * c.width, by_head), false, "qkv");
    const int attended = b.attention(qkv, c.heads, c.heads, c.head_dim, c.attention_scale,
                                     c.attention_dropout, "attention", rule);
    int out = b.linear(attended, matrix(name + "self_attention.dense", c.width, c.width), false, "attn_out");
    const int middle = b.add(x, b.dropout(out, c.residual_dropout, "attn_dropout"), "attn_residual");
    n = norm(middle, name + "post_attention_layernorm", "ffn_norm");
    const int up = b.linear(n, matrix(name + "mlp.dense_h_to_4h", c.width, c.intermediate), false, "ffn_up");
    out = b.linear(b.activation(up, Activation::gelu_tanh, "gelu"),
                   matrix(name + "mlp.dense_4h_to_h", c.intermediate, c.width), false, "ffn_out");
    x = b.add(middle, b.dropout(out, c.residual_dropout, "ffn_dropout"), "ffn_residual");
    b.end(x);
  }

  b.begin(SegmentKind::final, -1, x);
  x = b.dropout(norm(x, "transformer.ln_f", "final_norm"), c.head_dropout, "head_dropout");
  b.end(x);
  add_head(b, c, x, table);
  return b.finish();
}

constexpr DropoutRate bloom_rates[] = {{"attention_dropout", &ModelConfig::attention_dropout},
                                       {"hidden_dropout", &ModelConfig::residual_dropout}};

}  // namespace

extern const Architecture bloom_architecture = {
    .model_type = "bloom",
    .parse = parse_bloom,
    .build = build_bloom,
    .class_name = "Bloom",
    .optional_prefix = "transformer.",
    .dropouts = bloom_rates,
    .token_head = {.module = "classifier", .fallback_rate = &ModelConfig::residual_dropout}};

}  // namespace stw
