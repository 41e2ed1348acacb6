// The common parts of decoders with rotary positions and RMSNorm: Llama and the families derived from it.
// Each family has a file that reads its config.json. The graph of all of them is built here.
#pragma once
#include <optional>
#include <vector>

#include "src/models/layer_attention.h"
#include "src/models/model.h"
#include "src/models/rotary.h"

namespace stw {

// The part of a decoder's configuration that build_decoder alone reads: ModelConfig::family.
struct DecoderConfig {
  bool qkv_bias = false, output_bias = false, mlp_bias = false, qk_norm = false;
  bool joined_matrices = false;  // queries, keys and values are one parameter, and so are gate and up
  bool norms_after = false;  // both halves of a block also have a norm after them, before the residual sum
  float norm_weight_offset = 0;  // 0 or 1; added to the weights of norms
  Gate gate = Gate::silu;
  float embedding_scale = 1;
  std::vector<RotaryConfig> rotary;
  std::vector<LayerAttention> layers;  // one for each layer
};

// A family's values for keys that its config.json lacks.
struct DecoderDefaults {
  // The number of key-value heads, for families with grouped-query attention. If this is none or does not
  // divide the number of heads, or if the config's value is null, there are as many key-value heads as heads.
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
// Reads sizes, norms and dropout. The caller changes the result and stores it in `config`. Errors: corrupt,
// unsupported_field.
Result<DecoderConfig> parse_decoder(const Json& json, ModelConfig& config,
                                    const DecoderDefaults& absent = {});
// The same for a model with SwiGLU and one kind of rotary positions.
Result<DecoderConfig> parse_llama_like(const Json& json, ModelConfig& config,
                                       const DecoderDefaults& absent = {});

inline constexpr DropoutRate decoder_dropouts[] = {{"attention_dropout", &ModelConfig::attention_dropout}};

Result<Graph> build_decoder(const ModelConfig& config, int64_t sequence, Format compute,
                            GraphInputs optional);

}  // namespace stw
