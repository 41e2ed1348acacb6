// y = x·Wᵀ + b for up to max_parts weights side by side, in one launch. One chain per element over the inputs, then the
// bias, then (bf16, f16) one rounding, then the residual, which is read where y is written: 4 bytes an element in 16 bits instead of
// the 8 of an addition of its own. No bit depends on the number of rows. The vendor's library begins with the residual.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/matrix_product.h"

namespace stw::kernels::cuda {

void linear(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear);
  assert(args.residual.data == nullptr || (args.parts == 1 && args.residual.dtype == args.y.dtype));
  const Products all = forward_products(args);
  if (args.transposed) product_of_rows<Contiguous::depth, Contiguous::output>(l, all, args.products);
  else product_of_rows<Contiguous::depth, Contiguous::depth>(l, all, args.products);
}

}  // namespace stw::kernels::cuda
