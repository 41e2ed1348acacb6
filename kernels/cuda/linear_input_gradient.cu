// dx = addend + Σ_parts dy·W: one chain per element that starts from the addend and runs through the features of all parts
// in order; a dx in 16 bits is rounded once, at the end. Every thread reads its addends before it stores, and nobody else
// does: dx may be the addend.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/matrix_product.h"

namespace stw::kernels::cuda {

void linear_input_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_input_gradient);
  const Products all = input_gradient_products(args);
  if (args.transposed) matrix_product<Contiguous::depth, Contiguous::depth>(l, all, args.tensor_cores);
  else matrix_product<Contiguous::depth, Contiguous::output>(l, all, args.tensor_cores);
}

}  // namespace stw::kernels::cuda
