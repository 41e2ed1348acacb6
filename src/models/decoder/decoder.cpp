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

namespace {

float rounded_to(Format format, float x) {
  if (format == Format::bf16) return from_bf16(to_bf16(x));
  return format == Format::f16 ? from_f16(to_f16(x)) : x;
}

class DecoderBuilder {
 public:
  DecoderBuilder(const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional)
      : c_(config),
        own_(std::any_cast<const DecoderConfig&>(config.family)),
        compute_(compute),
        b_(architecture_of(config).model_type, sequence, config.vocabulary, compute, optional) {
    for (const RotaryConfig& rotary : own_.rotary)
      b_.rotary(rotary_frequencies(rotary, sequence), static_cast<float>(rotary.table_scale));
  }

  Result<Graph> build() {
    int x = embeddings();
    for (int64_t layer = 0; layer < c_.layers; ++layer) {
      const std::string name = "model.layers." + std::to_string(layer) + ".";
      b_.begin(SegmentKind::block, static_cast<int>(layer), x);
      x = attention(x, name, own_.layers[layer]);
      x = feed_forward(x, name);
      b_.end(x);
    }
    b_.begin(SegmentKind::final, -1, x);
    x = b_.dropout(norm(x, "model.norm", "final_norm"), c_.head_dropout, "head_dropout");
    b_.end(x);
    add_head(b_, c_, x, words_);
    return b_.finish();
  }

 private:
  struct Part {
    const char* name;
    int64_t features;
  };

  LinearWeights matrix(const std::string& name, int64_t inputs, int64_t features, bool bias) {
    const int weight = b_.parameter(name + ".weight", {features, inputs}, Initializer::normal, c_.init_std);
    return {weight, bias ? b_.parameter(name + ".bias", {features}, Initializer::zeros) : -1};
  }
  // Matrices that share an input and whose outputs are concatenated, or one matrix that joins them.
  std::vector<LinearWeights> side_by_side(const std::string& prefix, const char* joined,
                                          std::initializer_list<Part> parts, bool bias) {
    std::vector<LinearWeights> list;
    int64_t features = 0;
    for (const Part& part : parts) features += part.features;
    if (own_.joined_matrices) return {matrix(prefix + joined, c_.width, features, bias)};
    for (const Part& part : parts) list.push_back(matrix(prefix + part.name, c_.width, part.features, bias));
    return list;
  }
  // The effective weight starts at 1.
  int norm_weight(const std::string& name, int64_t width) {
    return b_.parameter(name + ".weight", {width},
                        own_.norm_weight_offset == 0 ? Initializer::ones : Initializer::zeros);
  }
  int norm(int x, const std::string& name, const char* label) {
    return b_.norm(x, norm_weight(name, c_.width), -1, c_.epsilon, true, label, own_.norm_weight_offset);
  }

  int embeddings() {
    b_.begin(SegmentKind::embedding, -1, -1);
    words_ = b_.parameter("model.embed_tokens.weight", {c_.vocabulary, c_.width}, Initializer::normal,
                          c_.init_std);
    // The factor is rounded to the compute type, as in transformers.
    const int x = b_.scale(b_.embedding(words_, -1, "embedding"), rounded_to(compute_, own_.embedding_scale),
                           "embedding_scale");
    b_.end(x);
    return x;
  }

  // The first half of a block. `name`: prefix of the block's parameters.
  int attention(int x, const std::string& name, const LayerAttention& how) {
    const std::string attn = name + "self_attn.";
    const int64_t queries = int64_t{c_.heads} * c_.head_dim, keys = int64_t{c_.kv_heads} * c_.head_dim;
    const int n = norm(x, name + "input_layernorm", "attn_norm");
    int qkv =
        b_.linear(n,
                  side_by_side(attn, "qkv_proj", {{"q_proj", queries}, {"k_proj", keys}, {"v_proj", keys}},
                               own_.qkv_bias),
                  false, "qkv");
    if (own_.qk_norm) {
      const int of_queries = norm_weight(attn + "q_norm", c_.head_dim),
                of_keys = norm_weight(attn + "k_norm", c_.head_dim);
      qkv = b_.qk_norm(qkv, of_queries, of_keys, c_.heads, c_.kv_heads, c_.epsilon, "qk_norm",
                       own_.norm_weight_offset);
    }
    if (how.rotary >= 0) qkv = b_.rope(qkv, how.rotary, c_.heads, c_.kv_heads, c_.head_dim, "qkv_rope");
    const int attended = b_.attention(qkv, c_.heads, c_.kv_heads, c_.head_dim, c_.attention_scale,
                                      c_.attention_dropout, "attention", {.window = how.window});
    int out = b_.linear(attended, {matrix(attn + "o_proj", queries, c_.width, own_.output_bias)}, false,
                        "attn_out");
    if (own_.norms_after) out = norm(out, name + "post_attention_layernorm", "attn_out_norm");
    return b_.add(x, b_.dropout(out, c_.residual_dropout, "attn_dropout"), "attn_residual");
  }

  // The second half.
  int feed_forward(int x, const std::string& name) {
    const std::string mlp = name + "mlp.";
    const int n = norm(
        x, name + (own_.norms_after ? "pre_feedforward_layernorm" : "post_attention_layernorm"), "ffn_norm");
    const int gate_up =
        b_.linear(n,
                  side_by_side(mlp, "gate_up_proj",
                               {{"gate_proj", c_.intermediate}, {"up_proj", c_.intermediate}}, own_.mlp_bias),
                  false, "gate_up");
    const int activated = b_.gated(gate_up, own_.gate == Gate::silu ? "swiglu" : "geglu", own_.gate);
    int out = b_.linear(activated, {matrix(mlp + "down_proj", c_.intermediate, c_.width, own_.mlp_bias)},
                        false, "ffn_out");
    if (own_.norms_after) out = norm(out, name + "post_feedforward_layernorm", "ffn_out_norm");
    return b_.add(x, b_.dropout(out, c_.residual_dropout, "ffn_dropout"), "ffn_residual");
  }

  const ModelConfig& c_;
  const DecoderConfig& own_;
  const Format compute_;
  GraphBuilder b_;
  int words_ = -1;  // the word embedding table
};

}  // namespace

Result<Graph> build_decoder(const ModelConfig& config, int64_t sequence, Format compute,
                            GraphInputs optional) {
  return DecoderBuilder(config, sequence, compute, optional).build();
}

}  // namespace stw
