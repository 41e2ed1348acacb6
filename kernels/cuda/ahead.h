// Issues loads before their results are used. Memory answers after about 700 cycles. By Little's law, an SM
// of an H100 (3.35 TB/s over 132 SMs, 15 bytes a cycle) must keep 10 KB of loads in flight, an SM of an H200
// 15 KB. If each thread waits for a load of 8 or 16 bytes before it issues the next one, all 2048 threads of
// an SM must wait to keep so much in flight, and none of them computes. With several loads in flight a
// thread, fewer threads suffice. A compiler issues loads ahead only if no branch and no store lies in
// between.
#pragma once
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

// Visits groups first, first + step, … of [0, count), by a quad. Calls load(at, n) for several groups, then
// use(value, at, n) for each of them. n is FullGroup if `vectors` allows it, so load and use are generic in
// n. A group may not load what another group stores. Index is int where that suffices, because it takes less
// arithmetic and fewer registers.
template <int ahead, class Index, class Load, class Use>
STW_DEVICE void for_groups_ahead(Index first, Index step, Index count, bool vectors, const Load& load,
                                 const Use& use) {
  const Index stride = step * 16, whole = vectors ? count / 16 * 16 : 0;
  Index at = first * 16;
  STW_ROLLED
  for (; at + (ahead - 1) * stride < whole; at += ahead * stride) {
    decltype(load(at, FullGroup{})) values[ahead];
    STW_UNROLL
    for (int k = 0; k < ahead; ++k) values[k] = load(at + k * stride, FullGroup{});
    fence_loads();
    STW_UNROLL
    for (int k = 0; k < ahead; ++k) use(values[k], at + k * stride, FullGroup{});
  }
  // The last groups. Loads past the end load the first group again, which costs less than a branch.
  if (at < whole) {
    decltype(load(at, FullGroup{})) values[ahead];
    STW_UNROLL
    for (int k = 0; k < ahead; ++k)
      values[k] = load(at + k * stride < whole ? at + k * stride : at, FullGroup{});
    fence_loads();
    STW_UNROLL
    for (int k = 0; k < ahead; ++k)
      if (at + k * stride < whole) use(values[k], at + k * stride, FullGroup{});
    at += ahead * stride;
  }
  STW_ROLLED
  while (at - stride >= whole) at -= stride;
  STW_ROLLED
  for (; at < count; at += stride) {
    const int64_t n = count - at < 16 ? count - at : 16;
    use(load(at, n), at, n);
  }
}

