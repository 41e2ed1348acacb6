// Shared by the tests of attention with relative positions: shapes, calls, and a naive reference in double
// precision.
#pragma once
#include "tests/kernels/attention/attention_cases.h"

namespace stw::kernels::test::relative_test {

struct Shape {
  int64_t samples, rows;
  int heads, head_dim;
  int64_t span, buckets;  // 0 buckets: each distance has a row
  bool keys, queries;
  float dropout = 0;
  DType dtype = DType::f32;
  std::vector<int64_t> lengths = {};  // of documents; empty: a sample is one document
  ProductKernels products = ProductKernels::chain;

  int64_t table_rows() const { return 2 * span; }
  int64_t width() const { return int64_t{3} * heads * head_dim; }
  int64_t out_width() const { return int64_t{heads} * head_dim; }
  int64_t table_width() const { return (keys + queries) * out_width(); }
  float scale() const { return 1 / std::sqrt(static_cast<float>(head_dim * (1 + keys + queries))); }
  // Rows of the table grow with the distance: one by one near 0, then in ranges.
  int64_t row_of(int64_t distance) const {
    const int64_t size = std::abs(distance), near = buckets / 2;
    const int64_t moved = buckets == 0 || size <= near ? size : near + (size - near + 2) / 3;
    return std::clamp<int64_t>((distance < 0 ? -moved : moved) + span, 0, table_rows() - 1);
  }
  std::vector<int32_t> rows_of_distances() const {
    std::vector<int32_t> list;
    for (int64_t d = 1 - rows; d < rows; ++d) list.push_back(static_cast<int32_t>(row_of(d)));
    return list;
  }
  AttentionShape attention() const {
    AttentionShape s{samples, rows, heads, heads, head_dim, false, dropout, dtype};
    if (!lengths.empty()) s.position_ids = position_ids_of(lengths);
    return s;
  }
};
inline std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.attention() << " span " << s.span << " buckets " << s.buckets << (s.keys ? " keys" : "")
             << (s.queries ? " queries" : "");
}

struct Inputs {
  Buffer qkv, dout, table;
};
inline Inputs inputs_of(const Shape& s, uint64_t seed) {
  Random random(seed);
  Buffer qkv = Buffer::normal(s.dtype, random, s.samples * s.rows * s.width(), 1.2),
         dout = Buffer::normal(s.dtype, random, s.samples * s.rows * s.out_width());
  return {std::move(qkv), std::move(dout), Buffer::normal(s.dtype, random, s.table_rows() * s.table_width())};
}

struct Result {
  std::vector<double> out, dqkv, dtable;
};

// By the definitions; the gradients only if there is a dout.
inline Result expected_of(const Shape& s, const std::vector<double>& qkv, const std::vector<double>& table,
                          const std::vector<double>& dout) {
  const AttentionShape rule = s.attention();
  const StepState state = step_state();
  const int64_t dim = s.head_dim, queries_at = s.keys ? s.out_width() : 0;
  const double scale = static_cast<double>(s.scale());
  Result r;
  r.out.resize(static_cast<size_t>(s.samples * s.rows * s.out_width()));
  if (!dout.empty()) r.dqkv.resize(qkv.size()), r.dtable.resize(table.size());
  std::vector<double> p(static_cast<size_t>(s.rows)), factor(p.size(), 1.0), dp(p.size());
  for (int64_t sample = 0; sample < s.samples; ++sample)
    for (int64_t head = 0; head < s.heads; ++head)
      for (int64_t row = 0; row < s.rows; ++row) {
        const int64_t top = sample * s.rows * s.width(), q = top + row * s.width() + head * dim,
                      o = (sample * s.rows + row) * s.out_width() + head * dim;
        const auto key = [&](int64_t k) { return top + k * s.width() + (s.heads + head) * dim; };
        const auto value = [&](int64_t k) { return key(k) + s.heads * dim; };
        const auto table_key = [&](int64_t k) { return s.row_of(row - k) * s.table_width() + head * dim; };
        const auto table_query = [&](int64_t k) { return table_key(k) + queries_at; };
        std::vector<int64_t> seen;
        for (int64_t k = 0; k < s.rows; ++k)
          if (rule.sees(sample, row, k)) seen.push_back(k);
        double largest = -INFINITY, sum = 0, mean = 0;
        for (int64_t k : seen) {
          p[k] = 0;
          for (int64_t d = 0; d < dim; ++d) {
            p[k] += qkv[q + d] * qkv[key(k) + d];
            if (s.keys) p[k] += qkv[q + d] * table[table_key(k) + d];
            if (s.queries) p[k] += table[table_query(k) + d] * qkv[key(k) + d];
          }
          largest = std::max(largest, p[k] *= scale);
        }
        for (int64_t k : seen) sum += std::exp(p[k] - largest);
        for (int64_t k : seen) {
          p[k] = std::exp(p[k] - largest) / sum;
          if (s.dropout > 0)
            factor[k] = dropout_factor(rule, state, sample,
                                       static_cast<uint64_t>((head * s.rows + row) * s.rows + k));
          for (int64_t d = 0; d < dim; ++d) r.out[o + d] += p[k] * factor[k] * qkv[value(k) + d];
        }
        if (dout.empty()) continue;
        for (int64_t k : seen) {
          dp[k] = 0;
          for (int64_t d = 0; d < dim; ++d) {
            dp[k] += dout[o + d] * qkv[value(k) + d];
            r.dqkv[value(k) + d] += p[k] * factor[k] * dout[o + d];
          }
          mean += p[k] * (dp[k] *= factor[k]);
        }
        for (int64_t k : seen)
          for (int64_t d = 0; d < dim; ++d) {
            const double ds = p[k] * (dp[k] - mean) * scale;
            r.dqkv[q + d] += ds * qkv[key(k) + d];
            r.dqkv[key(k) + d] += ds * qkv[q + d];
            if (s.keys) {
              r.dqkv[q + d] += ds * table[table_key(k) + d];
              r.dtable[table_key(k) + d] += ds * qkv[q + d];
            }
            if (s.queries) {
              r.dqkv[key(k) + d] += ds * table[table_query(k) + d];
              r.dtable[table_query(k) + d] += ds * qkv[key(k) + d];
            }
          }
      }
  return r;
}

