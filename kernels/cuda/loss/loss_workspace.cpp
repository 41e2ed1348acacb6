#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t cross_entropy_workspace(const CrossEntropyArgs&) { return 0; }
uint64_t loss_sum_workspace(const LossSumArgs& args) { return static_cast<uint64_t>(args.samples) * 16; }
uint64_t preference_workspace(const PreferenceArgs& args) {
  return static_cast<uint64_t>(args.samples * (24 + (args.rows_per_sample + 1) / 2 * 8 + (args.rows_per_sample + 2) * 4));
}
uint64_t square_sum_workspace(const List<SquareSumArgs>& args) {
  uint64_t chunks = 0;
  for (int i = 0; i < args.count; ++i) chunks += (static_cast<uint64_t>(args.first[i].count) + 4095) / 4096;
  return chunks * sizeof(float);
}
uint64_t embedding_gradient_workspace(const EmbeddingArgs& args) { return static_cast<uint64_t>(args.rows) * 16; }

}  // namespace stw::kernels::cuda
