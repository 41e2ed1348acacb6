// The gradient of attention. It computes the probabilities again from the log-sum-exponentials of the forward
// pass:
//
//   P = exp(scale·Q·Kᵀ - lse)   D = rowsum(dout ∘ out)   dV = (P∘F)ᵀ·dout   dS = P ∘ (F ∘ (dout·Vᵀ) - D)
//   dQ = scale·dS·K             dK = dSᵀ·(scale·Q)
//
// F holds the factors of dropout (Dao et al., 2022, appendix B).
//
// A task is one key head of one sample. It takes the head's query heads in order, for each of them the blocks
// of keys, and for each block of keys the blocks of queries. So every element of dQ, dK and dV is one chain
// in fp32, and it is rounded to the storage type once, at its end.
//
// With relative positions, r being the row for a query and a key:
//
//   dQ += scale·dS·Kr   dK += dSᵀ·(scale·Qr)   dKr = Σ dS·(scale·Q)   dQr = scale·Σ dS·K
//
// If their table is trained, a task is one head of all samples, which it takes in order.
//
// In attention to both sides, rows without an output gradient are left out at either end of a piece of
// queries: they would add +0 to every sum. The last block of a text classifier has such a gradient for one
// row of each text. Not in fp16: there an operand may be infinite, and 0 times infinity is not a number.
#include "kernels/common/math.h"
#include "kernels/common/score_rule.h"
#include "kernels/cpu/attention/attention_gradient_layout.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/cpu/philox8.h"
#include "kernels/cpu/zeros.h"

