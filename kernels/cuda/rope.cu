// Rotary positions (Su et al., "RoFormer"), in the layout of Hugging Face's `rotate_half`: element i of a head is paired
// with element i + head_dim / 2. The backward pass is the rotation by the opposite angle. Bound by memory; a quad turns 16
// pairs, and values are copied where y is not x.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <DType dtype>
static __global__ void __launch_bounds__(block_threads) rope_kernel(RopeArgs args) {
  const int64_t half = args.head_dim / 2, heads = args.query_heads + args.kv_heads;
  const int64_t rotated = heads * args.head_dim, copied = static_cast<int64_t>(args.kv_heads) * args.head_dim, width = rotated + copied;
  const int64_t start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  const float sign = args.inverse ? -1.0f : 1.0f;
  const int64_t groups_of_head = ceil_div(half, 16), turned = heads * groups_of_head;
  const int64_t tasks_of_row = turned + (args.x.data == args.y.data ? 0 : ceil_div(copied, 16));
  for_tasks_of_grid(args.rows * tasks_of_row, [&](int64_t task) {
    const int64_t row = task / tasks_of_row, part = task % tasks_of_row;
    if (part >= turned) {
      const int64_t i = (part - turned) * 16, at = row * width + rotated + i, n = min(static_cast<int64_t>(16), copied - i);
      store_group(args.y.data, args.y.dtype, at, load_group(args.x.data, dtype, at, n), n);
      return;
    }
    const int64_t position = args.position_ids != nullptr ? args.position_ids[row] : start + row % args.rows_per_sample;
    const int64_t i = part % groups_of_head * 16, n = min(static_cast<int64_t>(16), half - i);
    const int64_t at = row * width + part / groups_of_head * args.head_dim + i;
    const F16 c = load_group(args.cosine + position * half, DType::f32, i, n);
    const F16 s = mul(splat(sign), load_group(args.sine + position * half, DType::f32, i, n));
    const F16 a = load_group(args.x.data, dtype, at, n), b = load_group(args.x.data, dtype, at + half, n);
    store_group(args.y.data, args.y.dtype, at, fma(a, c, mul(sub(zero(), b), s)), n);
    store_group(args.y.data, args.y.dtype, at + half, fma(a, s, mul(b, c)), n);
  });
}

void rope(const Launch& l, const RopeArgs& args) {
  const int64_t width = (static_cast<int64_t>(args.query_heads) + 2 * args.kv_heads) * args.head_dim;
  for_dtype(args.x.dtype, [&](auto stored) {
    launch(l, rope_kernel<stored.dtype>, blocks_for_elements(args.rows * round_up(width / 2, 16)), block_threads, 0, args);
  });
}

}  // namespace stw::kernels::cuda
