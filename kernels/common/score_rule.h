// Which keys a row of attention sees, and the bias of its scores. All kernels share this rule, forward and
// backward.
//
// A row sees keys of its own document. In causal attention, it sees the keys up to its own; in bidirectional
// attention, it sees the keys before and after its own, too. With a window w, it sees only those of them with
// |row - key| < w.
// So a row sees consecutive keys, [first_key, end_key), and both ends grow with the row: a block of rows of
// one document sees keys from first_key of its first row to end_key of its last row. Gradients of keys need
// the reverse: rows [first_row, end_row) see a key. If rows have positions, each row of padding at the end of
// a sample is a document of its own.
//
// The bias is ALiBi's (Press et al., arXiv:2108.12409): slope·(key - row), with a slope for each head.
#pragma once
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

// The rule within one document, whose rows are [begin, end). window 0: no limit.
template <class Index>
struct DocumentRule {
  Index begin, end, window;
  bool causal;
};
template <class Index>
STW_INLINE Index first_key(const DocumentRule<Index>& d, Index row) {
  const Index of_window = row - d.window + 1;
  return d.window > 0 && of_window > d.begin ? of_window : d.begin;
}
// The first row after the key's own whose window does not contain the key; the document's end if there is
// none.
template <class Index>
STW_INLINE Index end_row(const DocumentRule<Index>& d, Index key) {
  return d.window > 0 && key + d.window < d.end ? key + d.window : d.end;
}
template <class Index>
STW_INLINE Index end_key(const DocumentRule<Index>& d, Index row) {
  return d.causal ? row + 1 : end_row(d, row);
}
template <class Index>
STW_INLINE Index first_row(const DocumentRule<Index>& d, Index key) {
  return d.causal ? key : first_key(d, key);
}

// The first row of the row's document. Positions count from 0 in each document; null: one document.
STW_INLINE int64_t document_start(const int32_t* positions, int64_t row) {
  return positions == nullptr ? 0 : row - positions[row];
}
// The first row between `row` and `end` that belongs to another document; `end` if there is none. `following`
// may be null.
template <class Index>
STW_INLINE Index document_end(const int32_t* positions, const int32_t* following, Index row, Index end) {
  if (positions == nullptr) return end;
  if (following != nullptr) return following[row] < end - row - 1 ? row + 1 + following[row] : end;
  const Index start = row - positions[row];
  Index low = row, high = end;  // `low` is in this document, `high` is not.
  while (high - low > 1) {
    const Index middle = (low + high) / 2;
    if (middle - positions[middle] <= start) low = middle;
    else high = middle;
  }
  return high;
}

// ALiBi's slope of a head is a power of `root` (see alibi_root): powers 2, 4, 6, … for the first m heads,
// where m is the largest power of two that does not exceed `heads`, and powers 1, 3, 5, … for the others.
// Multiplications in double precision give the same float on every device.
STW_INLINE float alibi_slope(double root, int64_t heads, int64_t head) {
  if (root == 0) return 0;
  int64_t m = 1;
  while (2 * m <= heads) m *= 2;
  double slope = 1;
  for (int64_t n = head < m ? 2 * head + 2 : 2 * (head - m) + 1; n > 0; n /= 2, root *= root)
    if (n % 2 == 1) slope *= root;
  return (float)slope;
}
// The biased score of a row and a key.
STW_INLINE float with_bias(float slope, int64_t row, int64_t key, float score) {
  return fma1(slope, (float)(key - row), score);
}
// The biased scores of sixteen adjacent keys, beginning with `first`.
STW_INLINE F16 with_bias(float slope, int64_t row, int64_t first, F16 scores) {
#if defined(STW_ISA_CUDA)
  for (int i = 0; i < 4; ++i) scores.f[i] = with_bias(slope, row, first + first_lane() + i, scores.f[i]);
  return scores;
#else
  static const float places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return fma(splat(slope), add(splat((float)(first - row)), load(places)), scores);
#endif
}

// The rule of one head of one sample.
struct ScoreRule {
  const int32_t *positions, *following;  // For the rows of the sample, or null.
  int64_t position;                      // Position of row 0 among the keys.
  int64_t keys;
  int64_t window;
  bool causal;
  float slope;  // 0: no bias.
};
STW_INLINE ScoreRule score_rule(const AttentionArgs& args, int64_t sample, int64_t head) {
  const int64_t rows = args.rows_per_sample;
  return {args.position_ids == nullptr ? nullptr : args.position_ids + sample * rows,
          args.following == nullptr ? nullptr : args.following + sample * rows,
          0,
          rows,
          args.window,
          args.causal,
          alibi_slope(args.alibi_root, args.query_heads, head)};
}
STW_INLINE ScoreRule score_rule(const AttentionCachedArgs& args, int64_t position, int64_t head) {
  return {nullptr,
          nullptr,
          position,
          position + args.rows,
          args.window,
          true,
          alibi_slope(args.alibi_root, args.query_heads, head)};
}
STW_INLINE int64_t first_key(const ScoreRule& s, int64_t row) {
  return first_key(DocumentRule<int64_t>{document_start(s.positions, row), 0, s.window, s.causal},
                   s.position + row);
}
STW_INLINE int64_t end_key(const ScoreRule& s, int64_t row) {
  const int64_t end = s.causal ? 0 : document_end(s.positions, s.following, row, s.keys);
  return end_key(DocumentRule<int64_t>{0, end, s.window, s.causal}, s.position + row);
}
STW_INLINE int64_t first_row(const ScoreRule& s, int64_t key) { return s.causal ? key : first_key(s, key); }
STW_INLINE int64_t document_end(const ScoreRule& s, int64_t row, int64_t end) {
  return document_end(s.positions, s.following, row, end);
}

}  // namespace stw::kernels::STW_ISA
