// Llama (Touvron et al. 2023), Mistral (Jiang et al. 2023) and SmolLM3: rotary positions, RMSNorm before each
// half of a block, grouped-query attention, SwiGLU. Mistral's attention has a window. In SmolLM3 every fourth
// layer has no positions.
#include "src/models/decoder/decoder.h"

namespace stw {

namespace {

Status parse_biases(const Json& json, DecoderConfig& own) {
  STW_ASSIGN(attention_bias, get_bool(json, "attention_bias", false));
  STW_ASSIGN(mlp_bias, get_bool(json, "mlp_bias", false));
  own.qkv_bias = own.output_bias = attention_bias;
  own.mlp_bias = mlp_bias;
  return ok();
}

Status parse_llama(const Json& json, ModelConfig& c) {
  STW_ASSIGN(own, parse_llama_like(json, c));
  STW_TRY(parse_biases(json, own));
  c.family = std::move(own);
  return ok();
}

// Source: transformers, configuration_mistral.py. There a Mistral with "layer_types" is a Ministral
// (configuration_auto.py), which is otherwise the same.
Status parse_mistral(const Json& json, ModelConfig& c) {
  STW_ASSIGN(own, parse_llama_like(json, c, {.kv_heads = 8}));
  STW_ASSIGN(window, parse_window(json, 4096));
  const auto is_windowed = [](int64_t) { return true; };
  STW_TRY(set_windows(json, c, window, is_windowed, own.layers));
  c.family = std::move(own);
  return ok();
}

// Source: transformers, configuration_smollm3.py. In "no_rope_layers" a 1 means that the layer has rotary
// positions.
Status parse_smollm3(const Json& json, ModelConfig& c) {
  STW_ASSIGN(own, parse_llama_like(json, c, {.kv_heads = 4, .theta = 2000000, .tied = true}));
  STW_TRY(parse_biases(json, own));
  STW_ASSIGN(interval, get_int(json, "no_rope_layer_interval", 4));
  if (interval < 1)
    return Error{Code::unsupported_field, "no_rope_layer_interval is " + std::to_string(interval)};
  const Json* const given = find_present(json, "no_rope_layers");
  if (given && (!given->is_array() || given->elements().size() < own.layers.size()))
    return Error{Code::unsupported_field,
                 "expected 0 or 1 for each of " + std::to_string(c.layers) + " layers as no_rope_layers"};
  for (size_t layer = 0; layer < own.layers.size(); ++layer) {
    bool has_positions = (static_cast<int64_t>(layer) + 1) % interval != 0;
    if (given) {
      const int64_t* number = given->elements()[layer].as_int();
      if (!number || (*number != 0 && *number != 1))
        return Error{Code::unsupported_field, "expected 0 or 1 for each layer as no_rope_layers"};
      has_positions = *number == 1;
    }
    if (!has_positions) own.layers[layer].rotary = -1;
  }
  STW_ASSIGN(sliding, get_bool(json, "use_sliding_window", false));
  STW_ASSIGN(window, parse_window(json));
  // "layer_types" takes precedence over "use_sliding_window".
  const bool has_layer_types = find_present(json, "layer_types") != nullptr;
  const auto has_no_positions = [&](int64_t layer) { return own.layers[layer].rotary < 0; };
  STW_TRY(set_windows(json, c, sliding || has_layer_types ? window : 0, has_no_positions, own.layers));
  c.family = std::move(own);
  return ok();
}

}  // namespace

extern const Architecture llama_architecture = {.model_type = "llama",
                                                .parse = parse_llama,
                                                .build = build_decoder,
                                                .class_name = "Llama",
                                                .optional_prefix = "model.",
                                                .dropouts = decoder_dropouts};
extern const Architecture mistral_architecture = {.model_type = "mistral",
                                                  .parse = parse_mistral,
                                                  .build = build_decoder,
                                                  .class_name = "Mistral",
                                                  .optional_prefix = "model.",
                                                  .dropouts = decoder_dropouts};
extern const Architecture ministral_architecture = {.model_type = "ministral",
                                                    .parse = parse_mistral,
                                                    .build = build_decoder,
                                                    .class_name = "Ministral",
                                                    .optional_prefix = "model.",
                                                    .dropouts = decoder_dropouts};
extern const Architecture smollm3_architecture = {.model_type = "smollm3",
                                                  .parse = parse_smollm3,
                                                  .build = build_decoder,
                                                  .class_name = "SmolLM3",
                                                  .optional_prefix = "model.",
                                                  .dropouts = decoder_dropouts};

}  // namespace stw
