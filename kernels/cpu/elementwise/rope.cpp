// Rotary positions (Su et al., "RoFormer") in the layout of Hugging Face's `rotate_half`: element i of a head
// is paired with element i + rotary_dim / 2. The backward pass is the rotation by the negative angle, hence
// the same function.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

void rope(const Launch& launch, const RopeArgs& args) {
  const int64_t half = args.rotary_dim / 2;
  const int64_t rotated = ((int64_t)args.query_heads + args.kv_heads) * args.head_dim;
  const int64_t width = rotated + (int64_t)args.kv_heads * args.head_dim;
  const int64_t start = args.state == nullptr ? 0 : (int64_t)args.state->position;
  const float sign = args.inverse ? -1.0f : 1.0f;
  const bool in_place = args.x.data == args.y.data;
  for_rows(launch, args.rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t position =
          args.position_ids != nullptr ? args.position_ids[row] : start + row % args.rows_per_sample;
      const float *cosine = args.cosine + position * half, *sine = args.sine + position * half;
      for (int64_t head = row * width; head < row * width + rotated; head += args.head_dim) {
        for_groups(0, half, [&](int64_t i, int64_t n) {
          F16 c = load_group(cosine, DType::f32, i, n);
          F16 s = mul(splat(sign), load_group(sine, DType::f32, i, n));
          F16 a = load_group(args.x.data, args.x.dtype, head + i, n);
          F16 b = load_group(args.x.data, args.x.dtype, head + half + i, n);
          store_group(args.y.data, args.y.dtype, head + i, fma(a, c, mul(sub(zero(), b), s)), n);
          store_group(args.y.data, args.y.dtype, head + half + i, fma(a, s, mul(b, c)), n);
        });
        if (!in_place && args.rotary_dim < args.head_dim)
          copy_elements(args.x, args.y, head + args.rotary_dim, head + args.head_dim);
      }
      if (!in_place) copy_elements(args.x, args.y, row * width + rotated, (row + 1) * width);
    }
  });
}

}  // namespace stw::kernels::STW_ISA
