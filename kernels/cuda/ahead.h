// Loads ahead of their use. Memory answers after some 700 cycles; so by Little's law an SM of an H100 (3.35 TB/s over 132
// SMs, 15 bytes a cycle) has to keep 10 KB under way, one of an H200 15 KB. A thread that waits for a load of 8 or 16 bytes
// before it asks for the next one brings that with all 2048 threads of an SM there and none of them at work; with several
// loads under way a part of them does. A compiler issues them ahead only where no branch and no store stands between.
#pragma once
#include "kernels/cuda/lanes.h"

namespace stw::kernels::cuda {

// For groups first, first + step, … of [0, count), by a quad: load(at, n) of several, then use(value, at, n) of each. n is
// Whole where `vectors` allows it, so both are generic in it. What one group stores no other may load.
// Index is int where that is enough: less to compute, fewer registers.
template <int ahead, class Index, class Load, class Use>
STW_DEVICE void for_groups_ahead(Index first, Index step, Index count, bool vectors, const Load& load, const Use& use) {
  const Index stride = step * 16, whole = vectors ? count / 16 * 16 : 0;
  Index at = first * 16;
  STW_ROLLED for (; at + (ahead - 1) * stride < whole; at += ahead * stride) {
    decltype(load(at, Whole{})) values[ahead];
    STW_UNROLL for (int k = 0; k < ahead; ++k) values[k] = load(at + k * stride, Whole{});
    loads_are_issued();
    STW_UNROLL for (int k = 0; k < ahead; ++k) use(values[k], at + k * stride, Whole{});
  }
  if (at < whole) {   // the last ones, and in place of those past the end the first again, which costs less than a branch
    decltype(load(at, Whole{})) values[ahead];
    STW_UNROLL for (int k = 0; k < ahead; ++k) values[k] = load(at + k * stride < whole ? at + k * stride : at, Whole{});
    loads_are_issued();
    STW_UNROLL for (int k = 0; k < ahead; ++k)
      if (at + k * stride < whole) use(values[k], at + k * stride, Whole{});
    at += ahead * stride;
  }
  STW_ROLLED while (at - stride >= whole) at -= stride;
  STW_ROLLED for (; at < count; at += stride) {
    const int64_t n = count - at < 16 ? count - at : 16;
    use(load(at, n), at, n);
  }
}

// The same for all groups of [0, count), by the quads of a grid.
inline constexpr int groups_ahead = 2;
inline int blocks_for_ahead(int64_t count) { return blocks_for(count, block_quads * 16 * groups_ahead); }
template <class Load, class Use>
STW_DEVICE void for_groups_of_grid_ahead(int64_t count, bool vectors, const Load& load, const Use& use) {
  for_groups_ahead<groups_ahead>(thread_of_grid() / quad, static_cast<int64_t>(gridDim.x) * blockDim.x / quad, count, vectors, load, use);
}
// And for the groups of rows (rows, features), which lie inside one: load(row, i, n), use(value, row, i, n). Whole are they
// only where features is a multiple of 16.
STW_DEVICE Whole part_of_row(Whole, int64_t) { return {}; }
STW_DEVICE int64_t part_of_row(int64_t, int64_t left) { return min(static_cast<int64_t>(16), left); }
template <class Value>
struct Placed { Value value; int64_t row, i; };
template <class Load, class Use>
STW_DEVICE void for_groups_of_rows_ahead(int64_t rows, int64_t features, bool vectors, const Load& load, const Use& use) {
  const int64_t groups = ceil_div(features, 16);
  for_groups_of_grid_ahead(rows * groups * 16, vectors && features % 16 == 0,
    [&](int64_t at, auto n) {
      const int64_t task = at / 16, row = task / groups, i = (task - row * groups) * 16;
      const auto part = part_of_row(n, features - i);
      return Placed<decltype(load(row, i, part))>{load(row, i, part), row, i};
    },
    [&](const auto& placed, int64_t, auto n) { use(placed.value, placed.row, placed.i, part_of_row(n, features - placed.i)); });
}

template <int n> struct Ahead { static constexpr int value = n; };   // a number of loads, for generic callers
// use(load(i)) for i of [0, count) in order: a chain of uses whose loads run ahead of it, by up to twice `ahead`.
template <int ahead, class Index, class Load, class Use>
STW_DEVICE void in_order(Index count, const Load& load, const Use& use) {
  Index i = 0;
  if (count >= ahead) {
    decltype(load(i)) next[ahead];
    STW_UNROLL for (int k = 0; k < ahead; ++k) next[k] = load(static_cast<Index>(k));
    STW_ROLLED for (i = ahead; i + ahead <= count; i += ahead) {
      decltype(load(i)) now[ahead];
      STW_UNROLL for (int k = 0; k < ahead; ++k) now[k] = next[k];
      STW_UNROLL for (int k = 0; k < ahead; ++k) next[k] = load(i + k);
      STW_UNROLL for (int k = 0; k < ahead; ++k) use(now[k]);
    }
    STW_UNROLL for (int k = 0; k < ahead; ++k) use(next[k]);
  }
  if (i >= count) return;
  decltype(load(i)) last[ahead];
  STW_UNROLL for (int k = 0; k < ahead; ++k) last[k] = load(i + k < count ? i + k : count - 1);
  STW_UNROLL for (int k = 0; k < ahead; ++k)
    if (i + k < count) use(last[k]);
}

}  // namespace stw::kernels::cuda
