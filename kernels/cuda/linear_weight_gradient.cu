// dW += dyᵀ·x: one chain per element over the rows that starts from the buffer, so that a batch may be cut between samples
// without a change of a bit. All parts that are trained in one launch. A gradient in bf16 stays in registers as fp32 from the
// first sample to the last, and is rounded there after each.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/matrix_product.h"

namespace stw::kernels::cuda {

void linear_weight_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_weight_gradient);
  const Products all = weight_gradient_products(args);
  if (args.gradient_dtype == DType::f32) matrix_product<Contiguous::output, Contiguous::output>(l, all, args.tensor_cores);
  else matrix_product<Contiguous::output, Contiguous::output, true>(l, all, args.tensor_cores);
}

}  // namespace stw::kernels::cuda
