// Shared by the tests of attention: shapes, calls, and a naive reference in double precision.
#pragma once
#include <algorithm>

#include "tests/kernels/harness.h"

namespace stw::kernels::test {

struct AttentionShape {
  int64_t samples, rows;
  int query_heads, kv_heads, head_dim;
  bool causal;
  float dropout;
  DType dtype;
  std::vector<int32_t> position_ids = {};  // Empty: null.
  ProductKernels products = ProductKernels::chain;
  int64_t window = 0;
  bool alibi = false;
  int64_t width() const { return (query_heads + 2 * kv_heads) * head_dim; }
  int64_t out_width() const { return query_heads * head_dim; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(head_dim)); }
  int64_t document_start(int64_t sample, int64_t row) const {
    return position_ids.empty() ? 0 : row - position_ids[sample * rows + row];
  }
  // Whether a row sees a key, by the definition of the rule.
  bool sees(int64_t sample, int64_t row, int64_t key) const {
    return document_start(sample, row) == document_start(sample, key) && (!causal || key <= row) &&
           (window == 0 || std::abs(row - key) < window);
  }
  // As in Press et al. and transformers: powers of 2^(-8/m), where m is the largest power of two that does
  // not exceed the number of heads, and for the remaining heads every other power of the square root of
  // 2^(-8/m).
  double slope(int64_t head) const {
    int64_t m = 1;
    while (2 * m <= query_heads) m *= 2;
    return !alibi     ? 0
           : head < m ? std::pow(2, -8.0 * static_cast<double>(head + 1) / static_cast<double>(m))
                      : std::pow(2, -4.0 * static_cast<double>(2 * (head - m) + 1) / static_cast<double>(m));
  }
  std::vector<int32_t> following() const {
    std::vector<int32_t> list(causal ? 0 : position_ids.size(), 0);
    for (size_t i = list.size(); i-- > 1;)
      if (position_ids[i] > 0) list[i - 1] = list[i] + 1;
    return list;
  }
};

inline std::ostream& operator<<(std::ostream& out, const AttentionShape& s) {
  return out << s.samples << "x" << s.rows << " heads " << s.query_heads << "/" << s.kv_heads << " of "
             << s.head_dim << (s.causal ? " causal" : " bidirectional") << (s.alibi ? " alibi" : "")
             << (s.position_ids.empty() ? "" : " packed") << " window " << s.window << " dropout "
             << s.dropout << " " << name_of(s.dtype);
}

struct AttentionInputs {
  Buffer qkv, dout;
};
inline AttentionInputs inputs(const AttentionShape& s, uint64_t seed) {
  Random random(seed);
  Buffer qkv = Buffer::normal(s.dtype, random, s.samples * s.rows * s.width(), 1.5);
  return {qkv, Buffer::normal(s.dtype, random, s.samples * s.rows * s.out_width())};
}

inline StepState step_state() {
  StepState state = {};
  state.seed = 0x1122334455667788u, state.step = 12, state.first_sample = 3;
  return state;
}
inline constexpr uint32_t stream = 21;

