// Of every head of queries and keys of every row, the mean (0) and the reciprocal root mean square, 8 bytes.
#include "kernels/contract/kernels.h"

namespace stw::kernels {

uint64_t qk_norm_gradient_workspace(const QkNormArgs& args, int) {
  return (uint64_t)args.rows * ((uint64_t)args.query_heads + (uint64_t)args.kv_heads) * 8;
}

}  // namespace stw::kernels
