// One thread's scratch memory in attention_gradient: O(rows_per_sample · head_dim), nothing quadratic.
#pragma once
#include "kernels/cpu/attention/attention_tile.h"
#include "kernels/cpu/attention/relative.h"

namespace stw::kernels {

struct GradientWorkspace {
  float *queries, *douts;                             // Rows of one block of queries.
  float *keys, *transposed_keys, *transposed_values;  // One block of keys.
  float *probabilities, *dscores;                     // query_block × key_block.
  float* factors;
  float* dot;              // (rows_per_sample): dout · out of each row.
  float* dqueries;         // (rows_per_sample) rows of one query head.
  float *dkeys, *dvalues;  // One block of keys, or all rows if several query heads share keys.
  RelativeWorkspace<query_block> relative;
  float *drelative_keys, *drelative_queries;  // (table_rows) rows: the sums of one head of one sample.
};
STW_INLINE int64_t carve_gradient(const AttentionArgs& args, char* memory, GradientWorkspace* w) {
  Carver carver{memory, 0};
  const int64_t stride = row_stride(args.head_dim), rows = args.rows_per_sample;
  const int64_t key_rows = args.query_heads == args.kv_heads ? key_block : rows;
  w->queries = carver.take(query_block * stride);
  w->douts = carver.take(query_block * stride);
  w->keys = carver.take(key_block * stride);
  w->transposed_keys = carver.take(args.head_dim * transposed_stride);
  w->transposed_values = carver.take(args.head_dim * transposed_stride);
  w->probabilities = carver.take(query_block * transposed_stride);
  w->dscores = carver.take(query_block * transposed_stride);
  w->factors = carver.take(key_block + 64);
  w->dot = carver.take(rows);
  w->dqueries = carver.take(rows * stride);
  w->dkeys = carver.take(key_rows * stride);
  w->dvalues = carver.take(key_rows * stride);
  w->relative = {};
  w->drelative_keys = w->drelative_queries = nullptr;
  if (args.relative.table.data != nullptr) {
    carve_relative(carver, query_block, args.head_dim, true, &w->relative);
    w->drelative_keys = carver.take(args.relative.table_rows * stride);
    w->drelative_queries = carver.take(args.relative.table_rows * stride);
  }
  return carver.bytes;
}

}  // namespace stw::kernels
