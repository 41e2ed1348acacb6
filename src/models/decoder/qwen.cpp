// Qwen2 (Yang et al., arXiv 2407.10671) and dense Qwen3 (arXiv 2505.09388): Llama with biases of queries,
// keys and values, or with norms of each head's queries and keys.
#include "src/models/decoder/decoder.h"

namespace stw {

namespace {

// Source: transformers, configuration_qwen2.py and configuration_qwen3.py.
Status parse_windows(const Json& json, const ModelConfig& c, DecoderConfig& own) {
  STW_ASSIGN(sliding, get_bool(json, "use_sliding_window", false));
  STW_ASSIGN(window, parse_window(json, 4096));
  STW_ASSIGN(full_layers, get_int(json, "max_window_layers", 28));
  const auto is_windowed = [&](int64_t layer) { return layer >= full_layers; };
  return set_windows(json, c, sliding ? window : 0, is_windowed, own.layers);
}

Status parse_qwen2(const Json& json, ModelConfig& c) {
  STW_ASSIGN(own, parse_llama_like(json, c, {.kv_heads = 32}));
  own.qkv_bias = true;
  STW_TRY(parse_windows(json, c, own));
  c.family = std::move(own);
  return ok();
}

Status parse_qwen3(const Json& json, ModelConfig& c) {
  STW_ASSIGN(own, parse_llama_like(json, c, {.kv_heads = 32, .head_dim = 128}));
  STW_ASSIGN(attention_bias, get_bool(json, "attention_bias", false));
  own.qkv_bias = own.output_bias = attention_bias;
  own.qk_norm = true;
  STW_TRY(parse_windows(json, c, own));
  c.family = std::move(own);
  return ok();
}

}  // namespace

extern const Architecture qwen2_architecture = {.model_type = "qwen2",
                                                .parse = parse_qwen2,
                                                .build = build_decoder,
                                                .class_name = "Qwen2",
                                                .optional_prefix = "model.",
                                                .dropouts = decoder_dropouts};
extern const Architecture qwen3_architecture = {.model_type = "qwen3",
                                                .parse = parse_qwen3,
                                                .build = build_decoder,
                                                .class_name = "Qwen3",
                                                .optional_prefix = "model.",
                                                .dropouts = decoder_dropouts};

}  // namespace stw
