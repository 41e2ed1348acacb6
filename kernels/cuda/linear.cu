// y = x·Wᵀ + b for up to max_parts weights side by side, in one launch. One chain per element over the inputs, then the
// bias, then (bf16, f16) one rounding: no bit depends on the number of rows.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/matrix_product.h"

namespace stw::kernels::cuda {

void linear(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear);
  const Products all = forward_products(args);
  if (args.transposed) product_of_rows<Contiguous::depth, Contiguous::output>(l, all, args.products);
  else product_of_rows<Contiguous::depth, Contiguous::depth>(l, all, args.products);
}

}  // namespace stw::kernels::cuda
