// The interface between the kernels and a vendor's attention library. src/cuda/cudnn_attention.h finds and
// calls the library.
#pragma once
#include "kernels/contract/attention_parts.h"
#include "kernels/contract/kernels.h"

namespace stw::kernels {

// Whether a library can be asked for this attention. Depends on shapes and types alone, like all functions
// here.
inline bool library_could_take(const AttentionArgs& args) {
  return may_use_library(args.products) && args.qkv.dtype != DType::f32 && args.out.dtype == args.qkv.dtype &&
         args.position_ids == nullptr && args.dropout == 0 && args.window == 0 && args.alibi_root == 0 &&
         args.relative.table.data == nullptr && is_tensor_head(args.head_dim);
}

inline AttentionShape shape_of(const AttentionArgs& args) {
  return {args.samples, args.rows_per_sample, args.query_heads, args.kv_heads, args.head_dim};
}

//   takes           Whether the library computes this attention, forward or backward. The answer does not
//                   depend on the number of samples. The other two functions are called only if it is true.
//   attend          Computes the forward pass of all samples and heads.
//   differentiate   Computes the gradient of a part. If query heads share keys and values, the gradients for
//                   each query head stay in the scratch memory, and our kernels add them up.
// The library keeps its errors until its owner asks for them.
struct AttentionLibrary {
  void* self;
  bool (*takes)(void* self, const AttentionArgs& args, bool gradient);
  void (*attend)(void* self, const AttentionArgs& args, void* scratch, void* stream);
  void (*differentiate)(void* self, const AttentionArgs& args, const AttentionPart& part, void* scratch,
                        void* stream);
};

}  // namespace stw::kernels
