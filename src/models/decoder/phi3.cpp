// Phi-3 and Phi-4-mini (Abdin et al., arXiv 2404.14219): Llama with one matrix for queries, keys and values,
// and one for gate and up. Rotation may cover part of a head, with a scale for each angle.
#include "src/models/decoder/decoder.h"

namespace stw {

namespace {

// Source: transformers, configuration_phi3.py. "embd_pdrop" has no effect there, and none here.
Status parse_phi3(const Json& json, ModelConfig& c) {
  STW_ASSIGN(
      own, parse_llama_like(json, c, {.epsilon = 1e-5, .original_positions = 4096, .partial_rotary = true}));
  STW_ASSIGN(residual, get_double(json, "resid_pdrop", 0.0));
  c.residual_dropout = static_cast<float>(residual);
  own.joined_matrices = true;
  STW_ASSIGN(window, parse_window(json));
  for (LayerAttention& layer : own.layers) layer.window = window;
  c.family = std::move(own);
  return ok();
}

constexpr DropoutRate phi3_rates[] = {decoder_dropouts[0], {"resid_pdrop", &ModelConfig::residual_dropout}};

}  // namespace

extern const Architecture phi3_architecture = {.model_type = "phi3",
                                               .parse = parse_phi3,
                                               .build = build_decoder,
                                               .class_name = "Phi3",
                                               .optional_prefix = "model.",
                                               .dropouts = phi3_rates};

}  // namespace stw
