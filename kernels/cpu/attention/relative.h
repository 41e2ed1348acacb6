// Relative positions in attention (RelativePositions). From one distance to the next, the row of the table
// stays or grows by one. So a block of queries and a block of keys have at most one row for each of their
// distances: [first, first + count). For these rows, two small products give the biases of the whole block:
//
//   by_query (queries, count) = scale·Q·Krᵀ       by_key (count, keys) = scale·Qr·Kᵀ
//
// The bias of a query and a key is an element of each, at the row for their distance. The gradient adds the
// scores' gradients up in the same two layouts, and multiplies them with the other operands. So no tensor of
// all biases exists.
#pragma once
#include "kernels/cpu/attention/attention_tile.h"

namespace stw::kernels {

// Consecutive rows of the table.
struct RelativeRange {
  int64_t first = 0, count = 0;
};

// One thread's scratch memory. `stride`: of `by_query` and `transposed`.
template <int64_t most_queries>
struct RelativeWorkspace {
  static constexpr int64_t stride = relative_stride(most_queries);
  float* transposed;      // (head_dim, stride): keys of relative positions as lanes
  float *keys, *queries;  // (count, row_stride(head_dim)); the queries are multiplied by the scale
  float* by_query;        // (queries, stride)
  float* by_key;          // (count, transposed_stride)
};
template <int64_t most_queries>
STW_INLINE void carve_relative(Carver& carver, int64_t query_rows, int64_t head_dim, bool needs_key_rows,
                               RelativeWorkspace<most_queries>* w) {
  constexpr int64_t stride = relative_stride(most_queries);
  const int64_t rows = most_queries + key_block;
  w->transposed = carver.take(head_dim * stride);
  w->keys = needs_key_rows ? carver.take(rows * row_stride(head_dim)) : nullptr;
  w->queries = carver.take(rows * row_stride(head_dim));
  w->by_query = carver.take(query_rows * stride);
  w->by_key = carver.take(rows * transposed_stride);
}

namespace STW_ISA {

// The table's rows of one head.
struct RelativeHead {
  HeadRows keys, queries;  // Null data: the table has no such part.
  const int32_t* row_at;   // The row for distance 0; negative indices are valid. Null: no relative positions.
  bool exists() const { return row_at != nullptr; }
  // The rows for the distances [least, most].
  RelativeRange range(int64_t least, int64_t most) const {
    const int64_t count = row_at[most] - row_at[least] + 1;
    assert(count <= most - least + 1);
    return {row_at[least], count};
  }
};

STW_INLINE RelativeHead relative_head(const AttentionArgs& args, int64_t head) {
  const RelativePositions& r = args.relative;
  if (r.table.data == nullptr) return {};
  const int64_t of_heads = args.query_heads * args.head_dim;
  const int64_t width = of_heads * (r.has_keys + r.has_queries), at = head * args.head_dim;
  RelativeHead h = {};
  if (r.has_keys) h.keys = {r.table.data, r.table.dtype, at, width};
  if (r.has_queries) h.queries = {r.table.data, r.table.dtype, at + (r.has_keys ? of_heads : 0), width};
  h.row_at = r.rows + args.rows_per_sample - 1;
  return h;
}

template <int64_t most_queries>
STW_INLINE void pack_relative_keys(const RelativeHead& h, const RelativeRange& range, int64_t head_dim,
                                   float* to) {
  const HeadRows& from = h.keys;
  const void* data =
      (const char*)from.data + (from.at + range.first * from.stride) * element_bytes(from.dtype);
  with_dtype(from.dtype, [&](auto stored) {
    pack_along<stored.dtype, relative_stride(most_queries)>(data, from.stride, range.count, head_dim, to);
  });
}

// Adds the biases of one query to its scores of the keys [from, to) of a block. `by_query`: the query's row.
// Both begin at the row `first` of the table; null: the table has no such part. `distance`: to key 0.
STW_INLINE void add_relative(const RelativeHead& h, int64_t first, int64_t distance, const float* by_query,
                             const float* by_key, int64_t from, int64_t to, float* scores) {
  const int32_t* const row = h.row_at + distance;
  if (by_query != nullptr && by_key != nullptr) {
    for (int64_t k = from; k < to; ++k) {
      const int64_t t = row[-k] - first;
      scores[k] += by_query[t] + by_key[t * transposed_stride + k];
    }
  } else if (by_query != nullptr) {
    for (int64_t k = from; k < to; ++k) scores[k] += by_query[row[-k] - first];
  } else {
    for (int64_t k = from; k < to; ++k) scores[k] += by_key[(row[-k] - first) * transposed_stride + k];
  }
}

}  // namespace STW_ISA
}  // namespace stw::kernels
