// Queries, keys and values as rows of heads: head h of a token is row token·heads + h of a matrix with
// head_dim columns. So the norm of heads is the norm of rows (norm_rows.h), with a weight that depends on the
// row.
#pragma once
#include <initializer_list>

#include "kernels/cpu/norm/norm_rows.h"

namespace stw::kernels::STW_ISA {

struct QkRows {
  NormArgs norm;
  // Number of heads of a token, place of the first one, and step to the next token.
  int64_t heads, first, step;
  int64_t row(int64_t token, int64_t head) const { return token * step + first + head; }
};

STW_INLINE QkRows qk_rows(const QkNormArgs& args, int part, int64_t heads, int64_t first) {
  NormArgs norm{};
  norm.features = args.head_dim;
  norm.epsilon = args.epsilon;
  norm.rms = true;
  norm.weight_dtype = args.weight_dtype;
  norm.weight_offset = args.weight_offset;
  norm.weight = args.weight[part];
  norm.x = args.x;
  norm.y = args.y;
  norm.dx = args.dx;
  return {norm, heads, first, (int64_t)args.query_heads + 2 * args.kv_heads};
}
STW_INLINE QkRows query_rows(const QkNormArgs& args) { return qk_rows(args, 0, args.query_heads, 0); }
STW_INLINE QkRows key_rows(const QkNormArgs& args) {
  return qk_rows(args, 1, args.kv_heads, args.query_heads);
}

}  // namespace stw::kernels::STW_ISA
