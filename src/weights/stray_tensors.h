// Tensors of files that stand in a block of a model and are no parameter of it: whoever wrote them computed with them.
#pragma once
#include <set>

#include "src/models/model.h"
#include "src/weights/safetensors.h"

namespace stw {

// The first one of them, in the order of the files; null where there is none. `used`: those that the model reads. Left alone are constants that
// older files hold (masks, frequencies), further blocks (of a model that was cut), and what lies outside of blocks (a head, towers for pictures).
const SafetensorsInfo* find_stray(const SafetensorsReader& files, const std::set<const SafetensorsInfo*>& used, const Graph& graph, const ModelConfig& config);

}  // namespace stw
