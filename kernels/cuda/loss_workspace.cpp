#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t cross_entropy_workspace(const CrossEntropyArgs&) { return 0; }
uint64_t loss_sum_workspace(const LossSumArgs&) { return 0; }
uint64_t square_sum_workspace(const SquareSumArgs&) { return 0; }
uint64_t embedding_gradient_workspace(const EmbeddingArgs&) { return 0; }

}  // namespace stw::kernels::cuda
