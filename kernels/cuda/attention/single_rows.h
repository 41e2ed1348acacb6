// Documents of one row in attention on tensor cores. All rows of padding at the end of a sample are such
// documents (`lengths` of a batch). A row that sees only itself has the probability 1: its output is its
// value, and queries and keys have no gradient. So a block handles adjacent rows of this kind together,
// without products of tiles; each would take a pass over a tile of its own otherwise.
//
// Outputs and lse have the bits that the passes would give; with relative positions, lse leaves out their
// biases, and the gradient does not read it. The gradient's passes would compute P from a rounded lse and
// add rounding errors of D to queries and keys; here, P is 1 and those gradients are 0. For padding, whose
// dout is 0, the bits are the same.
#pragma once
#include "kernels/cuda/attention/tensor_attention.h"

namespace stw::kernels::cuda {

STW_DEVICE int row_of_warp() { return static_cast<int>(threadIdx.x) / 32 * 16; }  // Within the tile.
// The end of the rows from `row` on, before `end`, that are documents of one row each. Called by whole warps.
STW_DEVICE int end_of_single_rows(const Documents& documents, int row, int end, int rows) {
  if (documents.positions == nullptr) return rows == 1 ? end : row;
  for (int found = 32; found == 32; row += found) {
    const int at = row + lane_of_warp();
    const uint32_t singles =
        __ballot_sync(all_lanes, at < end && documents.positions[at] == 0 &&
                                     (at + 1 == rows || documents.positions[at + 1] == 0));
    found = __popc(singles & ~(singles + 1));  // The lowest ones.
  }
  return row;
}

// The rows of a head that a warp handles: those of [begin, end) among 16 from `first` on.
struct SingleRows {
  int first, begin, end;
};
STW_DEVICE bool has(const SingleRows& rows, int row) { return row >= rows.begin && row < rows.end; }
STW_DEVICE bool is_none(const SingleRows& rows) {
  return rows.begin >= rows.first + 16 || rows.end <= rows.first;
}
// Calls body(row, column) for the vectors of eight elements of 16 rows of a head; the vectors of other rows
// and lanes that have none get a row outside of [begin, end). Called by whole warps.
template <class Body>
STW_DEVICE void for_single_vectors(const SingleRows& rows, int head_dim, const Body& body) {
  const int pieces = head_dim / 8;
  STW_ROLLED
  for (int first = 0; first < 16 * pieces; first += 32) {
    const int task = first + lane_of_warp();
    body(rows.first + task / pieces, task % pieces * 8);
  }
}

// The score of a row and its own key, before scaling, by the products that the tiles would have. Row n of the
// 16, and row n + 8, belong to lane own_lane(n), n < 8.
STW_DEVICE int own_lane(int n) { return 4 * n + n / 2; }
template <DType dtype, int depth>
STW_DEVICE void own_scores(const HalfRows& queries, const HalfRows& keys, const SingleRows& rows,
                           int head_dim, float (&own)[2]) {
  const int lane = lane_of_warp();
  float s[2][4] = {};
  STW_ROLLED
  for (int k = 0; k < head_dim; k += 16) {
    uint32_t q[4], b[2][2];
    STW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = rows.first + lane / 4 + i % 2 * 8, column = k + i / 2 * 8 + lane % 4 * 2;
      const bool exists = has(rows, row) && column < head_dim;
      const auto load = [&](const HalfRows& of) {
        return exists ? load_vector<uint32_t>(of.data + row * of.stride + column) : 0u;
      };
      q[i] = load(queries);
      b[i % 2][i / 2] = load(keys);
    }
    STW_UNROLL
    for (int n = 0; n < 2; ++n) multiply_add<dtype>(s[n], q, b[n]);
  }
  STW_UNROLL
  for (int n = 0; n < 2; ++n) own[n] = lane / 4 % 2 == 0 ? s[n][2 * n] : s[n][2 * n + 1];
}

// Dropout's factor of the probability of a row and its own key.
template <bool may_drop>
STW_DEVICE float own_factor(const AttentionArgs& args, int64_t sample, int64_t head, int row) {
  if (!may_drop || args.dropout <= 0) return 1.0f;
  const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
  const int64_t rows = args.rows_per_sample, element = (head * rows + row) * rows + row;
  return (kept_of_block(dropout, element) >> element % 4 & 1u) != 0 ? dropout.kept_scale : 0.0f;
}
// A number rounded to 16 bits.
template <DType dtype>
STW_DEVICE float rounded(float x) {
  return unpack_halves<dtype>(pack_halves<dtype>(x, x)).x;
}
// sums[i] += factor · number i of a vector.
template <DType dtype>
STW_DEVICE void add_vector(float (&sums)[8], float factor, const uint4& v) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
  STW_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float2 two = unpack_halves<dtype>(words[i]);
    sums[2 * i] = fma1(factor, two.x, sums[2 * i]), sums[2 * i + 1] = fma1(factor, two.y, sums[2 * i + 1]);
  }
}
template <DType dtype>
STW_DEVICE uint4 rounded_vector(const float (&x)[8], float factor) {
  return {pack_halves<dtype>(x[0] * factor, x[1] * factor), pack_halves<dtype>(x[2] * factor, x[3] * factor),
          pack_halves<dtype>(x[4] * factor, x[5] * factor), pack_halves<dtype>(x[6] * factor, x[7] * factor)};
}

