// RMSNorm of every head of queries and keys, with one weight for all query heads and one for all key heads.
// Values are copied. The norm is from Henry et al. 2020, "Query-key normalization"; it comes before rotary
// positions, as in Qwen3.
#include "kernels/cpu/norm/qk_rows.h"

namespace stw::kernels::STW_ISA {

void qk_norm(const Launch& launch, const QkNormArgs& args) {
  const QkRows queries = query_rows(args), keys = key_rows(args);
  const int64_t width = queries.step * args.head_dim, values = (int64_t)args.kv_heads * args.head_dim;
  for_rows(launch, args.rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      for (const QkRows* part : {&queries, &keys})
        for (int64_t head = 0; head < part->heads; ++head) normalize_row(part->norm, part->row(token, head));
      if (args.x.data != args.y.data)
        copy_elements(args.x, args.y, (token + 1) * width - values, (token + 1) * width);
    }
  });
}

}  // namespace stw::kernels::STW_ISA
