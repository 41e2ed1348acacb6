// Finds stray tensors: by their names in the files they are parts of the model, but the config describes a
// model without them. The model that was saved to the files used these tensors in its computation.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "src/models/model.h"
#include "src/weights/safetensors.h"

namespace stw {

// The first such tensor, in the order of the files; null where there is none. Such a tensor is in a block, in
// a module of which the model has another tensor, or next to the modules of the body. `used`: the tensors
// that the model reads. `has_new_logits`: the files do not give the matrix of the labels' logits. The search
// ignores constants in older files (masks, frequencies), blocks past the model's last one (the config may
// have cut them), other heads, poolers that the task does not use, and parts for images.
const SafetensorsInfo* find_stray(const SafetensorsReader& files,
                                  const std::set<const SafetensorsInfo*>& used, const Graph& graph,
                                  const ModelConfig& config, bool has_new_logits);

// The key of the config that decides whether the model has such a tensor; empty where none is known.
std::string setting_of(std::string_view tensor, const ModelConfig& config);

// The number of layers that the files have, which may be more than the config's; 0: none.
int64_t layers_in(const SafetensorsReader& files, const Graph& graph, const ModelConfig& config);

}  // namespace stw
