// Units of work, and limits of one call. The planner uses them to split rows and to merge ops.
#pragma once
#include <cstdint>

namespace stw::kernels {

inline constexpr int64_t token_tile = 64;  // Rows of a tile in a reduction over tokens.
// Terms of a sum that one tensor-core instruction adds. In sums over tokens, these steps restart in every
// sample.
inline constexpr int64_t product_step = 16;
inline constexpr int64_t chain_terms = 256;        // Terms of a chain in a long sum.
inline constexpr int64_t loss_columns = 64 * 256;  // Columns of a row of logits that 64 lanes add at a time.
static_assert(chain_terms % token_tile == 0);

inline constexpr int max_parts = 4;                // Matrices side by side in one `linear`.
inline constexpr int most_biases = 2 * max_parts;  // Bias gradients in one norm_gradient.
inline constexpr int most_together = 48;           // Tensors in one call of square_sum or of an optimizer.
inline constexpr int most_terms = 32;              // Gradients that one gradient_sum adds up.

inline constexpr int64_t weight_block = 64;  // Elements of quantized weights that share a scale.
inline constexpr int quantile_block = 256;   // Elements of 8-bit optimizer states that share an absmax.

inline constexpr int64_t square_chunk =
    4096;  // Elements whose squares are summed in fp32; the sums are added in double.
inline constexpr int64_t adafactor_line = 4096;  // A vector is summed in lines of this many elements.
inline constexpr int64_t adafactor_block = 64;   // The column sums of a matrix are taken over this many rows.

inline constexpr int32_t ignored_target = -100;  // The target of a token without a loss, as in PyTorch.

// 16-bit elements in one access of 16 bytes. Tensor-core products that share a launch or that fuse GELU need
// matrices whose sides are multiples of it.
inline constexpr int64_t tensor_chunk = 8;

// Whether a tensor-core product of 16-bit operands supports fused GELU, for any number of rows.
inline constexpr bool ends_in_gelu(int64_t inputs, int64_t features) {
  return inputs % tensor_chunk == 0 && features % tensor_chunk == 0;
}

// Whether attention supports this head size on tensor cores. is_tensor_head: by mma.sync and by a library.
// is_warpgroup_head: by wgmma.
inline constexpr bool is_tensor_head(int64_t head_dim) {
  return head_dim % tensor_chunk == 0 && head_dim <= 128;
}
// is_relative_tensor_head: by mma.sync, with relative positions.
inline constexpr bool is_relative_tensor_head(int64_t head_dim) {
  return head_dim % tensor_chunk == 0 && head_dim <= 64;
}
inline constexpr bool is_warpgroup_head(int64_t head_dim) { return head_dim == 64 || head_dim == 128; }

}  // namespace stw::kernels
