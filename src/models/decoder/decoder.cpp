#include "src/models/decoder/decoder.h"

#include <cmath>

#include "src/base/numbers.h"

namespace stw {

Result<DecoderConfig> parse_decoder(const Json& json, ModelConfig& c, const DecoderDefaults& absent) {
  const auto size = [&](const char* key, std::optional<int64_t> otherwise) {
    return otherwise ? get_int(json, key, *otherwise) : get_int(json, key);
  };
  STW_ASSIGN(vocabulary, size("vocab_size", absent.vocabulary));
  STW_ASSIGN(positions, size("max_position_embeddings", absent.positions));
  STW_ASSIGN(width, size("hidden_size", absent.width));
  STW_ASSIGN(layers, size("num_hidden_layers", absent.layers));
  STW_ASSIGN(heads, size("num_attention_heads", absent.heads));
  STW_ASSIGN(intermediate, size("intermediate_size", absent.intermediate));
  const bool is_default =
      absent.kv_heads && heads % *absent.kv_heads == 0 && !json.find("num_key_value_heads");
  STW_ASSIGN(kv_heads, get_int(json, "num_key_value_heads", is_default ? *absent.kv_heads : heads));
  STW_ASSIGN(epsilon, get_double(json, "rms_norm_eps", absent.epsilon));
  STW_ASSIGN(dropout, get_double(json, "attention_dropout", 0.0));
  STW_ASSIGN(range, get_double(json, "initializer_range", 0.02));
  STW_ASSIGN(tied, get_bool(json, "tie_word_embeddings", absent.tied));
  if (heads < 1 || heads > 65536 || kv_heads < 1 || kv_heads > heads)
    return Error{Code::unsupported_field, std::to_string(heads) + " heads and " + std::to_string(kv_heads) +
                                              " key-value heads make no sense"};
  STW_ASSIGN(head_dim, get_int(json, "head_dim", absent.head_dim.value_or(width / heads)));
  if (head_dim < 1 || head_dim > 65536)
    return Error{Code::unsupported_field, "head_dim is " + std::to_string(head_dim)};
  c.vocabulary = vocabulary;
  c.positions = positions;
  c.width = width;
  c.layers = layers;
  c.heads = static_cast<int>(heads);
  c.kv_heads = static_cast<int>(kv_heads);
  c.head_dim = static_cast<int>(head_dim);
  c.intermediate = intermediate;
  c.epsilon = static_cast<float>(epsilon);
  c.attention_dropout = static_cast<float>(dropout);
  c.init_std = static_cast<float>(range);
  c.tied = tied;
  c.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
  DecoderConfig own;
  own.layers = full_attention(layers);
  return own;
}

Result<DecoderConfig> parse_llama_like(const Json& json, ModelConfig& c, const DecoderDefaults& absent) {
  STW_ASSIGN(own, parse_decoder(json, c, absent));
  STW_ASSIGN(activation, get_string(json, "hidden_act", "silu"));
  if (activation != "silu")
    return Error{Code::unsupported_field, "hidden_act \"" + activation + "\" is not supported"};
  STW_ASSIGN(rotary, parse_rotary(json, c.head_dim, {c.positions, absent.original_positions}, absent.theta));
  if (rotary.rotary_dim != c.head_dim && !absent.partial_rotary)
    return Error{Code::unsupported_field, "partial_rotary_factor is not supported"};
  own.rotary = {rotary};
  return std::move(own);
}

static float rounded_to(Format format, float x) {
  if (format == Format::bf16) return from_bf16(to_bf16(x));
  return format == Format::f16 ? from_f16(to_f16(x)) : x;
}

Graph build_decoder(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  const auto& own = std::any_cast<const DecoderConfig&>(c.family);
  GraphBuilder b(c.architecture, sequence, c.vocabulary, compute, optional);
  auto matrix = [&](const std::string& name, int64_t inputs, int64_t features, bool bias) {
    const int weight = b.parameter(name + ".weight", {features, inputs}, Initializer::normal, c.init_std);
    return LinearWeights{weight, bias ? b.parameter(name + ".bias", {features}, Initializer::zeros) : -1};
  };
  // Matrices that share an input and whose outputs are concatenated, or one matrix that joins them.
  struct Part {
    const char* name;
    int64_t features;
  };
  auto side_by_side = [&](const std::string& prefix, const char* joined, std::initializer_list<Part> parts,
                          bool bias) {
    std::vector<LinearWeights> list;
    int64_t features = 0;
    for (const Part& part : parts) features += part.features;
    if (own.joined_matrices)
      return std::vector<LinearWeights>{matrix(prefix + joined, c.width, features, bias)};
    for (const Part& part : parts) list.push_back(matrix(prefix + part.name, c.width, part.features, bias));
    return list;
  };
  // The effective weight starts at 1.
  const Initializer norm_start = own.norm_weight_offset == 0 ? Initializer::ones : Initializer::zeros;
  auto norm = [&](int x, const std::string& name, const char* label) {
    return b.norm(x, b.parameter(name + ".weight", {c.width}, norm_start), -1, c.epsilon, true, label,
                  own.norm_weight_offset);
  };
  const int64_t queries = int64_t{c.heads} * c.head_dim, keys = int64_t{c.kv_heads} * c.head_dim;

  for (const RotaryConfig& rotary : own.rotary)
    b.rotary(rotary_frequencies(rotary, sequence), static_cast<float>(rotary.table_scale));
  b.begin(SegmentKind::embedding, -1, -1);
  const int table =
      b.parameter("model.embed_tokens.weight", {c.vocabulary, c.width}, Initializer::normal, c.init_std);
  // The factor is rounded to the compute type, as in transformers.
  int x = b.scale(b.embedding(table, -1, "embedding"), rounded_to(compute, own.embedding_scale),
                  "embedding_scale");
  b.end(x);

  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const LayerAttention& how = own.layers[static_cast<size_t>(layer)];
    const std::string name = "model.layers." + std::to_string(layer) + ".";
    const std::string attn = name + "self_attn.", mlp = name + "mlp.";
    b.begin(SegmentKind::block, static_cast<int>(layer), x);
    int n = norm(x, name + "input_layernorm", "attn_norm");
    int qkv = b.linear(n,
                       side_by_side(attn, "qkv_proj",
                                    {{"q_proj", queries}, {"k_proj", keys}, {"v_proj", keys}}, own.qkv_bias),
                       false, "qkv");
    if (own.qk_norm) {
      const int of_queries = b.parameter(attn + "q_norm.weight", {c.head_dim}, norm_start),
                of_keys = b.parameter(attn + "k_norm.weight", {c.head_dim}, norm_start);
      qkv = b.qk_norm(qkv, of_queries, of_keys, c.heads, c.kv_heads, c.epsilon, "qk_norm",
                      own.norm_weight_offset);
    }
    if (how.rotary >= 0) qkv = b.rope(qkv, how.rotary, c.heads, c.kv_heads, c.head_dim, "qkv_rope");
    const int attended = b.attention(qkv, c.heads, c.kv_heads, c.head_dim, c.attention_scale,
                                     c.attention_dropout, "attention", {.window = how.window});
    int out =
        b.linear(attended, {matrix(attn + "o_proj", queries, c.width, own.output_bias)}, false, "attn_out");
    if (own.norms_after) out = norm(out, name + "post_attention_layernorm", "attn_out_norm");
    const int middle = b.add(x, b.dropout(out, c.residual_dropout, "attn_dropout"), "attn_residual");
    n = norm(middle, name + (own.norms_after ? "pre_feedforward_layernorm" : "post_attention_layernorm"),
             "ffn_norm");
    const int gate_up =
        b.linear(n,
                 side_by_side(mlp, "gate_up_proj",
                              {{"gate_proj", c.intermediate}, {"up_proj", c.intermediate}}, own.mlp_bias),
                 false, "gate_up");
    const int activated = b.swiglu(gate_up, own.gate == Gate::silu ? "swiglu" : "geglu", own.gate);
    out = b.linear(activated, {matrix(mlp + "down_proj", c.intermediate, c.width, own.mlp_bias)}, false,
                   "ffn_out");
    if (own.norms_after) out = norm(out, name + "post_feedforward_layernorm", "ffn_out_norm");
    x = b.add(middle, b.dropout(out, c.residual_dropout, "ffn_dropout"), "ffn_residual");
    b.end(x);
  }

  b.begin(SegmentKind::final, -1, x);
  x = b.dropout(norm(x, "model.norm", "final_norm"), c.head_dropout, "head_dropout");
  b.end(x);
  add_head(b, c, x, table);
  return b.finish();
}

}  // namespace stw
