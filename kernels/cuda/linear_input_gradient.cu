// dx = addend + Σ_parts dy·W: one chain per element that starts from the addend and runs through the features of all parts
// in order; a dx in 16 bits is rounded once, at the end. Every thread reads its addends before it stores, and nobody else
// does: dx may be the addend. The vendor's library takes the parts one after the other, with a rounding after each.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/matrix_product.h"

namespace stw::kernels::cuda {

void linear_input_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_input_gradient);
  const Products all = input_gradient_products(args);
  if (args.transposed) product_of_rows<Contiguous::depth, Contiguous::depth>(l, all, args.products);
  else product_of_rows<Contiguous::depth, Contiguous::output>(l, all, args.products);
}

}  // namespace stw::kernels::cuda
