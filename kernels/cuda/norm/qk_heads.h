// One head of queries or keys by one quad, shared by the norm of heads and its gradient. The formulas are
// those of norm_row.h for a row of head_dim features.
#pragma once
#include "kernels/common/norm_row.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/groups.h"

namespace stw::kernels::cuda {

// The heads of a row: queries, keys, values.
struct QkHeads {
  int queries, keys;
  __host__ __device__ int normed() const { return queries + keys; }
  __host__ __device__ int all() const { return normed() + keys; }
};

// Visits the groups of a head in order, like for_groups_ahead. If `groups` is not 0, it is the number of
// groups, and all of them are full and allow vector access: there is no loop, and loads need no address
// arithmetic. 0: there may be any number of groups.
inline constexpr int head_groups_ahead = 4;
template <int groups, class Load, class Use>
STW_DEVICE void for_head_groups(int head_dim, bool vectors, const Load& load, const Use& use) {
  if constexpr (groups == 0) {
    for_groups_ahead<head_groups_ahead>(0, 1, head_dim, vectors, load, use);
  } else {
    STW_UNROLL
    for (int first = 0; first < groups; first += head_groups_ahead) {
      decltype(load(0, FullGroup{})) values[head_groups_ahead];
      STW_UNROLL
      for (int k = 0; k < head_groups_ahead; ++k) values[k] = load(16 * (first + k), FullGroup{});
      fence_loads();
      STW_UNROLL
      for (int k = 0; k < head_groups_ahead; ++k) use(values[k], 16 * (first + k), FullGroup{});
    }
  }
}
template <int n>
struct Groups {
  static constexpr int number = n;
};
// Calls body(stored, groups). There are instances for operands of one type and heads of 64 or 128, which are
// usual, and for any head.
template <class Body>
void for_heads(std::initializer_list<DType> types, int head_dim, bool vectors, const Body& body) {
  for_dtypes(types, [&](auto stored) {
    if constexpr (stored.alike) {
      if (vectors && head_dim == 128) return body(stored, Groups<8>{});
      if (vectors && head_dim == 64) return body(stored, Groups<4>{});
    }
    body(stored, Groups<0>{});
  });
}

// 1 / root mean square.
template <int groups>
STW_DEVICE float head_rstd(const QkNormArgs& args, DType dtype, int64_t at, bool vectors) {
  const void* const x = element(static_cast<const void*>(args.x.data), dtype, at);
  F16 squares = zero();
  for_head_groups<groups>(
      args.head_dim, vectors, [&](int i, auto n) { return load_group(x, dtype, i, n); },
      // Lanes after the end are 0.
      [&](const F16& values, int, auto) { squares = fma(values, values, squares); });
  return rstd_of(fold(squares), args.head_dim, args.epsilon);
}

// Copies a head of values.
template <class Stored, int groups>
STW_DEVICE void copy_head(const Matrix& x, const Matrix& y, int64_t at, int head_dim, bool vectors) {
  const DType x_dtype = Stored::of(x.dtype), y_dtype = Stored::of(y.dtype);
  const void* const from = element(static_cast<const void*>(x.data), x_dtype, at);
  void* const to = element(y.data, y_dtype, at);
  if constexpr (Stored::alike && Stored::of(DType::bf16) != DType::f32) {
    for_head_groups<groups>(
        head_dim, vectors,
        [&](int i, auto n) { return load_some_halves(static_cast<const uint16_t*>(from) + i, n); },
        [&](const Halves& values, int i, auto n) {
          store_some_halves(static_cast<uint16_t*>(to) + i, values, n);
        });
  } else {
    for_head_groups<groups>(
        head_dim, vectors, [&](int i, auto n) { return load_copied(from, x_dtype, i, n); },
        [&](const F16& values, int i, auto n) { store_copied(to, y_dtype, i, values, n); });
  }
}

}  // namespace stw::kernels::cuda
