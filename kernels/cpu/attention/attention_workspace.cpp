// Scratch memory of the attention kernels: one piece a thread. Compiled once, for the baseline instruction set.
#include "kernels/cpu/attention/attention_forward.h"
#include "kernels/cpu/attention/attention_gradient_layout.h"

namespace stw::kernels {

static uint64_t for_threads(int64_t bytes, int threads) {
  return (uint64_t)bytes * (uint64_t)(threads > 1 ? threads : 1);
}

uint64_t attention_workspace(const AttentionArgs& args, int threads) {
  ForwardWorkspace counted;
  return for_threads(carve_forward(args.rows_per_sample, args.head_dim, nullptr, &counted), threads);
}

uint64_t attention_gradient_workspace(const AttentionArgs& args, int threads) {
  GradientWorkspace counted;
  return for_threads(carve_gradient(args, nullptr, &counted), threads);
}

uint64_t attention_cached_workspace(const AttentionCachedArgs& args, int threads) {
  ForwardWorkspace counted;
  return for_threads(carve_forward(args.rows, args.head_dim, nullptr, &counted), threads);
}

}  // namespace stw::kernels