struct Got {
  Buffer out, dqkv;
  std::vector<float> dtable;
};
inline bool same(const Got& a, const Got& b) {
  return same_bits(a.out, b.out) && same_bits(a.dqkv, b.dqkv) && same_bits(a.dtable, b.dtable);
}

// Computes the samples in calls of `at_once` samples. `trains`: the table has a gradient.
inline Got compute(const Table& table, const Shape& s, const Inputs& in, int threads, int64_t at_once,
                   bool trains = true) {
  const AttentionShape rule = s.attention();
  const std::vector<int32_t> rows = s.rows_of_distances(), following = rule.following();
  Got got{Buffer(s.dtype, s.samples * s.rows * s.out_width()), Buffer(s.dtype, in.qkv.count()),
          std::vector<float>(static_cast<size_t>(s.table_rows() * s.table_width()), NAN)};
  for (int64_t first = 0; first < s.samples; first += at_once) {
    const int64_t samples = std::min(at_once, s.samples - first);
    StepState state = step_state();
    state.first_sample += static_cast<uint64_t>(first);
    const Buffer qkv = slice(in.qkv, first * s.rows * s.width(), samples * s.rows * s.width()),
                 dout = slice(in.dout, first * s.rows * s.out_width(), samples * s.rows * s.out_width());
    Buffer out(s.dtype, dout.count()), dqkv(s.dtype, qkv.count());
    for (int64_t i = 0; i < out.count(); ++i) out.set(i, NAN);
    for (int64_t i = 0; i < dqkv.count(); ++i) dqkv.set(i, NAN);
    std::vector<float> lse(static_cast<size_t>(samples * s.heads * s.rows), NAN);
    AttentionArgs args = {};
    args.samples = samples, args.rows_per_sample = s.rows;
    args.query_heads = args.kv_heads = s.heads, args.head_dim = s.head_dim;
    args.scale = s.scale(), args.causal = false, args.dropout = s.dropout, args.stream = stream;
    args.state = s.dropout > 0 ? &state : nullptr;
    args.position_ids = rule.position_ids.empty() ? nullptr : rule.position_ids.data() + first * s.rows;
    args.following = following.empty() ? nullptr : following.data() + first * s.rows;
    args.relative = {.table = in.table.const_matrix(),
                     .table_rows = s.table_rows(),
                     .has_keys = s.keys,
                     .has_queries = s.queries,
                     .rows = rows.data()};
    args.products = s.products;
    args.qkv = qkv.const_matrix(), args.out = out.matrix(), args.lse = lse.data();
    run(table.attention, args, threads, attention_workspace(args, threads));
    args.dout = dout.const_matrix(), args.dqkv = dqkv.matrix();
    args.relative.gradient = trains ? got.dtable.data() : nullptr;
    args.relative.accumulate = first > 0;
    run(table.attention_gradient, args, threads, attention_gradient_workspace(args, threads));
    for (int64_t i = 0; i < out.count(); ++i) got.out.set(first * s.rows * s.out_width() + i, out.get(i));
    for (int64_t i = 0; i < dqkv.count(); ++i) got.dqkv.set(first * s.rows * s.width() + i, dqkv.get(i));
  }
  return got;
}

}  // namespace stw::kernels::test::relative_test
