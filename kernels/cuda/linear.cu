// y = x·Wᵀ + b for up to max_parts weights side by side, in one launch. One chain per element over the inputs, then the
// bias, then (bf16, f16) one rounding: no bit depends on the number of rows.
#include "kernels/cuda/chain_product.h"
#include "kernels/cuda/linear_products.h"

namespace stw::kernels::cuda {

void linear(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear);
  const Products all = forward_products(args);
  if (args.transposed) chain_product<Contiguous::depth, Contiguous::output>(l, all);
  else chain_product<Contiguous::depth, Contiguous::depth>(l, all);
}

}  // namespace stw::kernels::cuda
