// Properties of attention that may differ between layers, and the keys of a config.json that set them.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/models/model.h"

namespace stw {

struct LayerAttention {
  int64_t window = 0;  // number of keys that a token attends to, up to and including its own; 0: all keys
  int rotary = 0;      // index into the family's list of rotary positions; -1: no positions
};

// The default for every layer. Takes any number, as parse_model refuses wrong ones later.
std::vector<LayerAttention> full_attention(int64_t layers);
// "sliding_window": the number of keys that a token attends to in layers with a window, up to and including
// its own key; 0 where the config's value is null or absent.
Result<int64_t> parse_window(const Json& json, std::optional<int64_t> absent = std::nullopt);
// Sets the window (0: none) of the layers that "layer_types" names. Without such a list it sets the window of
// the layers that `is_windowed` selects.
Status set_windows(const Json& json, const ModelConfig& config, int64_t window,
                   const std::function<bool(int64_t layer)>& is_windowed,
                   std::vector<LayerAttention>& layers);

}  // namespace stw
