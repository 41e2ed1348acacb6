// dlow = dy·W for the adapters of matrices side by side, in one launch. The product is narrow, so its time is
// the time to read dy once.
#include "kernels/cuda/product/adapter_products.h"
#include "kernels/cuda/product/matrix_product.h"

namespace stw::kernels::cuda {

void adapter_input_gradient(const Launch& l, const AdapterArgs& args) {
  STW_ASSERT_WORKSPACE(adapter_input_gradient);
  assert(is_built_in_kernel(args.products));
  built_in_product<Contiguous::depth, Contiguous::output>(l, adapter_input_gradient_products(args),
                                                          args.products);
}

}  // namespace stw::kernels::cuda
