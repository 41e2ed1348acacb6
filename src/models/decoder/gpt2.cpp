// GPT-2 (Radford et al. 2019): learned positions, LayerNorm before each half of a block, one matrix for
// queries, keys and values, GELU. Files store weights transposed, in Conv1D's order (inputs, features).
#include <algorithm>
#include <cmath>

#include "src/models/model.h"

namespace stw {

namespace {

struct Gpt2Config {  // the family's own part of a configuration
  Activation gelu;
};

Status parse_gpt2(const Json& json, ModelConfig& c) {
  STW_ASSIGN(vocabulary, get_int(json, "vocab_size", 50257));
  STW_ASSIGN(positions, get_size(json, "n_positions", "max_position_embeddings", 1024));
  STW_ASSIGN(width, get_size(json, "n_embd", "hidden_size", 768));
  STW_ASSIGN(layers, get_size(json, "n_layer", "num_hidden_layers", 12));
  STW_ASSIGN(heads, get_size(json, "n_head", "num_attention_heads", 12));
  // Absurd widths are refused below. Until then their multiples must not overflow.
  STW_ASSIGN(inner, get_int(json, "n_inner", 4 * std::clamp<int64_t>(width, 0, int64_t{1} << 40)));
  STW_ASSIGN(epsilon, get_double(json, "layer_norm_epsilon", 1e-5));
  STW_ASSIGN(activation, get_string(json, "activation_function", "gelu_new"));
  STW_ASSIGN(embedding, get_double(json, "embd_pdrop", 0.1));
  STW_ASSIGN(attention, get_double(json, "attn_pdrop", 0.1));
  STW_ASSIGN(residual, get_double(json, "resid_pdrop", 0.1));
  STW_ASSIGN(range, get_double(json, "initializer_range", 0.02));
  STW_ASSIGN(tied, get_bool(json, "tie_word_embeddings", true));
  STW_ASSIGN(scale, get_bool(json, "scale_attn_weights", true));
  STW_ASSIGN(by_layer, get_bool(json, "scale_attn_by_inverse_layer_idx", false));
  STW_ASSIGN(cross, get_bool(json, "add_cross_attention", false));
  if (heads < 1 || heads > width || width % heads != 0)
    return Error{Code::unsupported_field,
                 "n_embd " + std::to_string(width) + " is not a multiple of n_head " + std::to_string(heads)};
  if (by_layer) return Error{Code::unsupported_field, "scale_attn_by_inverse_layer_idx is not supported"};
  if (cross) return Error{Code::unsupported_field, "add_cross_attention is not supported"};
  Gpt2Config own{Activation::gelu_tanh};
  if (activation == "gelu") own.gelu = Activation::gelu_erf;
  else if (activation == "gelu_new" || activation == "gelu_pytorch_tanh") own.gelu = Activation::gelu_tanh;
  else return Error{Code::unsupported_field, "activation_function \"" + activation + "\" is not supported"};
  c.vocabulary = vocabulary;
  c.positions = positions;
  c.width = width;
  c.layers = layers;
  c.heads = c.kv_heads = static_cast<int>(heads);
  c.head_dim = static_cast<int>(width / heads);
  c.intermediate = inner;
  c.epsilon = static_cast<float>(epsilon);
  c.embedding_dropout = static_cast<float>(embedding);
  c.attention_dropout = static_cast<float>(attention);
  c.residual_dropout = static_cast<float>(residual);
  c.init_std = static_cast<float>(range);
  c.tied = tied;
  c.attention_scale = scale ? static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim))) : 1.0f;
  c.family = own;
  return ok();
}

Result<Graph> build_gpt2(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  const auto& own = std::any_cast<const Gpt2Config&>(c.family);
  GraphBuilder b("gpt2", sequence, c.vocabulary, compute, optional);
  // Projections onto the residual stream start smaller, so that its variance does not grow with depth.
  const float residual_std = static_cast<float>(c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers)));
  auto matrix = [&](const std::string& name, int64_t inputs, int64_t features, float std) {
    const int weight = b.parameter(name + ".weight", {inputs, features}, Initializer::normal, std);
    return std::vector<LinearWeights>{{weight, b.parameter(name + ".bias", {features}, Initializer::zeros)}};
  };
  auto norm = [&](int x, const std::string& name, const char* label) {
    return layer_norm(b, c, x, name, label);
  };

  b.begin(SegmentKind::embedding, -1, -1);
  const int table =
      b.parameter("transformer.wte.weight", {c.vocabulary, c.width}, Initializer::normal, c.init_std);
  const int positions =
      b.parameter("transformer.wpe.weight", {c.positions, c.width}, Initializer::normal, c.init_std);
  int x = b.dropout(b.embedding(table, positions, "embedding"), c.embedding_dropout, "embedding_dropout");
  b.end(x);

  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string name = "transformer.h." + std::to_string(layer) + ".";
    b.begin(SegmentKind::block, static_cast<int>(layer), x);
    int n = norm(x, name + "ln_1", "attn_norm");
    const int qkv = b.linear(n, matrix(name + "attn.c_attn", c.width, 3 * c.width, c.init_std), true, "qkv");
    const int attended =
        b.attention(qkv, c.heads, c.heads, c.head_dim, c.attention_scale, c.attention_dropout, "attention");
    int out =
        b.linear(attended, matrix(name + "attn.c_proj", c.width, c.width, residual_std), true, "attn_out");
    const int middle = b.add(x, b.dropout(out, c.residual_dropout, "attn_dropout"), "attn_residual");
    n = norm(middle, name + "ln_2", "ffn_norm");
    const int up =
        b.linear(n, matrix(name + "mlp.c_fc", c.width, c.intermediate, c.init_std), true, "ffn_up");
    const int activated = b.activation(up, own.gelu, "gelu");
    out = b.linear(activated, matrix(name + "mlp.c_proj", c.intermediate, c.width, residual_std), true,
                   "ffn_out");
    x = b.add(middle, b.dropout(out, c.residual_dropout, "ffn_dropout"), "ffn_residual");
    b.end(x);
  }

  b.begin(SegmentKind::final, -1, x);
  x = b.dropout(norm(x, "transformer.ln_f", "final_norm"), c.head_dropout, "head_dropout");
  b.end(x);
  add_head(b, c, x, table);
  return b.finish();
}

constexpr DropoutRate rates[] = {{"embd_pdrop", &ModelConfig::embedding_dropout},
                                 {"attn_pdrop", &ModelConfig::attention_dropout},
                                 {"resid_pdrop", &ModelConfig::residual_dropout}};

}  // namespace

extern const Architecture gpt2_architecture = {.model_type = "gpt2",
                                               .parse = parse_gpt2,
                                               .build = build_gpt2,
                                               .class_name = "GPT2",
                                               .optional_prefix = "transformer.",
                                               .dropouts = rates,
                                               .token_head = {.module = "classifier"}};

}  // namespace stw
