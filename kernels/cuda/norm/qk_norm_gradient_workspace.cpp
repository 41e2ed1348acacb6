#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t qk_norm_gradient_workspace(const QkNormArgs& args) {
  const uint64_t heads = static_cast<uint64_t>(args.query_heads) + static_cast<uint64_t>(args.kv_heads);
  return token_tiles(args.rows, args.rows_per_sample) * heads * static_cast<uint64_t>(args.head_dim) * sizeof(float);
}

}  // namespace stw::kernels::cuda
