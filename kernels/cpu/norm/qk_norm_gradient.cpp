// Gradient of the norm of queries and keys. Each head is treated as in norm_gradient; for values, dx = dy. dx
// may overwrite dy, so it comes last. The first pass goes over rows and keeps the statistics in the
// workspace, the second over strips of columns of the two weights, the third over rows for dx.
//
// The sum of a weight's gradient uses tiles of token_tile tokens, which restart in every sample. In a tile,
// the heads are taken in order, and each head is summed over its rows from +0. The tiles of each chain_terms
// tokens are added up from +0, and their sum is added to the buffer. A cut between samples changes nothing.
#include "kernels/cpu/norm/qk_rows.h"

namespace stw::kernels::STW_ISA {

namespace {

void weight_gradient(const QkNormArgs& args, const QkRows& part, float* gradient,
                     const RowStatistics* statistics, int64_t heads, int64_t column, int64_t width) {
  NormStrip dw = load_strip(gradient, args.accumulate, column, width), group = empty_strip(), unused = group;
  for (int64_t token = 0, end; token < args.rows; token = end) {
    end = tile_end(token, args.rows, args.rows_per_sample);
    for (int64_t head = 0; head < part.heads; ++head)
      add_tile(part.norm, part.row(token, head), part.step, end - token,
               statistics + token * heads + part.first + head, heads, column, width, group, unused);
    if (group_ends(end, args.rows, args.rows_per_sample)) add_group(dw, group);
  }
  store_strip(gradient, dw, column, width);
}

}  // namespace

void qk_norm_gradient(const Launch& launch, const QkNormArgs& args) {
  STW_ASSERT_WORKSPACE(qk_norm_gradient);
  auto* statistics = (RowStatistics*)launch.workspace;  // (rows, heads).
  const QkRows parts[] = {query_rows(args), key_rows(args)};
  const int64_t heads = parts[0].heads + parts[1].heads, width = parts[0].step * args.head_dim,
                normed = heads * args.head_dim;
  auto for_heads = [&](const auto& body) {  // body(part, row, statistics of the row).
    for_rows(launch, args.rows, width, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token)
        for (const QkRows& part : parts)
          for (int64_t head = 0; head < part.heads; ++head)
            body(part, part.row(token, head), statistics[token * heads + part.first + head]);
    });
  };
  for_heads([](const QkRows& part, int64_t row, RowStatistics& to) { to = row_statistics(part.norm, row); });
  for (int i = 0; i < 2; ++i) {
    if (args.weight_gradient[i] == nullptr) continue;
    for_strips(launch, args.head_dim, args.rows * parts[i].heads * args.head_dim,
               [&](int64_t column, int64_t columns) {
                 weight_gradient(args, parts[i], args.weight_gradient[i], statistics, heads, column, columns);
               });
  }
  if (args.dx.data == nullptr) return;
  for_heads(
      [](const QkRows& part, int64_t row, RowStatistics& at) { row_input_gradient(part.norm, row, at); });
  if (args.dx.data == args.y.data) return;
  for_rows(launch, args.rows, width - normed, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token)
      copy_elements(args.y, args.dx, token * width + normed, (token + 1) * width);
  });
}

}  // namespace stw::kernels::STW_ISA
