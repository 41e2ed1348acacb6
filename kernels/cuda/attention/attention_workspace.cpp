#include "kernels/contract/attention_library.h"
#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t attention_workspace(const AttentionArgs& args) { return library_could_take(args) ? attention_library_bytes : 0; }
uint64_t attention_gradient_workspace(const AttentionArgs& args) {
  const uint64_t statistics = 2 * static_cast<uint64_t>(args.samples * args.rows_per_sample) * static_cast<uint64_t>(args.query_heads) * sizeof(float);
  const uint64_t part = library_could_take(args) ? static_cast<uint64_t>(attention_scratch(args, largest_attention_part(args)).bytes) : 0;
  return part > statistics ? part : statistics;   // what the library declines, our own kernels take
}
uint64_t attention_cached_workspace(const AttentionCachedArgs&) { return 0; }

}  // namespace stw::kernels::cuda
