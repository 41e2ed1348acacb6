// Attention of one chunk of queries of one head over all its keys. It uses the running maximum and sum of
// Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), in blocks as in Dao et al.,
// "FlashAttention" (2022), so no tensor of all scores exists. `attention` and `attention_cached` share this
// code because their rows must agree bit for bit.
//
// The sum of a row has 16 lanes. Each is a serial sum over the blocks, rescaled when the maximum grows. One
// fold at the end adds the lanes.
#pragma once
#include "kernels/common/math.h"
#include "kernels/common/score_rule.h"
#include "kernels/cpu/attention/attention_tile.h"
#include "kernels/cpu/attention/relative.h"
#include "kernels/cpu/philox8.h"

namespace stw::kernels {

// One thread's scratch memory. A chunk has at most `chunk` rows.
struct ForwardWorkspace {
  int64_t chunk;
  float *queries, *transposed_keys, *values, *outputs, *scores, *factors, *maxima, *sum, *rescale;
  RelativeWorkspace<query_chunk> relative;
};
STW_INLINE int64_t carve_forward(int64_t rows, int64_t head_dim, bool has_relative, char* memory,
                                 ForwardWorkspace* w) {
  Carver carver{memory, 0};
  const int64_t stride = row_stride(head_dim);
  w->chunk = rows < query_chunk ? rows : query_chunk;
  w->queries = carver.take(w->chunk * stride);
  w->transposed_keys = carver.take(head_dim * transposed_stride);
  w->values = carver.take(key_block * stride);
  w->outputs = carver.take(w->chunk * stride);
  w->scores = carver.take(query_group * transposed_stride);
  w->factors = carver.take(key_block + 64);
  w->maxima = carver.take(w->chunk + 32);
  w->sum = carver.take(w->chunk * 16);
  w->rescale = carver.take(32);
  w->relative = {};
  if (has_relative) carve_relative(carver, query_group, head_dim, false, &w->relative);
  return carver.bytes;
}

namespace STW_ISA {

struct HeadAttention {
  HeadRows queries, keys, values;
  int64_t query_rows;  // Rows of the head. Elements of dropout are counted in rows of this length.
  int64_t head_dim;
  float scale;
  ScoreRule rule;
  const Dropout* dropout;  // Or null.
  int64_t dropout_first;   // Element of (query row 0, key 0).
  Matrix out;
  int64_t out_at, out_stride;
  float* lse;  // (query_rows), or null.
  RelativeHead relative = {};
};

// The rows of relative positions of all pairs of a query of the chunk and a key of the block that it sees.
static inline RelativeRange relative_range(const HeadAttention& h, int64_t first, int64_t count, int64_t key,
                                           int64_t keys) {
  RelativeRange range = {0, 0};
  for (int64_t row = first, end; row < first + count; row = end) {
    const int64_t start = max(first_key(h.rule, row), key), keys_end = min(end_key(h.rule, row), key + keys);
    end = document_end(h.rule, row, first + count);
    if (start >= key + keys) break;
    if (start >= keys_end) continue;
    const RelativeRange more = h.relative.range(row - (keys_end - 1), end - 1 - start);
    const int64_t least = range.count == 0 ? more.first : min(range.first, more.first);
    range.count = max(range.first + range.count, more.first + more.count) - least;
    range.first = least;
  }
  return range;
}

// Packs the chunk's rows of relative positions, and multiplies its queries with the block's keys.
static inline void prepare_relative(const HeadAttention& h, const ForwardWorkspace& w,
                                    const RelativeRange& range, int64_t keys) {
  if (range.count == 0) return;
  if (h.relative.keys.data != nullptr)
    pack_relative_keys<query_chunk>(h.relative, range, h.head_dim, w.relative.transposed);
  if (h.relative.queries.data == nullptr) return;
  const int64_t stride = row_stride(h.head_dim);
  pack_rows(h.relative.queries, range.first, range.count, h.head_dim, h.scale, w.relative.queries);
  attention_product<false>(range.count, panels_of(keys), h.head_dim, w.relative.queries, stride,
                           w.transposed_keys, transposed_stride, w.relative.by_key, transposed_stride, false);
}

// Adds the biases to the scores of `rows` rows from `row` on, for the keys [hidden, visible) of the block.
static inline void add_relative_of_group(const HeadAttention& h, const ForwardWorkspace& w,
                                         const RelativeRange& range, int64_t row, int64_t rows,
                                         const float* queries, int64_t key, int64_t hidden, int64_t visible) {
  constexpr int64_t columns = RelativeWorkspace<query_chunk>::stride;
  const bool has_keys = h.relative.keys.data != nullptr, has_queries = h.relative.queries.data != nullptr;
  if (has_keys) {
    const RelativeRange own = h.relative.range(row - (key + visible - 1), row + rows - 1 - (key + hidden));
    const int64_t from = (own.first - range.first) / 16 * 16,
                  panels = panels_of(own.first - range.first + own.count - from);
    attention_product<false>(rows, panels, h.head_dim, queries, row_stride(h.head_dim),
                             w.relative.transposed + from, columns, w.relative.by_query + from, columns,
                             false);
  }
  for (int64_t r = 0; r < rows; ++r)
    add_relative(
        h.relative, range.first, row + r - key, has_keys ? w.relative.by_query + r * columns : nullptr,
        has_queries ? w.relative.by_key : nullptr, hidden, visible, w.scores + r * transposed_stride);
}

// Computes, for `rows` rows of one document and one block of keys, the scores, their exponentials in place,
// and outputs += scores · values. Rows of two documents never share a product: a mask would only multiply the
// other document's values by 0, and 0 · NaN is NaN.
//
// `row` counts from the first row of the chunk. The last row of the group sees `visible` keys of this block;
// the first row sees no key before `start`. `first`: this is the first block that the rows see. With a
// window, a row may see no key of the block; its exponentials and sums are 0 until it sees one.
//
// `range`: the rows of relative positions that the chunk and the block have.
static inline void attend_group(const HeadAttention& h, const ForwardWorkspace& w, int64_t chunk_first,
                                int64_t row, int64_t rows, int64_t key_first, int64_t visible, int64_t start,
                                const RelativeRange& range) {
  const int64_t stride = row_stride(h.head_dim), panels = panels_of(visible);
  const bool first = start >= key_first;
  const int64_t hidden = first ? start - key_first : 0, hidden_panels = hidden / 16,
                from = 16 * hidden_panels;
  float* maxima = w.maxima + row;
  float* outputs = w.outputs + row * stride;
  attention_product<false>(rows, panels - hidden_panels, h.head_dim, w.queries + row * stride, stride,
                           w.transposed_keys + from, transposed_stride, w.scores + from, transposed_stride,
                           false);
  if (h.relative.exists())
    add_relative_of_group(h, w, range, chunk_first + row, rows, w.queries + row * stride, key_first, hidden,
                          visible);
  float before[32], now[32];
  for (int64_t r = 0; r < rows; ++r) {
    float* s = w.scores + r * transposed_stride;
    const int64_t query = chunk_first + row + r,
                  seen = max(0, min(visible, end_key(h.rule, query) - key_first));
    const int64_t unseen =
        h.rule.window > 0 ? min(16 * panels, first_key(h.rule, query) - key_first) : hidden;
    if (h.rule.slope != 0)
      for (int64_t k = from; k < 16 * panels; k += 16)
        store(s + k, with_bias(h.rule.slope, h.rule.position + query, key_first + k, load(s + k)));
    for (int64_t k = from; k < unseen; ++k) s[k] = -infinity;
    for (int64_t k = seen; k < 16 * panels; ++k) s[k] = -infinity;
    F16 largest = load(s + from);
    for (int64_t p = hidden_panels + 1; p < panels; ++p) largest = maximum(largest, load(s + 16 * p));
    before[r] = maxima[r];
    const float found = fold_maximum(largest);
    now[r] = found > before[r] ? found : before[r];
    maxima[r] = now[r];
    // The row has seen no key yet: -inf - -inf would be NaN.
    if (before[r] == -infinity && unseen >= seen) now[r] = 0;
  }
  for (int64_t r = rows; r < 32; ++r) before[r] = now[r] = 0;
  for (int i = 0; i < 32; i += 16) store(w.rescale + i, exp(sub(load(before + i), load(now + i))));
  const int64_t output_panels = panels_of(h.head_dim);
  for (int64_t r = 0; r < rows; ++r) {
    float* s = w.scores + r * transposed_stride;
    const F16 rescale = splat(w.rescale[r]), largest = splat(now[r]);
    F16 sum = first ? zero() : mul(load(w.sum + (row + r) * 16), rescale);
    for (int64_t p = hidden_panels; p < panels; ++p) {
      F16 e = exp(sub(load(s + 16 * p), largest));
      sum = add(sum, e);
      store(s + 16 * p, e);
    }
    store(w.sum + (row + r) * 16, sum);
    if (h.dropout != nullptr) {
      const int64_t element = h.dropout_first + (chunk_first + row + r) * h.query_rows + key_first + from;
      dropout_factors(*h.dropout, element, 16 * panels - from, w.factors);
      for (int64_t k = from; k < 16 * panels; k += 16)
        store(s + k, mul(load(s + k), load(w.factors + k - from)));
    }
    if (!first && w.rescale[r] != 1.0f)
      for (int64_t p = 0; p < output_panels; ++p)
        store(outputs + r * stride + 16 * p, mul(load(outputs + r * stride + 16 * p), rescale));
  }
  attention_product<false>(rows, output_panels, visible - hidden, w.scores + hidden, transposed_stride,
                           w.values + hidden * stride, stride, outputs, stride, !first);
}

// Query rows [first, first + w.chunk) of the head.
static inline void attend_chunk(const HeadAttention& h, const ForwardWorkspace& w, int64_t first) {
  const int64_t stride = row_stride(h.head_dim), count = min(w.chunk, h.query_rows - first);
  pack_rows(h.queries, first, count, h.head_dim, h.scale, w.queries);
  for (int64_t r = 0; r < count; ++r) w.maxima[r] = -infinity;
  const int64_t last = end_key(h.rule, first + count - 1), before = first_key(h.rule, first);
  for (int64_t key = before - before % key_block; key < last; key += key_block) {
    const int64_t keys = min(key_block, last - key);
    pack_transposed(h.keys, key, keys, h.head_dim, w.transposed_keys);
    pack_rows(h.values, key, keys, h.head_dim, 1.0f, w.values);
    RelativeRange range = {0, 0};
    if (h.relative.exists()) {
      range = relative_range(h, first, count, key, keys);
      prepare_relative(h, w, range, keys);
    }
    for (int64_t row = 0, rows; row < count; row += rows) {
      const int64_t start = first_key(h.rule, first + row);
      if (start >= key + keys) break;
      rows = document_end(h.rule, first + row, first + min(count, row + query_group)) - first - row;
      const int64_t visible = min(keys, end_key(h.rule, first + row + rows - 1) - key);
      if (visible > 0) attend_group(h, w, first, row, rows, key, visible, start, range);
    }
  }
  for (int64_t r = 0; r < count; ++r) {
    const float sum = fold(load(w.sum + r * 16));
    unpack_row(w.outputs + r * stride, 1.0f / sum, h.head_dim, h.out, h.out_at + (first + r) * h.out_stride);
    if (h.lse != nullptr) h.lse[first + r] = w.maxima[r] + log1(sum);
  }
}

}  // namespace STW_ISA
}  // namespace stw::kernels
