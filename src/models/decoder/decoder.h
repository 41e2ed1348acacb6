// What the decoders with rotary positions and RMSNorm have in common: Llama and those that came of it. Each has a file that reads its
// config.json; the graph of all of them is built here.
#pragma once
#include <functional>
#include <optional>

#include "src/models/model.h"

namespace stw {

// What a family has where its config.json does not say.
struct DecoderDefaults {
  std::optional<int64_t> kv_heads = {};   // where heads can share them; else, and where the config says null, as many as heads
  std::optional<int64_t> head_dim = {};   // none: what makes heads fill the width
  double epsilon = 1e-6, theta = 10000;
  std::optional<int64_t> original_positions = {};   // before angles were scaled; none: what rope parameters say, or as many as there are
  bool tied = false;
  bool partial_rotary = false;       // whether part of a head may be turned
  std::optional<int64_t> vocabulary = {}, positions = {}, width = {}, layers = {}, heads = {}, intermediate = {};   // none: it must say
};
// Sizes, norms, dropout. Errors: corrupt, unsupported_field.
Status parse_decoder(const Json& json, ModelConfig& config, const DecoderDefaults& absent = {});
// That, of a model with SwiGLU and one kind of rotary positions.
Status parse_llama_like(const Json& json, ModelConfig& config, const DecoderDefaults& absent = {});

// The keys up to its own that a token sees in layers with a window: "sliding_window"; 0 where it is null, or there is none.
Result<int64_t> parse_window(const Json& json, std::optional<int64_t> absent = std::nullopt);
// Gives layers that window (0: there is none): those that "layer_types" names, or where there is no such list those of `is_windowed`.
Status set_windows(const Json& json, ModelConfig& config, int64_t window, const std::function<bool(int64_t layer)>& is_windowed);

inline constexpr DropoutRate decoder_dropouts[] = {{"attention_dropout", &ModelConfig::attention_dropout}};

Graph build_decoder(const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional);

}  // namespace stw