// A second implementation of Philox4x32-10, written from the paper, so that independent code checks the mask.
inline double dropout_factor(const AttentionShape& s, const StepState& state, int64_t sample,
                             uint64_t element) {
  uint32_t c[4] = {static_cast<uint32_t>(element / 4), static_cast<uint32_t>(state.first_sample + sample),
                   stream, static_cast<uint32_t>(state.step)};
  uint32_t key[2] = {static_cast<uint32_t>(state.seed), static_cast<uint32_t>(state.seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    std::copy(next, next + 4, c);
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
  return c[element % 4] >= static_cast<double>(s.dropout) * 4294967296.0
             ? 1 / (1 - static_cast<double>(s.dropout))
             : 0;
}

struct Reference {
  std::vector<double> out, lse, dqkv;
};

// Computes all results by their definitions; dqkv only if there is a dout.
inline Reference reference(const AttentionShape& s, const std::vector<double>& qkv,
                           const std::vector<double>& dout) {
  const StepState state = step_state();
  const int64_t rows = s.rows, dim = s.head_dim, group = s.query_heads / s.kv_heads;
  Reference r;
  r.out.resize(static_cast<size_t>(s.samples * rows * s.out_width()));
  r.lse.resize(static_cast<size_t>(s.samples * s.query_heads * rows));
  if (!dout.empty()) r.dqkv.resize(qkv.size());
  std::vector<double> p(static_cast<size_t>(rows)), factor(p.size(), 1.0), dp(p.size());
  for (int64_t sample = 0; sample < s.samples; ++sample)
    for (int64_t head = 0; head < s.query_heads; ++head)
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t first = sample * rows * s.width();
        const int64_t q = first + row * s.width() + head * dim,
                      o = (sample * rows + row) * s.out_width() + head * dim;
        const auto key = [&](int64_t k) {
          return first + k * s.width() + (s.query_heads + head / group) * dim;
        };
        const auto value = [&](int64_t k) { return key(k) + s.kv_heads * dim; };
        std::vector<int64_t> keys;
        for (int64_t k = 0; k < rows; ++k)
          if (s.sees(sample, row, k)) keys.push_back(k);
        double largest = -INFINITY, sum = 0, mean = 0;
        for (int64_t k : keys) {
          p[k] = 0;
          for (int64_t d = 0; d < dim; ++d) p[k] += qkv[q + d] * qkv[key(k) + d];
          p[k] = p[k] * static_cast<double>(s.scale()) - s.slope(head) * static_cast<double>(row - k);
          largest = std::max(largest, p[k]);
        }
        for (int64_t k : keys) sum += std::exp(p[k] - largest);
        r.lse[(sample * s.query_heads + head) * rows + row] = largest + std::log(sum);
        for (int64_t k : keys) {
          p[k] = std::exp(p[k] - largest) / sum;
          const auto element = static_cast<uint64_t>((head * rows + row) * rows + k);
          if (s.dropout > 0) factor[k] = dropout_factor(s, state, sample, element);
          for (int64_t d = 0; d < dim; ++d) r.out[o + d] += p[k] * factor[k] * qkv[value(k) + d];
        }
        if (dout.empty()) continue;
        for (int64_t k : keys) {
          dp[k] = 0;
          for (int64_t d = 0; d < dim; ++d) {
            dp[k] += dout[o + d] * qkv[value(k) + d];
            r.dqkv[value(k) + d] += p[k] * factor[k] * dout[o + d];
          }
          dp[k] *= factor[k];
          mean += p[k] * dp[k];
        }
        for (int64_t k : keys)
          for (int64_t d = 0; d < dim; ++d) {
            const double ds = p[k] * (dp[k] - mean) * static_cast<double>(s.scale());
            r.dqkv[q + d] += ds * qkv[key(k) + d];
            r.dqkv[key(k) + d] += ds * qkv[q + d];
          }
      }
  return r;
}

struct Outcome {
  Buffer out, dqkv;
  std::vector<float> lse;
};

inline bool same(const Outcome& a, const Outcome& b) {
  return same_bits(a.out, b.out) && same_bits(a.dqkv, b.dqkv) && same_bits(a.lse, b.lse);
}

// `first_sample` is added to the state's own.
inline Outcome compute(const Table& table, const AttentionShape& s, const Buffer& qkv, const Buffer& dout,
                       int threads, int64_t first_sample = 0) {
  StepState state = step_state();
  state.first_sample += static_cast<uint64_t>(first_sample);
  Outcome outcome{Buffer(s.dtype, s.samples * s.rows * s.out_width()), Buffer(s.dtype, qkv.count()),
                  std::vector<float>(static_cast<size_t>(s.samples * s.query_heads * s.rows), NAN)};
  for (int64_t i = 0; i < outcome.dqkv.count(); ++i) outcome.dqkv.set(i, NAN);
  for (int64_t i = 0; i < outcome.out.count(); ++i) outcome.out.set(i, NAN);
  AttentionArgs args = {};
  args.samples = s.samples, args.rows_per_sample = s.rows;
  args.query_heads = s.query_heads, args.kv_heads = s.kv_heads, args.head_dim = s.head_dim;
  args.scale = s.scale(), args.causal = s.causal, args.window = s.window, args.dropout = s.dropout,
  args.stream = stream;
  args.state = s.dropout > 0 ? &state : nullptr;
  args.position_ids = s.position_ids.empty() ? nullptr : s.position_ids.data();
  const std::vector<int32_t> following = s.following();
  args.following = following.empty() ? nullptr : following.data();
  args.alibi_root = s.alibi ? alibi_root(s.query_heads) : 0;
  args.products = s.products;
  args.qkv = qkv.const_matrix(), args.out = outcome.out.matrix(), args.lse = outcome.lse.data();
  run(table.attention, args, threads, attention_workspace(args, threads));
  args.dout = dout.const_matrix(), args.dqkv = outcome.dqkv.matrix();
  run(table.attention_gradient, args, threads, attention_gradient_workspace(args, threads));
  return outcome;
}

inline Buffer slice(const Buffer& from, int64_t first, int64_t count) {
  Buffer part(from.dtype(), count);
  for (int64_t i = 0; i < count; ++i) part.set(i, from.get(first + i));
  return part;
}

// Computes the same sequence over a cache, at most `largest` rows at a time.
inline Buffer compute_cached(const Table& table, const AttentionShape& s, const Buffer& qkv,
                             int64_t largest) {
  const int64_t columns = s.kv_heads * s.head_dim, capacity = s.rows + 3;
  Buffer keys(s.dtype, (capacity + 1) * columns), values(s.dtype, (capacity + 1) * columns),
      out(s.dtype, s.rows * s.out_width());
  for (int64_t i = 0; i < keys.count(); ++i) keys.set(i, NAN), values.set(i, NAN);
  StepState state = step_state();
  for (int64_t row = 0; row < s.rows;) {
    const int64_t count = std::min(largest, s.rows - row);
    const Buffer part = slice(qkv, row * s.width(), count * s.width());
    Buffer part_out(s.dtype, count * s.out_width());
    state.position = static_cast<uint64_t>(row);
    AttentionCachedArgs args = {};
    args.rows = count, args.capacity = capacity;
    args.query_heads = s.query_heads, args.kv_heads = s.kv_heads, args.head_dim = s.head_dim;
    args.scale = s.scale(), args.window = s.window, args.alibi_root = s.alibi ? alibi_root(s.query_heads) : 0,
    args.state = &state, args.qkv = part.const_matrix(), args.out = part_out.matrix();
    args.key_cache = keys.matrix(), args.value_cache = values.matrix();
    run(table.attention_cached, args, 2, attention_cached_workspace(args, 2));
    for (int64_t i = 0; i < part_out.count(); ++i) out.set(row * s.out_width() + i, part_out.get(i));
    row += count;
  }
  int64_t written = 0;
  for (int64_t i = s.rows * columns; i < keys.count(); ++i)
    written += !std::isnan(keys.get(i)) || !std::isnan(values.get(i));
  EXPECT_EQ(written, 0) << "past the rows of the cache, " << s;
  return out;
}

inline AttentionShape within(int64_t window, AttentionShape s) {
  s.window = window;
  return s;
}
inline AttentionShape with_alibi(AttentionShape s) {
  s.alibi = true;
  return s;
}
// The position ids of consecutive documents. A document ends at the end of its sample.
inline std::vector<int32_t> position_ids_of(const std::vector<int64_t>& lengths) {
  std::vector<int32_t> ids;
  for (int64_t length : lengths)
    for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(i));
  return ids;
}

}  // namespace stw::kernels::test
