#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t attention_workspace(const AttentionArgs&) { return 0; }
uint64_t attention_gradient_workspace(const AttentionArgs& args) {
  return static_cast<uint64_t>(args.samples * args.rows_per_sample) * static_cast<uint64_t>(args.query_heads) * sizeof(float);
}
uint64_t attention_cached_workspace(const AttentionCachedArgs&) { return 0; }

}  // namespace stw::kernels::cuda
