// How the gradient of attention is divided into parts for a vendor's library, and the scratch memory of a
// part. All functions depend on shapes alone.
#pragma once
#include <cstdint>

#include "kernels/contract/sizes.h"

namespace stw::kernels {

struct AttentionShape {
  int64_t samples, rows_per_sample, query_heads, kv_heads, head_dim;
};

// The part of the attention that one call to the library computes: some samples, or some of the key heads of
// one sample, each with all of its query heads.
struct AttentionPart {
  int64_t first_sample, samples, first_kv_head, kv_heads;
};

// Scratch memory of the gradient of a part: offsets in bytes, multiples of 256, and the total.
//   dots              For the library: one float for each row and query head, in the shape of lse.
//   keys, values      Gradients of keys and values for every query head, in 16 bits, of shape
//                     (samples, rows_per_sample, query heads, head_dim). Our kernels add them up over the
//                     heads that share keys. Empty if no heads share keys.
//   library           Workspace of the library: two bytes for every score, with queries and keys rounded
//                     up to whole tiles, plus attention_library_bytes. The forward pass has only the latter.
struct AttentionScratch {
  int64_t dots, keys, values, library, bytes;
};

inline constexpr int64_t attention_library_bytes = 1 << 16;
inline constexpr int64_t attention_tile = 128;  // Queries, and keys, of a block.

inline int64_t attention_tiles(const AttentionShape& s) {
  return static_cast<int64_t>(ceil_div(static_cast<uint64_t>(s.rows_per_sample), attention_tile));
}

// The largest part of a gradient. The part is small, because the scratch memory grows in proportion to the
// part. But the part has enough blocks to keep a device busy: two for each multiprocessor of a large GPU.
inline AttentionPart largest_attention_part(const AttentionShape& s) {
  constexpr int64_t blocks = 256;
  const auto at_most = [](int64_t n, int64_t most) { return n < most ? n : most; };
  const auto parts = [](int64_t of) { return (blocks + of - 1) / of; };
  const auto product = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(size_mul(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  };
  const int64_t of_head = product(s.query_heads / s.kv_heads, attention_tiles(s)),
                of_sample = product(s.kv_heads, of_head);
  if (of_head == 0) return {0, s.samples, 0, s.kv_heads};
  const int64_t kv_heads = at_most(parts(of_head), s.kv_heads);
  return {0, at_most(kv_heads < s.kv_heads ? 1 : parts(of_sample), s.samples), 0, kv_heads};
}

// The part that starts at this sample and head and is no larger than `largest`.
inline AttentionPart attention_part_at(const AttentionShape& s, const AttentionPart& largest, int64_t sample,
                                       int64_t kv_head) {
  const int64_t samples = s.samples - sample, kv_heads = s.kv_heads - kv_head;
  return {sample, samples < largest.samples ? samples : largest.samples, kv_head,
          kv_heads < largest.kv_heads ? kv_heads : largest.kv_heads};
}

inline AttentionScratch attention_scratch(const AttentionShape& s, const AttentionPart& part) {
  const auto n = [](int64_t x) { return static_cast<uint64_t>(x); };
  const uint64_t heads = size_mul(n(part.samples * part.kv_heads), n(s.query_heads / s.kv_heads)),
                 rows = size_mul(heads, n(s.rows_per_sample));
  const uint64_t edge = size_mul(n(attention_tiles(s)), attention_tile);
  const uint64_t of_shared =
      s.kv_heads == s.query_heads ? 0 : round_up(size_mul(rows, 2 * n(s.head_dim)), 256);
  const uint64_t keys = round_up(size_mul(rows, sizeof(float)), 256), values = size_add(keys, of_shared),
                 library = size_add(values, of_shared);
  const uint64_t bytes =
      size_add(library, size_add(size_mul(2 * heads, size_mul(edge, edge)), attention_library_bytes));
  return {0, static_cast<int64_t>(keys), static_cast<int64_t>(values), static_cast<int64_t>(library),
          static_cast<int64_t>(bytes)};
}

}  // namespace stw::kernels
