// Rotary positions (Su et al., "RoFormer"), in the layout of Hugging Face's `rotate_half`: element i of a head is paired
// with element i + head_dim / 2. The backward pass is the rotation by the opposite angle. Bound by memory; a quad turns 16
// pairs, and values are copied where y is not x. Four loads are under way a thread: both halves, cosine and sine.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// How many groups of pairs a head has, how many tasks a row, how many rows a sample.
struct RopeShape { Divisor head, row, sample; };

template <class Stored>
static __global__ void __launch_bounds__(block_threads) rope_kernel(RopeArgs args, RopeShape shape, bool vectors) {
  const DType x_dtype = Stored::of(args.x.dtype), y_dtype = Stored::of(args.y.dtype);
  const int half = args.head_dim / 2, heads = args.query_heads + args.kv_heads;
  const int rotated = heads * args.head_dim, copied = args.kv_heads * args.head_dim;
  const int64_t width = rotated + copied, start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  const float sign = args.inverse ? -1.0f : 1.0f;
  const int turned = heads * static_cast<int>(shape.head.number);
  for_tasks_of_grid(args.rows * shape.row.number, [&](int64_t task) {
    const int64_t row = quotient(task, shape.row), top = row * width;
    const int part = static_cast<int>(task - row * shape.row.number);
    if (part >= turned) {
      const int i = (part - turned) * 16, left = copied - i;
      const auto copy_group = [&](auto n) { store_copied(args.y.data, y_dtype, top + rotated + i, load_copied(args.x.data, x_dtype, top + rotated + i, n), n); };
      if (vectors && left >= 16) copy_group(Whole{});
      else copy_group(min(static_cast<int64_t>(16), left));
      return;
    }
    const int64_t position = args.position_ids != nullptr ? args.position_ids[row]
                                                          : start + row - quotient(static_cast<int>(row), shape.sample) * shape.sample.number;
    const int head = quotient(part, shape.head), i = (part - head * static_cast<int>(shape.head.number)) * 16, left = half - i;
    const int64_t at = top + head * args.head_dim + i;
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
  // Halves of heads begin at multiples of half, and so does everything else.
  const int64_t half = args.head_dim / 2;
  const bool vectors = vectors_at(args.x.data, args.x.dtype, half) && vectors_at(args.y.data, args.y.dtype, half) &&
                       vectors_at(args.cosine, DType::f32, half) && vectors_at(args.sine, DType::f32, half);
  const int64_t groups_of_head = ceil_div(half, 16), heads = static_cast<int64_t>(args.query_heads) + args.kv_heads;
  const int64_t copied = args.x.data == args.y.data ? 0 : ceil_div(static_cast<int64_t>(args.kv_heads) * args.head_dim, 16);
  const RopeShape shape = {divisor_of(groups_of_head), divisor_of(heads * groups_of_head + copied), divisor_of(args.rows_per_sample)};
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, rope_kernel<decltype(stored)>, blocks_for_rows(args.rows * shape.row.number), block_threads, 0, args, shape, vectors);
  });
}

}  // namespace stw::kernels::cuda
