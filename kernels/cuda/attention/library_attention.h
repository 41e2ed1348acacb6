// Attention by the vendor's library (attention_library.h): one call forward, a call for each part backward, and the sum of what query
// heads say about the keys and values that they share.
#pragma once
#include "kernels/contract/attention_library.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// Decided by shapes and types alone, whatever the number of samples.
bool library_takes(const Launch& l, const AttentionArgs& args, bool gradient);
void library_attention(const Launch& l, const AttentionArgs& args);
void library_attention_gradient(const Launch& l, const AttentionArgs& args);

}  // namespace stw::kernels::cuda
