// Attention with relative positions, with the CPU's bits, for every kind of kernels.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels::cuda {

inline bool has_relative(const AttentionArgs& args) { return args.relative.table.data != nullptr; }
void relative_attention(const Launch& l, const AttentionArgs& args);
void relative_attention_gradient(const Launch& l, const AttentionArgs& args);
// Where the sums for the table begin in the scratch memory, in floats.
inline constexpr int64_t relative_sums_alignment = 16;
// Adds the gradient of the table up, after the kernel of queries has stored `dots`. `sums`: scratch memory.
void relative_table_gradient(const Launch& l, const AttentionArgs& args, float* dots, float* sums);

}  // namespace stw::kernels::cuda