namespace stw::kernels::STW_ISA {
namespace {

// Rows of a block on the causal diagonal that share one limit on their keys.
constexpr int64_t diagonal_step = 12;

struct Head {
  const AttentionArgs* args;
  const Dropout* dropout;  // Or null.
  ScoreRule rule;
  HeadRows queries, douts, outs;
  const float* lse;       // (rows)
  int64_t dropout_first;  // Element of (query 0, key 0).
  RelativeHead relative;
};

// A block of queries and a block of keys, all of one document. `diagonal`: query r sees keys 0..r of the
// block at most. `first`: no earlier block has keys that the queries see.
struct BlockPair {
  int64_t query, queries, key, keys;
  bool diagonal, first;
};

float dot_row(const Head& h, int64_t row, int64_t head_dim) {
  F16 sum = zero();
  const int64_t a = h.douts.at + row * h.douts.stride, b = h.outs.at + row * h.outs.stride;
  for (int64_t d = 0; d < head_dim; d += 16) {
    const int64_t lanes = min(16, head_dim - d);
    F16 x, y;
    if (lanes == 16) {
      x = load16(h.douts.data, h.douts.dtype, a + d);
      y = load16(h.outs.data, h.outs.dtype, b + d);
    } else {
      x = load16_some(h.douts.data, h.douts.dtype, a + d, lanes);
      y = load16_some(h.outs.data, h.outs.dtype, b + d, lanes);
    }
    sum = fma(x, y, sum);
  }
  return fold(sum);
}

// Consecutive rows.
struct RowSpan {
  int64_t begin, end;
};
bool has_gradient(const Head& h, int64_t row) {
  const HeadRows& d = h.douts;
  return !are_zero((const char*)d.data + (d.at + row * d.stride) * element_bytes(d.dtype), d.dtype,
                   h.args->head_dim);
}
// Without the rows at either end that have no gradient.
RowSpan rows_with_gradient(const Head& h, RowSpan rows) {
  while (rows.begin < rows.end && !has_gradient(h, rows.begin)) ++rows.begin;
  while (rows.begin < rows.end && !has_gradient(h, rows.end - 1)) --rows.end;
  return rows;
}

// Scores become P∘F in w.probabilities, dout·Vᵀ becomes dS in w.dscores. Lanes that a query does not see
// become 0.
void differentiate_scores(const Head& h, const GradientWorkspace& w, const BlockPair& b) {
  for (int64_t r = 0; r < b.queries; ++r) {
    float* s = w.probabilities + r * transposed_stride;
    float* d = w.dscores + r * transposed_stride;
    const int64_t row = b.query + r, seen = max(0, min(b.keys, end_key(h.rule, row) - b.key));
    const int64_t lanes = 16 * panels_of(seen), unseen = min(lanes, first_key(h.rule, row) - b.key);
    if (h.rule.slope != 0)
      for (int64_t k = 0; k < lanes; k += 16)
        store(s + k, with_bias(h.rule.slope, row, b.key + k, load(s + k)));
    for (int64_t k = seen; k < lanes; ++k) s[k] = -infinity, d[k] = 0;
    for (int64_t k = 0; k < unseen; ++k) s[k] = -infinity, d[k] = 0;
    const F16 lse = splat(h.lse[row]), dot = splat(-w.dot[row]);
    if (h.dropout != nullptr)
      dropout_factors(*h.dropout, h.dropout_first + row * h.args->rows_per_sample + b.key, lanes, w.factors);
    for (int64_t k = 0; k < lanes; k += 16) {
      const F16 p = exp(sub(load(s + k), lse));
      const F16 factor = h.dropout != nullptr ? load(w.factors + k) : splat(1.0f);
      store(d + k, mul(p, fma(load(d + k), factor, dot)));
      store(s + k, mul(p, factor));
    }
    for (int64_t k = lanes; k < transposed_stride - 16; k += 16) store(s + k, zero()), store(d + k, zero());
  }
}

constexpr int64_t relative_columns = RelativeWorkspace<query_block>::stride;

RelativeRange range_of(const Head& h, const BlockPair& b) {
  return h.relative.range(b.query - (b.key + b.keys - 1), b.query + b.queries - 1 - b.key);
}

// Adds the biases of relative positions to the scores in w.probabilities.
void add_relative_of_pair(const Head& h, const GradientWorkspace& w, const BlockPair& b,
                          const RelativeRange& range) {
  const int64_t head_dim = h.args->head_dim, stride = row_stride(head_dim);
  const bool has_keys = h.relative.keys.data != nullptr, has_queries = h.relative.queries.data != nullptr;
  if (has_keys) {
    pack_relative_keys<query_block>(h.relative, range, head_dim, w.relative.transposed);
    attention_product<false>(b.queries, panels_of(range.count), head_dim, w.queries, stride,
                             w.relative.transposed, relative_columns, w.relative.by_query, relative_columns,
                             false);
  }
  if (has_queries) {
    pack_rows(h.relative.queries, range.first, range.count, head_dim, h.args->scale, w.relative.queries);
    attention_product<false>(range.count, panels_of(b.keys), head_dim, w.relative.queries, stride,
                             w.transposed_keys + b.key % key_block, transposed_stride, w.relative.by_key,
                             transposed_stride, false);
  }
  for (int64_t r = 0; r < b.queries; ++r)
    add_relative(h.relative, range.first, b.query + r - b.key,
                 has_keys ? w.relative.by_query + r * relative_columns : nullptr,
                 has_queries ? w.relative.by_key : nullptr, 0, b.keys,
                 w.probabilities + r * transposed_stride);
}

// Adds up the scores' gradients of each row of the table, for every query and for every key.
void sum_by_rows(const Head& h, const GradientWorkspace& w, const BlockPair& b, const RelativeRange& range) {
  if (h.relative.keys.data != nullptr)
    for (int64_t i = 0; i < b.queries * relative_columns; i += 16) store(w.relative.by_query + i, zero());
  if (h.relative.queries.data != nullptr)
    for (int64_t i = 0; i < range.count * transposed_stride; i += 16) store(w.relative.by_key + i, zero());
  for (int64_t r = 0; r < b.queries; ++r) {
    const int32_t* const row = h.relative.row_at + (b.query + r - b.key);
    const float* const d = w.dscores + r * transposed_stride;
    float* const by_query = w.relative.by_query + r * relative_columns;
    if (h.relative.keys.data != nullptr)
      for (int64_t k = 0; k < b.keys; ++k) by_query[row[-k] - range.first] += d[k];
    if (h.relative.queries.data != nullptr)
      for (int64_t k = 0; k < b.keys; ++k)
        w.relative.by_key[(row[-k] - range.first) * transposed_stride + k] += d[k];
  }
}

// The gradients of the biases: of queries, of keys, and of the table if it is trained.
void differentiate_relative(const Head& h, const GradientWorkspace& w, const BlockPair& b,
                            const RelativeRange& range, float* dkeys) {
  const int64_t head_dim = h.args->head_dim, stride = row_stride(head_dim), panels = panels_of(head_dim);
  const bool is_trained = h.args->relative.gradient != nullptr;
  sum_by_rows(h, w, b, range);
  if (h.relative.keys.data != nullptr) {
    pack_rows(h.relative.keys, range.first, range.count, head_dim, 1.0f, w.relative.keys);
    attention_product<false>(b.queries, panels, range.count, w.relative.by_query, relative_columns,
                             w.relative.keys, stride, w.dqueries + b.query * stride, stride, true);
    if (is_trained)
      attention_product<true>(range.count, panels, b.queries, w.relative.by_query, relative_columns,
                              w.queries, stride, w.drelative_keys + range.first * stride, stride, true);
  }
  if (h.relative.queries.data != nullptr) {
    attention_product<true>(b.keys, panels, range.count, w.relative.by_key, transposed_stride,
                            w.relative.queries, stride, dkeys, stride, true);
    if (is_trained)
      attention_product<false>(range.count, panels, b.keys, w.relative.by_key, transposed_stride,
                               w.keys + b.key % key_block * stride, stride,
                               w.drelative_queries + range.first * stride, stride, true);
  }
}

void block_pair(const Head& h, const GradientWorkspace& w, const BlockPair& b, float* dkeys, float* dvalues,
                bool first_of_keys) {
  const int64_t head_dim = h.args->head_dim, stride = row_stride(head_dim), panels = panels_of(head_dim);
  const int64_t step = b.diagonal ? diagonal_step : query_block, packed_key = b.key % key_block;
  pack_rows(h.queries, b.query, b.queries, head_dim, h.args->scale, w.queries);
  pack_rows(h.douts, b.query, b.queries, head_dim, 1.0f, w.douts);
  for (int64_t r = 0; r < b.queries; r += step) {
    const int64_t rows = min(step, b.queries - r), seen = b.diagonal ? min(b.keys, r + rows) : b.keys;
    attention_product<false>(rows, panels_of(seen), head_dim, w.queries + r * stride, stride,
                             w.transposed_keys + packed_key, transposed_stride,
                             w.probabilities + r * transposed_stride, transposed_stride, false);
    attention_product<false>(rows, panels_of(seen), head_dim, w.douts + r * stride, stride,
                             w.transposed_values + packed_key, transposed_stride,
                             w.dscores + r * transposed_stride, transposed_stride, false);
  }
  const RelativeRange range = h.relative.exists() ? range_of(h, b) : RelativeRange{};
  if (h.relative.exists()) add_relative_of_pair(h, w, b, range);
  differentiate_scores(h, w, b);
  for (int64_t k = 0; k < b.keys; k += step) {
    const int64_t rows = min(step, b.keys - k), from = b.diagonal ? k : 0;
    attention_product<true>(rows, panels, b.queries - from, w.probabilities + from * transposed_stride + k,
                            transposed_stride, w.douts + from * stride, stride, dvalues + k * stride, stride,
                            !first_of_keys);
    attention_product<true>(rows, panels, b.queries - from, w.dscores + from * transposed_stride + k,
                            transposed_stride, w.queries + from * stride, stride, dkeys + k * stride, stride,
                            !first_of_keys);
  }
  for (int64_t r = 0; r < b.queries; r += step) {
    const int64_t rows = min(step, b.queries - r), seen = b.diagonal ? min(b.keys, r + rows) : b.keys;
    attention_product<false>(rows, panels, seen, w.dscores + r * transposed_stride, transposed_stride,
                             w.keys + packed_key * stride, stride, w.dqueries + (b.query + r) * stride,
                             stride, !b.first);
  }
  if (h.relative.exists()) differentiate_relative(h, w, b, range, dkeys);
}

void differentiate_kv_head(const AttentionArgs& args, const GradientWorkspace& w, int64_t sample,
                           int64_t kv_head) {
  const int64_t rows = args.rows_per_sample, head_dim = args.head_dim, stride = row_stride(head_dim);
  const int64_t out_width = args.query_heads * head_dim, width = out_width + 2 * args.kv_heads * head_dim;
  const int64_t group = args.query_heads / args.kv_heads, top = sample * rows * width;
  const int64_t key_at = top + out_width + kv_head * head_dim, value_at = key_at + args.kv_heads * head_dim;
  const HeadRows keys = {args.qkv.data, args.qkv.dtype, key_at, width};
  const HeadRows values = {args.qkv.data, args.qkv.dtype, value_at, width};
  Dropout dropout = {};
  if (args.dropout > 0) dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
  for (int64_t member = 0; member < group; ++member) {
    const int64_t head = kv_head * group + member, out_at = sample * rows * out_width + head * head_dim;
    Head h;
    h.args = &args;
    h.rule = score_rule(args, sample, head);
    h.dropout = args.dropout > 0 ? &dropout : nullptr;
    h.queries = {args.qkv.data, args.qkv.dtype, top + head * head_dim, width};
    h.douts = {args.dout.data, args.dout.dtype, out_at, out_width};
    h.outs = {args.out.data, args.out.dtype, out_at, out_width};
    h.lse = args.lse + (sample * args.query_heads + head) * rows;
    h.dropout_first = head * rows * rows;
    h.relative = relative_head(args, head);
    const bool leaves_out = !args.causal && args.dout.dtype != DType::f16;
    for (int64_t r = 0; r < rows; ++r) {
      w.dot[r] = dot_row(h, r, head_dim);
      if (leaves_out && !has_gradient(h, r))
        for (int64_t i = 0; i < stride; i += 16) store(w.dqueries + r * stride + i, zero());
    }
    for (int64_t key = 0; key < rows; key += key_block) {
      const int64_t count = min(key_block, rows - key), offset = group == 1 ? 0 : key * stride;
      pack_rows(keys, key, count, head_dim, 1.0f, w.keys);
      pack_transposed(keys, key, count, head_dim, w.transposed_keys);
      pack_transposed(values, key, count, head_dim, w.transposed_values);
      const auto differentiate = [&](const BlockPair& pair, bool first_of_keys) {
        const int64_t at = offset + (pair.key - key) * stride;
        block_pair(h, w, pair, w.dkeys + at, w.dvalues + at, first_of_keys);
      };
      if (args.causal) {
        // On the diagonal, where keys and queries are the same rows, each document is a square of its own. A
        // later query sees keys of this block only if it belongs to the block's last document and its window
        // reaches them.
        for (int64_t row = key, end; row < key + count; row = end) {
          end = document_end(h.rule, row, key + count);
          differentiate({row, end - row, row, end - row, true, row == first_key(h.rule, row)}, member == 0);
        }
      } else if (member == 0) {
        for (int64_t i = 0; i < count * stride; i += 16)
          store(w.dkeys + offset + i, zero()), store(w.dvalues + offset + i, zero());
      }
      // Queries come in pieces; each lies in one document and one block. A piece is combined with all keys
      // that any of its rows sees.
      const int64_t before = first_row(h.rule, key), block = before - before % query_block;
      for (int64_t query = args.causal ? key + query_block
                                       : max(block, document_start(h.rule.positions, before)),
                   end;
           query < rows; query = end) {
        if (max(first_key(h.rule, query), key) >= key + count) break;
        end = document_end(h.rule, query, min(rows, query - query % query_block + query_block));
        const RowSpan piece = leaves_out ? rows_with_gradient(h, {query, end}) : RowSpan{query, end};
        if (piece.begin == piece.end) continue;
        const int64_t start = first_key(h.rule, piece.begin), begin = max(start, key),
                      keys_end = min(key + count, end_key(h.rule, piece.end - 1));
        if (begin < keys_end)
          differentiate(
              {piece.begin, piece.end - piece.begin, begin, keys_end - begin, false, begin == start}, false);
      }
      if (member + 1 < group) continue;
      for (int64_t k = 0; k < count; ++k) {
        unpack_row(w.dkeys + offset + k * stride, 1.0f, head_dim, args.dqkv, key_at + (key + k) * width);
        unpack_row(w.dvalues + offset + k * stride, 1.0f, head_dim, args.dqkv, value_at + (key + k) * width);
      }
    }
    for (int64_t r = 0; r < rows; ++r)
      unpack_row(w.dqueries + r * stride, args.scale, head_dim, args.dqkv, top + head * head_dim + r * width);
  }
}

// The rows of the table that the distances within a sample's longest document have. Other rows have no
// gradient.
RelativeRange rows_in_use(const AttentionArgs& args, int64_t sample) {
  const ScoreRule rule = score_rule(args, sample, 0);
  int64_t longest = 0;
  for (int64_t row = 0, end; row < args.rows_per_sample; row = end) {
    end = document_end(rule, row, args.rows_per_sample);
    longest = max(longest, end - row);
  }
  return relative_head(args, 0).range(1 - longest, longest - 1);
}

// Adds the sums of one head of one sample to the gradient of the table, or begins the gradient with them.
void add_to_table(const AttentionArgs& args, const GradientWorkspace& w, int64_t head, bool begins,
                  const RelativeRange& range) {
  const RelativePositions& relative = args.relative;
  const int64_t head_dim = args.head_dim, stride = row_stride(head_dim),
                of_heads = args.query_heads * head_dim;
  const int64_t width = of_heads * (relative.has_keys + relative.has_queries);
  const auto add = [&](const float* sums, float factor, int64_t column) {
    float* const gradient = relative.gradient + column + head * head_dim;
    for (int64_t t = 0; begins && t < relative.table_rows; ++t)
      for (int64_t d = 0; d < head_dim; ++d) gradient[t * width + d] = 0;
    for (int64_t t = range.first; t < range.first + range.count; ++t)
      for (int64_t d = 0; d < head_dim; ++d) gradient[t * width + d] += factor * sums[t * stride + d];
  };
  if (relative.has_keys) add(w.drelative_keys, 1, 0);
  if (relative.has_queries) add(w.drelative_queries, args.scale, relative.has_keys ? of_heads : 0);
}

void differentiate_with_table(const AttentionArgs& args, const GradientWorkspace& w, int64_t head) {
  const int64_t stride = row_stride(args.head_dim);
  for (int64_t sample = 0; sample < args.samples; ++sample) {
    const RelativeRange range = rows_in_use(args, sample);
    for (int64_t i = range.first * stride; i < (range.first + range.count) * stride; i += 16) {
      store(w.drelative_keys + i, zero());
      store(w.drelative_queries + i, zero());
    }
    differentiate_kv_head(args, w, sample, head);
    add_to_table(args, w, head, sample == 0 && !args.relative.accumulate, range);
  }
}

}  // namespace

void attention_gradient(const Launch& launch, const AttentionArgs& args) {
  STW_ASSERT_WORKSPACE(attention_gradient);
  assert(is_valid_score_rule(args));
  GradientWorkspace counted;
  const int64_t thread_bytes = carve_gradient(args, nullptr, &counted);
  STW_ASSERT_THREADS_FIT(thread_bytes);
  const bool trains_table = args.relative.gradient != nullptr;
  parallel_for(launch, (trains_table ? 1 : args.samples) * args.kv_heads, [&](int64_t index, int thread) {
    GradientWorkspace w;
    carve_gradient(args, (char*)launch.workspace + thread * thread_bytes, &w);
    if (trains_table) return differentiate_with_table(args, w, index);
    differentiate_kv_head(args, w, index / args.kv_heads, index % args.kv_heads);
  });
}

}  // namespace stw::kernels::STW_ISA
