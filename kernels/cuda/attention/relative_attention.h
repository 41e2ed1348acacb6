// Attention with relative positions: on the CUDA cores, with the CPU's bits, and on tensor cores.
#pragma once
#include "kernels/cuda/attention/tensor_attention.h"

namespace stw::kernels::cuda {

inline bool has_relative(const AttentionArgs& args) { return args.relative.table.data != nullptr; }
void relative_attention(const Launch& l, const AttentionArgs& args);
void relative_attention_gradient(const Launch& l, const AttentionArgs& args);
// Where the sums for the table begin in the scratch memory, in floats.
inline constexpr int64_t relative_sums_alignment = 16;
// Adds the gradient of the table up, after the kernel of queries has stored `dots`. `sums`: scratch memory.
void relative_table_gradient(const Launch& l, const AttentionArgs& args, float* dots, float* sums);
// Adds sums to the table's gradient, in the order of the samples. sums: (samples, heads, keys and queries,
// copies, table_rows, head_dim rounded up to 64). Those of keys are multiplied by key_factor, those of
// queries by args.scale.
void add_relative_sums(const Launch& l, const AttentionArgs& args, const float* sums, int copies,
                       float key_factor);

// Whether the tensor-core kernels support this attention with relative positions, as tensor_cores_take. The
// gradient's other operands have the format of qkv.
inline bool tensor_cores_take_relative(const AttentionArgs& args) {
  return tensor_cores_take(args) && is_relative_tensor_head(args.head_dim) &&
         args.relative.table.dtype == args.qkv.dtype;
}
void tensor_relative_attention(const Launch& l, const AttentionArgs& args);
void tensor_relative_gradient(const Launch& l, const AttentionArgs& args, const QueryStatistics& statistics,
                              float* sums);

}  // namespace stw::kernels::cuda
