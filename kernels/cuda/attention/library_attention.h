// Attention by the vendor's library (attention_library.h): one call for the forward pass, one call for each
// part of the backward pass, and the sum of gradients over the query heads that share keys and values.
#pragma once
#include "kernels/contract/attention_library.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// Depends on shapes and types alone, not on the number of samples.
bool library_takes(const Launch& l, const AttentionArgs& args, bool gradient);
void library_attention(const Launch& l, const AttentionArgs& args);
void library_attention_gradient(const Launch& l, const AttentionArgs& args);

}  // namespace stw::kernels::cuda
