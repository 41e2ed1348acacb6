// The interface between the kernels and a vendor's attention library. src/cuda/cudnn_attention.h finds and
// calls the library.
#pragma once
#include "kernels/contract/kernels.h"

namespace stw::kernels {

// The part of the attention that one call to the library computes: some samples, or some of the key heads of
// one sample, each with all of its query heads.
struct AttentionPart { int64_t first_sample, samples, first_kv_head, kv_heads; };

// Scratch memory of the gradient of a part: offsets in bytes, multiples of 256, and the total.
//   dots              Like lse.
//   keys, values      Gradients of keys and values for every query head: (samples, rows_per_sample, query
//                     heads, head_dim). Our kernels add them up over the heads that share keys. Empty if no
//                     heads share keys.
//   library           The library's own: two bytes for every score of whole tiles, and
//                     attention_library_bytes. The forward pass has attention_library_bytes alone.
struct AttentionScratch { int64_t dots, keys, values, library, bytes; };

inline constexpr int64_t attention_library_bytes = 1 << 16;
inline constexpr int64_t attention_tile = 128;   // Queries, and keys, of a block.

// Whether a library can be asked for this attention. Depends on shapes and types alone, like all functions
// here.
inline bool library_could_take(const AttentionArgs& args) {
  return may_use_library(args.products) && args.qkv.dtype != DType::f32 && args.out.dtype == args.qkv.dtype && args.position_ids == nullptr &&
         args.dropout == 0 && args.window == 0 && args.alibi_root == 0 && args.head_dim % 8 == 0 && args.head_dim <= 128;
}

inline int64_t attention_tiles(const AttentionArgs& args) { return (args.rows_per_sample + attention_tile - 1) / attention_tile; }

// The largest part of a gradient. It is small because its scratch memory is proportional to it, but it has
// enough blocks to keep a device busy: two for each multiprocessor of a large GPU.
inline AttentionPart largest_attention_part(const AttentionArgs& args) {
  constexpr int64_t blocks = 256;
  const auto at_most = [](int64_t n, int64_t most) { return n < most ? n : most; };
  const int64_t of_head = args.query_heads / args.kv_heads * attention_tiles(args), of_sample = args.kv_heads * of_head;
  if (of_head == 0) return {0, args.samples, 0, args.kv_heads};
  const int64_t kv_heads = at_most((blocks + of_head - 1) / of_head, args.kv_heads);
  return {0, at_most(kv_heads < args.kv_heads ? 1 : (blocks + of_sample - 1) / of_sample, args.samples), 0, kv_heads};
}

// The part that starts at this sample and head and is no larger than `largest`.
inline AttentionPart attention_part_at(const AttentionArgs& args, const AttentionPart& largest, int64_t sample, int64_t kv_head) {
  const int64_t samples = args.samples - sample, kv_heads = args.kv_heads - kv_head;
  return {sample, samples < largest.samples ? samples : largest.samples, kv_head, kv_heads < largest.kv_heads ? kv_heads : largest.kv_heads};
}

inline AttentionScratch attention_scratch(const AttentionArgs& args, const AttentionPart& part) {
  const auto up = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
  const int64_t heads = part.samples * part.kv_heads * (args.query_heads / args.kv_heads), rows = args.rows_per_sample;
  const int64_t edge = attention_tiles(args) * attention_tile, of_shared = args.kv_heads == args.query_heads ? 0 : up(heads * rows * args.head_dim * 2);
  AttentionScratch s{0, up(heads * rows * 4), 0, 0, 0};
  s.values = s.keys + of_shared;
  s.library = s.values + of_shared;
  s.bytes = s.library + 2 * heads * edge * edge + attention_library_bytes;
  return s;
}

//   takes           Whether the library computes this attention, forward or backward. The answer does not
//                   depend on the number of samples. The other two functions are called only if it is true.
//   attend          Computes the forward pass of all samples and heads.
//   differentiate   Computes the gradient of a part. Gradients of shared keys and values stay in the scratch
//                   memory.
// Our kernels do the rest. The library keeps its errors until its owner asks for them.
struct AttentionLibrary {
  void* self;
  bool (*takes)(void* self, const AttentionArgs& args, bool gradient);
  void (*attend)(void* self, const AttentionArgs& args, void* scratch, void* stream);
  void (*differentiate)(void* self, const AttentionArgs& args, const AttentionPart& part, void* scratch, void* stream);
};

}  // namespace stw::kernels
