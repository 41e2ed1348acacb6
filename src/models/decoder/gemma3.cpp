// Gemma 3 (arXiv 2503.19786), text only; also the text part of its models for images and text. Norms before
// and after both halves of a block, with weights that are offsets from 1; GeGLU; embeddings times the square
// root of the width. Five layers of six have windows and rotary angles of their own.
#include <cmath>

#include "src/models/decoder/decoder.h"

namespace stw {

namespace {

constexpr int of_full_layers = 0, of_windowed_layers = 1;  // indices into DecoderConfig::rotary

// Newer configs have an object for each kind of layer in "rope_parameters". Older ones have "rope_theta" and
// "rope_scaling" for full layers, and "rope_local_base_freq" for windowed ones. If both are there, keys of
// "rope_scaling" override those of full layers. Source, also of the defaults: transformers,
// configuration_gemma3.py.
Result<std::vector<RotaryConfig>> parse_rotaries(const Json& json, const ModelConfig& c) {
  STW_ASSIGN(older, find_object(json, "rope_scaling"));
  STW_ASSIGN(newer, find_object(json, "rope_parameters"));
  STW_ASSIGN(theta, get_double(json, "rope_theta", 1000000.0));
  STW_ASSIGN(local_theta, get_double(json, "rope_local_base_freq", 10000.0));
  Json full = Json::object();
  const Json* windowed = nullptr;
  if (newer) {
    STW_ASSIGN(of_full, find_object(*newer, "full_attention"));
    STW_ASSIGN(of_windowed, find_object(*newer, "sliding_attention"));
    if (of_full) full = *of_full;
    windowed = of_windowed;
  }
  if (older) {
    // "type" is the older name of "rope_type". Some versions of transformers read it and others do not, so
    // that they would scale angles differently.
    if (find_present(*older, "type") && !find_present(*older, "rope_type"))
      return Error{Code::unsupported_field,
                   "rope_scaling has a \"type\", which is read in two ways; expected \"rope_type\""};
    for (const auto& [key, value] : older->members()) full.set(key, value);
  }
  const PositionCounts positions{.now = c.positions, .outer_count_first = false};
  STW_ASSIGN(first, parse_rotary_parameters(json, &full, c.head_dim, positions, theta));
  STW_ASSIGN(second, parse_rotary_parameters(json, windowed, c.head_dim, positions, local_theta));
  if (first.rotary_dim != c.head_dim || second.rotary_dim != c.head_dim)
    return Error{Code::unsupported_field, "partial_rotary_factor is not supported"};
  return std::vector<RotaryConfig>{first, second};
}

Status parse_gemma3(const Json& json, ModelConfig& c) {
  STW_ASSIGN(own, parse_decoder(json, c,
                                {.kv_heads = 4,
                                 .head_dim = 256,
                                 .tied = true,
                                 .vocabulary = 262208,
                                 .positions = 131072,
                                 .width = 2304,
                                 .layers = 26,
                                 .heads = 8,
                                 .intermediate = 9216}));
  STW_ASSIGN(activation, get_string(json, "hidden_activation", "gelu_pytorch_tanh"));
  STW_ASSIGN(scalar, get_double(json, "query_pre_attn_scalar", 256));
  STW_ASSIGN(attention_bias, get_bool(json, "attention_bias", false));
  STW_ASSIGN(bidirectional, get_bool(json, "use_bidirectional_attention", false));
  STW_ASSIGN(attention_cap, get_double(json, "attn_logit_softcapping", 0.0));
  STW_ASSIGN(logits_cap, get_double(json, "final_logit_softcapping", 0.0));
  if (activation != "gelu_pytorch_tanh" && activation != "gelu_new")
    return Error{Code::unsupported_field, "hidden_activation \"" + activation + "\" is not supported"};
  if (!is_positive_in_fp32(scalar))
    return Error{Code::unsupported_field,
                 "query_pre_attn_scalar must be positive, and neither tiny nor huge in fp32"};
  if (bidirectional) return Error{Code::unsupported_field, "use_bidirectional_attention is not supported"};
  if (attention_cap != 0 || logits_cap != 0)
    return Error{Code::unsupported_field, "logit softcapping is not supported"};
  own.qkv_bias = own.output_bias = attention_bias;
  own.qk_norm = true;
  own.norms_after = true;
  own.norm_weight_offset = 1;
  own.gate = Gate::gelu_tanh;
  own.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(c.width)));
  c.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
  STW_ASSIGN(rotary, parse_rotaries(json, c));
  own.rotary = std::move(rotary);
  STW_ASSIGN(window, parse_window(json, 4096));
  STW_ASSIGN(pattern, get_int(json, "sliding_window_pattern", 6));
  if (pattern < 1)
    return Error{Code::unsupported_field, "sliding_window_pattern is " + std::to_string(pattern)};
  if (window == 0) return Error{Code::unsupported_field, "expected a sliding_window"};
  const auto is_windowed = [&](int64_t layer) { return (layer + 1) % pattern != 0; };
  STW_TRY(set_windows(json, c, window, is_windowed, own.layers));
  for (LayerAttention& layer : own.layers)
    layer.rotary = layer.window > 0 ? of_windowed_layers : of_full_layers;
  c.family = std::move(own);
  return ok();
}

}  // namespace

extern const Architecture gemma3_architecture = {.model_type = "gemma3_text",
                                                 .parse = parse_gemma3,
                                                 .build = build_decoder,
                                                 .class_name = "Gemma3Text",
                                                 .optional_prefix = "model.",
                                                 .dropouts = decoder_dropouts,
                                                 .outer_model_type = "gemma3",
                                                 .part_class = "Gemma3ForCausalLM",
                                                 .token_head = {.module = nullptr}};

}  // namespace stw
