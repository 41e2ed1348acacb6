// Rotary positions (Su et al., "RoFormer"), in the layout of Hugging Face's `rotate_half`: element i of a head is paired
// with element i + head_dim / 2. The backward pass is the rotation by the opposite angle. Bound by memory; a quad turns 16
// pairs, and values are copied where y is not x. Four loads are under way a thread: both halves, cosine and sine.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads) rope_kernel(RopeArgs args, bool vectors) {
  const DType x_dtype = Stored::of(args.x.dtype), y_dtype = Stored::of(args.y.dtype);
  const int64_t half = args.head_dim / 2, heads = args.query_heads + args.kv_heads;
  const int64_t rotated = heads * args.head_dim, copied = static_cast<int64_t>(args.kv_heads) * args.head_dim, width = rotated + copied;
  const int64_t start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  const float sign = args.inverse ? -1.0f : 1.0f;
  const int64_t groups_of_head = ceil_div(half, 16), turned = heads * groups_of_head;
  const int64_t tasks_of_row = turned + (args.x.data == args.y.data ? 0 : ceil_div(copied, 16));
  for_tasks_of_grid(args.rows * tasks_of_row, [&](int64_t task) {
    const int64_t row = task / tasks_of_row, part = task % tasks_of_row;
    if (part >= turned) {
      const int64_t i = (part - turned) * 16, at = row * width + rotated + i, left = copied - i;
      const auto copy_group = [&](auto n) { store_copied(args.y.data, y_dtype, at, load_group(args.x.data, x_dtype, at, n), n); };
      if (vectors && left >= 16) copy_group(Whole{});
      else copy_group(min(static_cast<int64_t>(16), left));
      return;
    }
    const int64_t position = args.position_ids != nullptr ? args.position_ids[row] : start + row % args.rows_per_sample;
    const int64_t i = part % groups_of_head * 16, left = half - i;
    const int64_t at = row * width + part / groups_of_head * args.head_dim + i;
    const auto turn_group = [&](auto n) {
      const F16 c = load_group(args.cosine + position * half, DType::f32, i, n), sine = load_group(args.sine + position * half, DType::f32, i, n);
      const F16 a = load_group(args.x.data, x_dtype, at, n), b = load_group(args.x.data, x_dtype, at + half, n);
      const F16 s = mul(splat(sign), sine);
      store_group(args.y.data, y_dtype, at, fma(a, c, mul(sub(zero(), b), s)), n);
      store_group(args.y.data, y_dtype, at + half, fma(a, s, mul(b, c)), n);
    };
    if (vectors && left >= 16) turn_group(Whole{});
    else turn_group(min(static_cast<int64_t>(16), left));
  });
}

void rope(const Launch& l, const RopeArgs& args) {
  const int64_t width = (static_cast<int64_t>(args.query_heads) + 2 * args.kv_heads) * args.head_dim;
  // Halves of heads begin at multiples of half, and so does everything else.
  const int64_t half = args.head_dim / 2;
  const bool vectors = vectors_at(args.x.data, args.x.dtype, half) && vectors_at(args.y.data, args.y.dtype, half) &&
                       vectors_at(args.cosine, DType::f32, half) && vectors_at(args.sine, DType::f32, half);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, rope_kernel<decltype(stored)>, blocks_for_elements(args.rows * round_up(width / 2, 16)), block_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