// Attention of single rows. `fused`: the exponent is scaled and subtracted at once, as by warpgroups.
template <DType dtype, int depth, bool fused, bool may_drop>
STW_DEVICE void attend_single_rows(const AttentionArgs& args, int64_t sample, int64_t head,
                                   const HalfRows& queries, const HalfRows& keys, const HalfRows& values,
                                   const SingleRows& rows) {
  if (is_none(rows)) return;
  const int64_t count = args.rows_per_sample, out_width = args.query_heads * args.head_dim;
  const float factor = args.scale * log2_of_e;
  float score[2], weight[2], inverse[2];
  own_scores<dtype, depth>(queries, keys, rows, args.head_dim, score);
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = rows.first + lane_of_warp() / 4 + half * 8;
    const float scaled = score[half] * factor, largest = larger(scaled, fused ? -infinity : lowest);
    const float p = fast_exp2(fused ? fma1(score[half], factor, -largest) : scaled - largest);
    weight[half] = rounded<dtype>(p * own_factor<may_drop>(args, sample, head, row));
    inverse[half] = 1.0f / p;
    if (lane_of_warp() == own_lane(lane_of_warp() / 4) && has(rows, row))
      args.lse[(sample * args.query_heads + head) * count + row] =
          fma1(largest, log_of_2, log(splat(p)).f[0]);
  }
  auto* const out = static_cast<uint16_t*>(args.out.data) + sample * count * out_width + head * args.head_dim;
  for_single_vectors(rows, args.head_dim, [&](int row, int column) {
    const int n = (row - rows.first) % 16, lane = own_lane(n % 8);
    float of_row[2][2];
    STW_UNROLL
    for (int half = 0; half < 2; ++half) {
      of_row[half][0] = __shfl_sync(all_lanes, weight[half], lane);
      of_row[half][1] = __shfl_sync(all_lanes, inverse[half], lane);
    }
    if (row >= rows.first + 16 || !has(rows, row)) return;
    float x[8] = {};
    add_vector<dtype>(x, n < 8 ? of_row[0][0] : of_row[1][0],
                      load_vector<uint4>(values.data + row * values.stride + column));
    store_global16(out + row * out_width + column,
                   rounded_vector<dtype>(x, n < 8 ? of_row[0][1] : of_row[1][1]));
  });
}

// The gradients of single rows. Of queries: dQ = 0. Of keys: dK = 0, and dV is the sum of dout over the query
// heads of the group, with dropout's factors.
template <DType dtype, bool of_keys, bool may_drop>
STW_DEVICE void differentiate_single_rows(const AttentionArgs& args, int64_t sample, int64_t own_head,
                                          const SingleRows& rows) {
  if (is_none(rows)) return;
  const int64_t head_dim = args.head_dim, out_width = args.query_heads * head_dim,
                kv_width = args.kv_heads * head_dim, width = out_width + 2 * kv_width,
                top = sample * args.rows_per_sample, group = args.query_heads / args.kv_heads;
  auto* const to = static_cast<uint16_t*>(args.dqkv.data) + top * width + own_head * head_dim;
  const auto* const from = static_cast<const uint16_t*>(args.dout.data) + top * out_width;
  for_single_vectors(rows, args.head_dim, [&](int row, int column) {
    if (row >= rows.first + 16 || !has(rows, row)) return;
    uint16_t* const place = to + row * width + column;
    store_global16(place + (of_keys ? out_width : 0), uint4{0, 0, 0, 0});
    if constexpr (of_keys) {
      float sums[8] = {};
      STW_ROLLED
      for (int64_t head = own_head * group; head < (own_head + 1) * group; ++head)
        add_vector<dtype>(sums, rounded<dtype>(own_factor<may_drop>(args, sample, head, row)),
                          load_vector<uint4>(from + row * out_width + head * head_dim + column));
      store_global16(place + out_width + kv_width, rounded_vector<dtype>(sums, 1));
    }
  });
}

}  // namespace stw::kernels::cuda
