// Two arrays of (token, row), 8 bytes a row each, for the sort of embedding_gradient.
#include "kernels/contract/kernels.h"

namespace stw::kernels {

uint64_t embedding_gradient_workspace(const EmbeddingArgs& args, int) { return (uint64_t)args.rows * 16; }

}  // namespace stw::kernels
