// table_gradient[token] += Σ dy over the rows that hold the token: a scatter, made deterministic by sorting.
//
// A stable radix sort by token (8 bits a pass, as many passes as the vocabulary needs) puts the rows of a
// token next to each other, in their old order. The rows of a token within each chain_terms rows of a sample
// are added up from +0, and the results are added in order to the buffer. Without these chains, the sum of a
// frequent token would be long. A cut of the batch between samples changes nothing. Tasks are strips of
// columns, because tokens of a text are too unevenly distributed.
//
// For kept rows, a token's sum begins at +0 and is added to the buffer at its end. If the buffer is a slice
// of the table, it gets the sums of the slice's tokens alone.
//
// Workspace: two arrays of (token, row), each 8 bytes a row. The sort swaps between them.
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

namespace {

struct Entry {
  int32_t token, row;
};

Entry* sorted_rows(const EmbeddingArgs& args, Entry* from, Entry* to) {
  for (int64_t row = 0; row < args.rows; ++row) from[row] = {args.tokens[row], (int32_t)row};
  for (int shift = 0; shift < 31 && (args.vocabulary - 1) >> shift != 0; shift += 8) {
    int64_t place[257] = {0};
    for (int64_t i = 0; i < args.rows; ++i) ++place[((from[i].token >> shift) & 255) + 1];
    for (int digit = 0; digit < 256; ++digit) place[digit + 1] += place[digit];
    for (int64_t i = 0; i < args.rows; ++i) to[place[(from[i].token >> shift) & 255]++] = from[i];
    Entry* swap = from;
    from = to;
    to = swap;
  }
  return from;
}

constexpr int groups = 4;
constexpr int64_t strip = 16 * groups;  // Columns.

// The end of the rows that may be in one chain with this row.
int64_t end_of_chain(const EmbeddingArgs& args, int64_t row) {
  const int64_t in_sample = row % args.rows_per_sample;
  return row - in_sample + min(args.rows_per_sample, round_up(in_sample + 1, chain_terms));
}

// The number of sorted rows whose tokens are less than this one.
int64_t rows_before(const EmbeddingArgs& args, const Entry* entries, int64_t token) {
  int64_t begin = 0, end = args.rows;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (entries[middle].token < token) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

// Sorted rows [begin, last). `apart`: sums begin at +0 and are added to the buffer at their end.
void fold_strip(const EmbeddingArgs& args, const Entry* entries, int64_t begin, int64_t last, int64_t column,
                int64_t width, bool apart) {
  for (int64_t i = begin; i < last;) {
    const int32_t token = entries[i].token;
    float* buffer = args.table_gradient + (token - args.first_token) * args.features + column;
    const auto load_buffer = [&](int k) {
      return load_group(buffer, DType::f32, 16 * k, min(16, max(0, width - 16 * k)));
    };
    F16 total[groups];
    for (int k = 0; k < groups; ++k) total[k] = apart ? zero() : load_buffer(k);
    while (i < last && entries[i].token == token) {
      const int64_t end = end_of_chain(args, entries[i].row);
      F16 sum[groups];
      for (int k = 0; k < groups; ++k) sum[k] = zero();
      for (; i < last && entries[i].token == token && entries[i].row < end; ++i) {
        const int64_t base = entries[i].row * args.features + column;
        for (int k = 0; k < groups && 16 * k < width; ++k)
          sum[k] = add(sum[k], load_group(args.y.data, args.y.dtype, base + 16 * k, min(16, width - 16 * k)));
      }
      for (int k = 0; k < groups; ++k) total[k] = add(total[k], sum[k]);
    }
    for (int k = 0; k < groups && 16 * k < width; ++k) {
      if (apart) total[k] = add(total[k], load_buffer(k));
      store_group(buffer, DType::f32, 16 * k, total[k], min(16, width - 16 * k));
    }
  }
}

void fold(const Launch& launch, const EmbeddingArgs& args, bool apart) {
  auto* first = (Entry*)launch.workspace;
  const Entry* entries = sorted_rows(args, first, first + args.rows);
  const bool is_slice = args.slice_tokens > 0;
  const int64_t begin = is_slice ? rows_before(args, entries, args.first_token) : 0,
                end = is_slice ? rows_before(args, entries, args.first_token + args.slice_tokens) : args.rows;
  auto body = [&](int64_t task, int) {
    fold_strip(args, entries, begin, end, task * strip, min(strip, args.features - task * strip), apart);
  };
  const int64_t strips = ceil_div(args.features, strip);
  if ((end - begin) * args.features <= serial_elements) {
    for (int64_t task = 0; task < strips; ++task) body(task, 0);
  } else {
    parallel_for(launch, strips, body);
  }
}

}  // namespace

void embedding_gradient(const Launch& launch, const EmbeddingArgs& args) {
  STW_ASSERT_WORKSPACE(embedding_gradient);
  if (args.with_positions) position_gradient(launch, args);
  if (!args.accumulate)
    fill(launch, {args.table_gradient, (uint64_t)(args.vocabulary * args.features) * sizeof(float)});
  fold(launch, args, false);
}

// A sum of -0 becomes +0 when +0 is added, as if every token had a sum.
void kept_rows_gradient(const Launch& launch, const EmbeddingArgs& args) {
  STW_ASSERT_WORKSPACE(kept_rows_gradient);
  if (!args.accumulate) {
    fill(launch, {args.table_gradient, (uint64_t)(args.slice_tokens * args.features) * sizeof(float)});
    return fold(launch, args, false);
  }
  for_elements(launch, args.vocabulary * args.features, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      store_group(args.table_gradient, DType::f32, at,
                  add(load_group(args.table_gradient, DType::f32, at, n), zero()), n);
    });
  });
  fold(launch, args, true);
}

}  // namespace stw::kernels::STW_ISA
