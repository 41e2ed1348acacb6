// Llama (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen2 and Qwen3: rotary positions, RMSNorm before each half of a block,
// grouped-query attention, SwiGLU. Qwen2 differs by biases of queries, keys and values, Qwen3 by norms of queries and keys, head by
// head, Mistral by a window that attention reaches.
#include <algorithm>
#include <cmath>

#include "src/models/model.h"

namespace stw {

namespace {

// Null where there is none, or an empty one.
Result<const Json*> find_rope(const Json& json, const char* key) {
  const Json* found = json.find(key);
  if (!found || found->is_null()) return nullptr;
  STW_ASSIGN(rope, get_object(json, key));
  return rope->members().empty() ? nullptr : rope;
}

// Newer files hold everything in "rope_parameters", older ones theta beside "rope_scaling", and some theta beside the former.
// Source: transformers, modeling_rope_utils.py: where both are there, the older one alone counts.
Status parse_rope(const Json& json, ModelConfig& c) {
  STW_ASSIGN(older, find_rope(json, "rope_scaling"));
  STW_ASSIGN(newer, find_rope(json, "rope_parameters"));
  const Json* scaling = older ? older : newer;
  const Json& first = scaling ? *scaling : json;
  STW_ASSIGN(theta_beside, get_double(json, "rope_theta", 10000.0));
  STW_ASSIGN(theta, get_double(first, "rope_theta", theta_beside));
  if (!(theta > 0)) return Error{Code::unsupported_field, "rope_theta must be positive"};
  STW_ASSIGN(partial_beside, get_double(json, "partial_rotary_factor", 1.0));
  STW_ASSIGN(partial, get_double(first, "partial_rotary_factor", partial_beside));
  if (partial != 1) return Error{Code::unsupported_field, "partial_rotary_factor is not supported"};
  c.theta = theta;
  if (!scaling) return ok();
  STW_ASSIGN(legacy, get_string(*scaling, "type", "default"));
  STW_ASSIGN(type, get_string(*scaling, "rope_type", legacy));
  if (type == "default") return ok();
  if (type != "linear" && type != "llama3") return Error{Code::unsupported_field, "rope scaling \"" + type + "\" is not supported"};
  STW_ASSIGN(factor, get_double(*scaling, "factor"));
  if (!(factor >= 1)) return Error{Code::unsupported_field, "rope scaling factor is below 1"};
  c.scaling_factor = factor;
  c.scaling = RopeScaling::linear;
  if (type == "linear") return ok();
  STW_ASSIGN(low, get_double(*scaling, "low_freq_factor"));
  STW_ASSIGN(high, get_double(*scaling, "high_freq_factor"));
  STW_ASSIGN(original_within, get_int(*scaling, "original_max_position_embeddings", c.positions));
  STW_ASSIGN(original, get_int(json, "original_max_position_embeddings", original_within));
  if (!(low > 0) || !(high > low) || original < 1) return Error{Code::unsupported_field, "rope scaling factors make no sense"};
  c.low_frequency_factor = low;
  c.high_frequency_factor = high;
  c.original_positions = original;
  c.scaling = RopeScaling::llama3;
  return ok();
}

// `absent_kv_heads`: how many key-value heads there are where the config does not say and heads can share them; else, and where it is
// none or the config says null, as many as heads. `absent_head_dim`: likewise; else what makes heads fill the width.
Status parse_common(const Json& json, ModelConfig& c, std::optional<int64_t> absent_kv_heads, std::optional<int64_t> absent_head_dim = std::nullopt) {
  STW_ASSIGN(vocabulary, get_int(json, "vocab_size"));
  STW_ASSIGN(positions, get_int(json, "max_position_embeddings"));
  STW_ASSIGN(width, get_int(json, "hidden_size"));
  STW_ASSIGN(layers, get_int(json, "num_hidden_layers"));
  STW_ASSIGN(heads, get_int(json, "num_attention_heads"));
  STW_ASSIGN(intermediate, get_int(json, "intermediate_size"));
  const bool is_default = absent_kv_heads && heads % *absent_kv_heads == 0 && !json.find("num_key_value_heads");
  STW_ASSIGN(kv_heads, get_int(json, "num_key_value_heads", is_default ? *absent_kv_heads : heads));
  STW_ASSIGN(epsilon, get_double(json, "rms_norm_eps", 1e-6));
  STW_ASSIGN(activation, get_string(json, "hidden_act", "silu"));
  STW_ASSIGN(dropout, get_double(json, "attention_dropout", 0.0));
  STW_ASSIGN(range, get_double(json, "initializer_range", 0.02));
  STW_ASSIGN(tied, get_bool(json, "tie_word_embeddings", false));
  if (activation != "silu") return Error{Code::unsupported_field, "hidden_act \"" + activation + "\" is not supported"};
  if (heads < 1 || heads > 65536 || kv_heads < 1 || kv_heads > heads)
    return Error{Code::unsupported_field, std::to_string(heads) + " heads and " + std::to_string(kv_heads) + " key-value heads make no sense"};
  STW_ASSIGN(head_dim, get_int(json, "head_dim", absent_head_dim.value_or(width / heads)));
  if (head_dim < 1 || head_dim > 65536) return Error{Code::unsupported_field, "head_dim is " + std::to_string(head_dim)};
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
  return parse_rope(json, c);
}

Status parse_llama(const Json& json, ModelConfig& c) {
  STW_TRY(parse_common(json, c, std::nullopt));
  STW_ASSIGN(attention_bias, get_bool(json, "attention_bias", false));
  STW_ASSIGN(mlp_bias, get_bool(json, "mlp_bias", false));
  c.qkv_bias = c.output_bias = attention_bias;
  c.mlp_bias = mlp_bias;
  return ok();
}

// A token sees `sliding_window` tokens, itself among them: in samples no longer than that, all. So they may not be longer.
Status parse_mistral(const Json& json, ModelConfig& c) {
  STW_TRY(parse_common(json, c, 8));   // Source, as of the window: transformers, configuration_mistral.py
  constexpr int64_t usual = 4096;
  const Json* window = json.find("sliding_window");
  if (window && window->is_null()) return ok();
  STW_ASSIGN(length, get_int(json, "sliding_window", usual));
  if (length < 1) return Error{Code::unsupported_field, "sliding_window is " + std::to_string(length)};
  c.positions = std::min(c.positions, length);
  return ok();
}

Status refuse_sliding_window(const Json& json) {
  STW_ASSIGN(sliding, get_bool(json, "use_sliding_window", false));
  if (sliding) return Error{Code::unsupported_field, "use_sliding_window is not supported"};
  return ok();
}

Status parse_qwen2(const Json& json, ModelConfig& c) {
  STW_TRY(parse_common(json, c, 32));   // Source: transformers, configuration_qwen2.py
  c.qkv_bias = true;
  return refuse_sliding_window(json);
}

Status parse_qwen3(const Json& json, ModelConfig& c) {
  STW_TRY(parse_common(json, c, 32, 128));   // Source: transformers, configuration_qwen3.py
  STW_ASSIGN(attention_bias, get_bool(json, "attention_bias", false));
  c.qkv_bias = c.output_bias = attention_bias;
  c.qk_norm = true;
  return refuse_sliding_window(json);
}

Graph build_llama(const ModelConfig& c, int64_t sequence, Format compute, GraphInputs optional) {
  GraphBuilder b(c.architecture, sequence, c.vocabulary, compute, optional);
  auto matrix = [&](const std::string& name, int64_t inputs, int64_t features, bool bias) {
    const int weight = b.parameter(name + ".weight", {features, inputs}, Initializer::normal, c.init_std);
    return LinearWeights{weight, bias ? b.parameter(name + ".bias", {features}, Initializer::zeros) : -1};
  };
  auto norm = [&](int x, const std::string& name, const char* label) {
    return b.norm(x, b.parameter(name + ".weight", {c.width}, Initializer::ones), -1, c.epsilon, true, label);
  };
  const int64_t queries = int64_t{c.heads} * c.head_dim, keys = int64_t{c.kv_heads} * c.head_dim;

  b.rotary(rope_frequencies(c));
  b.begin(SegmentKind::embedding, -1, -1);
  const int table = b.parameter("model.embed_tokens.weight", {c.vocabulary, c.width}, Initializer::normal, c.init_std);
  int x = b.embedding(table, -1, "embedding");
  b.end(x);

  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const std::string name = "model.layers." + std::to_string(layer) + ".";
    const std::string attn = name + "self_attn.", mlp = name + "mlp.";
    b.begin(SegmentKind::block, static_cast<int>(layer), x);
    int n = norm(x, name + "input_layernorm", "attn_norm");
    const LinearWeights q = matrix(attn + "q_proj", c.width, queries, c.qkv_bias);
    const LinearWeights k = matrix(attn + "k_proj", c.width, keys, c.qkv_bias);
    const LinearWeights v = matrix(attn + "v_proj", c.width, keys, c.qkv_bias);
    int qkv = b.linear(n, {q, k, v}, false, "qkv");
    if (c.qk_norm) {
      const int of_queries = b.parameter(attn + "q_norm.weight", {c.head_dim}, Initializer::ones), of_keys = b.parameter(attn + "k_norm.weight", {c.head_dim}, Initializer::ones);
      qkv = b.qk_norm(qkv, of_queries, of_keys, c.heads, c.kv_heads, c.epsilon, "qk_norm");
    }
    qkv = b.rope(qkv, c.heads, c.kv_heads, c.head_dim, "qkv_rope");
    const int attended = b.attention(qkv, c.heads, c.kv_heads, c.head_dim, c.attention_scale, c.attention_dropout, "attention");
    int out = b.linear(attended, {matrix(attn + "o_proj", queries, c.width, c.output_bias)}, false, "attn_out");
    const int middle = b.add(x, out, "attn_residual");
    n = norm(middle, name + "post_attention_layernorm", "ffn_norm");
    const LinearWeights gate = matrix(mlp + "gate_proj", c.width, c.intermediate, c.mlp_bias);
    const LinearWeights up = matrix(mlp + "up_proj", c.width, c.intermediate, c.mlp_bias);
    const int activated = b.swiglu(b.linear(n, {gate, up}, false, "gate_up"), "swiglu");
    out = b.linear(activated, {matrix(mlp + "down_proj", c.intermediate, c.width, c.mlp_bias)}, false, "ffn_out");
    x = b.add(middle, out, "ffn_residual");
    b.end(x);
  }

  b.begin(SegmentKind::final, -1, x);
  x = norm(x, "model.norm", "final_norm");
  b.end(x);
  add_head(b, c, x, table);
  return b.finish();
}

}  // namespace

const Architecture llama_architecture = {"llama", parse_llama, build_llama, "Llama", "model."};
const Architecture mistral_architecture = {"mistral", parse_mistral, build_llama, "Mistral", "model."};
const Architecture qwen2_architecture = {"qwen2", parse_qwen2, build_llama, "Qwen2", "model."};
const Architecture qwen3_architecture = {"qwen3", parse_qwen3, build_llama, "Qwen3", "model."};

}  // namespace stw
