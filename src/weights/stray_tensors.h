// Finds stray tensors: by their names in the files, they are parts of the model's blocks, but this model does
// not have them. The model that was saved to the files used these tensors in its computation.
#pragma once
#include <set>

#include "src/models/model.h"
#include "src/weights/safetensors.h"

namespace stw {

// The first such tensor, in the order of the files; null where there is none. `used`: the tensors that the
// model reads. The search ignores constants in older files (masks, frequencies), blocks past the model's last
// one (the config may have cut them), and tensors outside of blocks (heads, parts for images).
const SafetensorsInfo* find_stray(const SafetensorsReader& files,
                                  const std::set<const SafetensorsInfo*>& used, const Graph& graph,
                                  const ModelConfig& config);

// The number of layers that the files have, which may be more than the config's; 0: none.
int64_t layers_in(const SafetensorsReader& files, const Graph& graph, const ModelConfig& config);

}  // namespace stw