// Visits all groups of [0, count), by the quads of a grid. A quad takes two adjacent groups at a time,
// because the second address is the first one plus a constant. The number of blocks is limited, so that a
// thread's start-up is a small part of its work. The limit is still far above the number of blocks that run
// together.
inline constexpr int groups_ahead = 2, elements_ahead = 16 * groups_ahead, most_blocks_ahead = 8192;
inline int blocks_for_ahead(int64_t count) {
  const int blocks = blocks_for(count, block_quads * elements_ahead);
  return blocks < most_blocks_ahead ? blocks : most_blocks_ahead;
}
template <class Load, class Use>
STW_DEVICE void groups_together(const Load& load, const Use& use) {
  decltype(load(0)) values[groups_ahead];
  STW_UNROLL
  for (int k = 0; k < groups_ahead; ++k) values[k] = load(16 * k);
  fence_loads(values);
  STW_UNROLL
  for (int k = 0; k < groups_ahead; ++k) use(values[k], 16 * k);
}
// The same for the groups of [begin, end); the calling quad has number `quad_index` of `quads`.
template <class Load, class Use>
STW_DEVICE void for_groups_of_quads_ahead(int64_t begin, int64_t end, int64_t quad_index, int64_t quads,
                                          bool vectors, const Load& load, const Use& use) {
  const int64_t whole = vectors ? begin + (end - begin) / elements_ahead * elements_ahead : begin;
  STW_ROLLED
  for (int64_t at = begin + quad_index * elements_ahead; at < whole; at += quads * elements_ahead)
    groups_together([&](int k) { return load(at + k, FullGroup{}); },
                    [&](const auto& value, int k) { use(value, at + k, FullGroup{}); });
  STW_ROLLED
  for (int64_t at = whole + quad_index * 16; at < end; at += quads * 16) {
    const int64_t n = end - at < 16 ? end - at : 16;
    use(load(at, n), at, n);
  }
}
template <class Load, class Use>
STW_DEVICE void for_groups_of_grid_ahead(int64_t count, bool vectors, const Load& load, const Use& use) {
  for_groups_of_quads_ahead(0, count, thread_of_grid() / quad,
                            static_cast<int64_t>(gridDim.x) * blockDim.x / quad, vectors, load, use);
}
template <class Load, class Use>
STW_DEVICE void for_groups_of_block_ahead(int64_t begin, int64_t end, bool vectors, const Load& load,
                                          const Use& use) {
  for_groups_of_quads_ahead(begin, end, threadIdx.x / quad, blockDim.x / quad, vectors, load, use);
}
// The same for the rows of a matrix (rows, features): load(row, i, n), use(value, row, i, n). A group lies
// within a row. n is FullGroup only if features is a multiple of elements_ahead. A row has `parts` parts of
// two groups each if `whole`, else of one group.
struct RowGroups {
  int64_t rows, features;
  bool whole;
  Divisor parts;
};
inline RowGroups row_groups(int64_t rows, int64_t features, bool vectors) {
  const bool whole = vectors && features % elements_ahead == 0;
  return {rows, features, whole, divisor_of(ceil_div(features, whole ? elements_ahead : 16))};
}
inline int blocks_for_ahead(const RowGroups& g) {
  return blocks_for_ahead(g.rows * g.parts.number * (g.whole ? elements_ahead : 16));
}
template <class Load, class Use>
STW_DEVICE void for_groups_of_rows_ahead(const RowGroups& g, const Load& load, const Use& use) {
  struct Place {
    int64_t row;
    int part;
  };
  const int parts = static_cast<int>(g.parts.number);
  const auto place_of = [&](int64_t task) {
    const int64_t row = quotient(task, g.parts);
    return Place{row, static_cast<int>(task - row * parts)};
  };
  const Place step = place_of(static_cast<int64_t>(gridDim.x) * blockDim.x / quad);
  STW_ROLLED
  for (Place at = place_of(thread_of_grid() / quad); at.row < g.rows;) {
    if (g.whole) {
      const int64_t i = at.part * elements_ahead;
      groups_together([&](int k) { return load(at.row, i + k, FullGroup{}); },
                      [&](const auto& value, int k) { use(value, at.row, i + k, FullGroup{}); });
    } else {
      const int64_t i = at.part * 16, n = min(static_cast<int64_t>(16), g.features - i);
      use(load(at.row, i, n), at.row, i, n);
    }
    const bool over = at.part + step.part >= parts;
    at = {at.row + step.row + (over ? 1 : 0), at.part + step.part - (over ? parts : 0)};
  }
}

template <int n>
struct Ahead {
  static constexpr int value = n;
};  // A number of loads as a type, for generic callers.
// Calls use(load(i)) for i in [0, count), in order. The uses are a chain, and the loads run up to 2 · `ahead`
// ahead of it.
template <int ahead, class Index, class Load, class Use>
STW_DEVICE void for_each_ahead(Index count, const Load& load, const Use& use) {
  Index i = 0;
  if (count >= ahead) {
    // Two alternating sets, so that none is copied.
    decltype(load(i)) even[ahead], odd[ahead];
    const auto load_all = [&](auto& to) {
      STW_UNROLL
      for (int k = 0; k < ahead; ++k) to[k] = load(i + k);
    };
    const auto use_all = [&](const auto& from) {
      STW_UNROLL
      for (int k = 0; k < ahead; ++k) use(from[k]);
    };
    load_all(even);
    STW_ROLLED
    for (i = ahead; i + 2 * ahead <= count; i += ahead) {
      load_all(odd);
      use_all(even);
      i += ahead;
      load_all(even);
      use_all(odd);
    }
    if (i + ahead <= count) {
      load_all(odd);
      use_all(even);
      use_all(odd);
      i += ahead;
    } else {
      use_all(even);
    }
  }
  if (i >= count) return;
  decltype(load(i)) last[ahead];
  STW_UNROLL
  for (int k = 0; k < ahead; ++k) last[k] = load(i + k < count ? i + k : count - 1);
  STW_UNROLL
  for (int k = 0; k < ahead; ++k)
    if (i + k < count) use(last[k]);
}

}  // namespace stw::kernels::cuda
