// Attention by warpgroups, for compute capability 9.0 only.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels::cuda {

// Depends on shapes and types alone, like tensor_cores_take.
inline bool warpgroups_take(const AttentionArgs& args) {
  return may_use_warpgroups(args.products) && args.window == 0 && args.qkv.dtype != DType::f32 &&
         args.out.dtype == args.qkv.dtype && is_warpgroup_head(args.head_dim);
}
inline bool warpgroups_take_gradient(const AttentionArgs& args) {
  return warpgroups_take(args) && (args.head_dim == 64 || args.dropout == 0) &&
         args.dout.dtype == args.qkv.dtype && args.dqkv.dtype == args.qkv.dtype;
}
struct QueryStatistics;  // tensor_attention.h.
void warpgroup_attention(const Launch& l, const AttentionArgs& args);
void warpgroup_attention_gradient(const Launch& l, const AttentionArgs& args,
                                  const QueryStatistics& statistics);

}  // namespace stw::kernels::cuda
