#include "planner/program/complete.h"

#include <utility>

#include "planner/graph/adapters.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/feed_forward.h"
#include "planner/graph/fuse.h"
#include "planner/graph/parameter_groups.h"
#include "planner/graph/quantize.h"
#include "planner/graph/update.h"
#include "planner/program/inference.h"

namespace stw {

Result<Graph> complete(Graph forward, const Numerics& numerics,
                       const std::function<bool(const Tensor&)>& stays) {
  Graph graph = std::move(forward);
  STW_TRY(apply_groups(graph, numerics));
  quantize_frozen(graph, numerics, stays);
  differentiate(graph);
  find_fused_ops(graph, numerics.kernels);
  add_update(graph, numerics);
  add_inference(graph);
  add_transfers(graph);
  find_feed_forward(graph);
  limit_adapter_choices(graph);
  return graph;
}

}  // namespace stw
