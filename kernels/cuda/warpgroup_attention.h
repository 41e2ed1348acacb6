// Attention by warpgroups: on compute capability 9.0, and on no other.
#pragma once
#include "kernels/kernels.h"

namespace stw::kernels::cuda {

// Decided by shapes and types alone, as tensor_cores_take.
inline bool warpgroups_take(const AttentionArgs& args) {
  return args.products == ProductKernels::warpgroup && args.qkv.dtype != DType::f32 && args.out.dtype == args.qkv.dtype &&
         (args.head_dim == 64 || args.head_dim == 128);
}
void warpgroup_attention(const Launch& l, const AttentionArgs& args);

}  // namespace stw::kernels::cuda
