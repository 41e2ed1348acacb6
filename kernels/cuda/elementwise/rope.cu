// Rotary positions (Su et al., "RoFormer") in the layout of Hugging Face's `rotate_half`: element i of a head
// is paired with element i + rotary_dim / 2. The backward pass is the rotation by the negative angle. Bound
// by memory. A quad rotates 16 pairs. Values, and elements of a head that are not rotated, are copied if y is
// not x. A thread has four loads in flight: both halves, cosine and sine.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// Tasks of a head, of which the first `groups` rotate a group of pairs and the others copy; tasks of a row;
// rows of a sample.
struct RopeShape {
  Divisor head;
  int groups;
  Divisor row, sample;
};

template <class Stored>
static __global__ void __launch_bounds__(block_threads)
    rope_kernel(RopeArgs args, RopeShape shape, bool vectors) {
  const DType x_dtype = Stored::of(args.x.dtype), y_dtype = Stored::of(args.y.dtype);
  const int half = args.rotary_dim / 2, heads = args.query_heads + args.kv_heads;
  const int rotated = heads * args.head_dim, copied = args.kv_heads * args.head_dim;
  const int64_t width = rotated + copied,
                start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  const float sign = args.inverse ? -1.0f : 1.0f;
  const int head_tasks = heads * static_cast<int>(shape.head.number);
  for_tasks_of_grid(args.rows * shape.row.number, [&](int64_t task) {
    const int64_t row = quotient(task, shape.row), top = row * width;
    const int part = static_cast<int>(task - row * shape.row.number);
    const auto copy_at = [&](int64_t at, int left) {
      const auto copy_group = [&](auto n) {
        store_copied(args.y.data, y_dtype, at, load_copied(args.x.data, x_dtype, at, n), n);
      };
      if (vectors && left >= 16) copy_group(FullGroup{});
      else copy_group(min(static_cast<int64_t>(16), left));
    };
    if (part >= head_tasks)
      return copy_at(top + rotated + (part - head_tasks) * 16, copied - (part - head_tasks) * 16);
    const int head = quotient(part, shape.head), group = part - head * static_cast<int>(shape.head.number);
    if (group >= shape.groups) {
      const int from = args.rotary_dim + (group - shape.groups) * 16;
      return copy_at(top + head * args.head_dim + from, args.head_dim - from);
    }
    const int64_t position =
        args.position_ids != nullptr
            ? args.position_ids[row]
            : start + row - quotient(static_cast<int>(row), shape.sample) * shape.sample.number;
    const int i = group * 16, left = half - i;
    const int64_t at = top + head * args.head_dim + i;
    const auto rotate_group = [&](auto n) {
      const F16 c = load_group(args.cosine + position * half, DType::f32, i, n),
                sine = load_group(args.sine + position * half, DType::f32, i, n);
      const F16 a = load_group(args.x.data, x_dtype, at, n),
                b = load_group(args.x.data, x_dtype, at + half, n);
      const F16 s = mul(splat(sign), sine);
      store_group(args.y.data, y_dtype, at, fma(a, c, mul(sub(zero(), b), s)), n);
      store_group(args.y.data, y_dtype, at + half, fma(a, s, mul(b, c)), n);
    };
    if (vectors && left >= 16) rotate_group(FullGroup{});
    else rotate_group(min(static_cast<int64_t>(16), left));
  });
}

void rope(const Launch& l, const RopeArgs& args) {
  // Every access begins at a multiple of head_dim plus a multiple of `half` plus a multiple of 16.
  const int64_t half = args.rotary_dim / 2, head_dim = args.head_dim;
  const bool vectors =
      vectors_at(args.x.data, args.x.dtype, half) && vectors_at(args.x.data, args.x.dtype, head_dim) &&
      vectors_at(args.y.data, args.y.dtype, half) && vectors_at(args.y.data, args.y.dtype, head_dim) &&
      vectors_at(args.cosine, DType::f32, half) && vectors_at(args.sine, DType::f32, half);
  const bool in_place = args.x.data == args.y.data;
  const int64_t groups = ceil_div(half, 16), heads = static_cast<int64_t>(args.query_heads) + args.kv_heads;
  const int64_t tasks_of_head =
      groups + (in_place ? 0 : ceil_div(static_cast<int64_t>(args.head_dim) - args.rotary_dim, 16));
  const int64_t copied = in_place ? 0 : ceil_div(static_cast<int64_t>(args.kv_heads) * args.head_dim, 16);
  const RopeShape shape = {divisor_of(tasks_of_head), static_cast<int>(groups),
                           divisor_of(heads * tasks_of_head + copied), divisor_of(args.rows_per_sample)};
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, rope_kernel<decltype(stored)>, blocks_for_rows(args.rows * shape.row.number), block_threads, 0,
           args, shape, vectors);
  });
}

}  // namespace stw::kernels::cuda
