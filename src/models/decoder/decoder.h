// The common parts of decoders with rotary positions and RMSNorm: Llama and the families derived from it.
// Each family has a file that reads its config.json. The graph of all of them is built here.
#pragma once
#include <functional>
#include <optional>

#include "src/models/model.h"

namespace stw {

// A family's values for keys that its config.json lacks.
struct DecoderDefaults {
  // For families with grouped-query attention; none, or null in the config: as many as heads.
  std::optional<int64_t> kv_heads = {};
  std::optional<int64_t> head_dim = {};  // none: width / heads
  double epsilon = 1e-6, theta = 10000;
  // Number of positions before angles were scaled; none: as in the rope parameters, else all positions.
  std::optional<int64_t> original_positions = {};
  bool tied = false;
  bool partial_rotary = false;  // whether only part of a head may be rotated
  // none: the config must give it
  std::optional<int64_t> vocabulary = {}, positions = {}, width = {}, layers = {}, heads = {},
                         intermediate = {};
};
// Reads sizes, norms and dropout. Errors: corrupt, unsupported_field.
Status parse_decoder(const Json& json, ModelConfig& config, const DecoderDefaults& absent = {});
// The same for a model with SwiGLU and one kind of rotary positions.
Status parse_llama_like(const Json& json, ModelConfig& config, const DecoderDefaults& absent = {});

// "sliding_window": the number of keys, up to its own, that a token attends to in layers with a window; 0
// where it is null or absent.
Result<int64_t> parse_window(const Json& json, std::optional<int64_t> absent = std::nullopt);
// Sets the window (0: none) of the layers that "layer_types" names. Without such a list, of those that
// `is_windowed` selects.
Status set_windows(const Json& json, ModelConfig& config, int64_t window,
                   const std::function<bool(int64_t layer)>& is_windowed);

inline constexpr DropoutRate decoder_dropouts[] = {{"attention_dropout", &ModelConfig::attention_dropout}};

Graph build_decoder(const ModelConfig& config, int64_t sequence, Format compute, GraphInputs optional);

}  // namespace stw
