// dW += dyᵀ·x: one chain per element over the rows that starts from the buffer, so that a batch may be cut between samples
// without a change of a bit. All parts that are trained in one launch.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/matrix_product.h"

namespace stw::kernels::cuda {

void linear_weight_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_weight_gradient);
  matrix_product<Contiguous::output, Contiguous::output>(l, weight_gradient_products(args), args.tensor_cores);
}

}  // namespace stw::kernels::cuda
