#include "src/models/layer_attention.h"

#include <algorithm>
#include <string>

namespace stw {

Result<int64_t> parse_window(const Json& json, std::optional<int64_t> absent) {
  const Json* given = json.find("sliding_window");
  if (given ? given->is_null() : !absent) return int64_t{0};
  STW_ASSIGN(window, get_int(json, "sliding_window", absent.value_or(0)));
  if (window < 1) return Error{Code::unsupported_field, "sliding_window is " + std::to_string(window)};
  return window;
}

std::vector<LayerAttention> full_attention(int64_t layers) {
  return std::vector<LayerAttention>(static_cast<size_t>(std::clamp<int64_t>(layers, 0, largest_depth)));
}

Status set_windows(const Json& json, const ModelConfig& c, int64_t window,
                   const std::function<bool(int64_t layer)>& is_windowed,
                   std::vector<LayerAttention>& layers) {
  const Json* const types = find_present(json, "layer_types");
  if (types && (!types->is_array() || types->elements().size() != layers.size()))
    return Error{Code::unsupported_field, "expected a kind of attention for each of " +
                                              std::to_string(c.layers) + " layers as layer_types"};
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    bool is_sliding;
    if (types) {
      const Json& type = types->elements()[layer];
      const std::string name = type.as_string() ? *type.as_string() : to_string(type, 0);
      is_sliding = name == "sliding_attention";
      if (!is_sliding && name != "full_attention")
        return Error{Code::unsupported_field, "layer_types has \"" + name + "\", which is not supported"};
    } else {
      is_sliding = is_windowed(static_cast<int64_t>(layer));
    }
    if (types && is_sliding && window == 0)
      return Error{Code::unsupported_field,
                   "layer_types has \"sliding_attention\", and there is no window: expected a sliding_window "
                   "that is in use"};
    if (is_sliding) layers[layer].window = window;
  }
  return ok();
}

}  // namespace stw
