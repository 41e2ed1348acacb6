#include "kernels/cuda/workspace.h"

#include "kernels/cuda/token_sort.h"
#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t cross_entropy_workspace(const CrossEntropyArgs&) { return 0; }
uint64_t loss_sum_workspace(const LossSumArgs& args) { return static_cast<uint64_t>(args.samples) * 16; }
uint64_t square_sum_workspace(const SquareSumArgs& args) { return (static_cast<uint64_t>(args.count) + 4095) / 4096 * sizeof(float); }
uint64_t embedding_gradient_workspace(const EmbeddingArgs& args) { return static_cast<uint64_t>(token_sort_layout(args.rows).bytes); }

}  // namespace stw::kernels::cuda
