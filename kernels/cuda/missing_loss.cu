// To be replaced, kernel by kernel.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

void cross_entropy(const Launch&, const CrossEntropyArgs&) { __builtin_trap(); }
void loss_sum(const Launch&, const LossSumArgs&) { __builtin_trap(); }
void square_sum(const Launch&, const SquareSumArgs&) { __builtin_trap(); }
void embedding_gradient(const Launch&, const EmbeddingArgs&) { __builtin_trap(); }
void position_gradient(const Launch&, const EmbeddingArgs&) { __builtin_trap(); }
void finish_step(const Launch&, const FinishStepArgs&) { __builtin_trap(); }

}  // namespace stw::kernels::cuda
