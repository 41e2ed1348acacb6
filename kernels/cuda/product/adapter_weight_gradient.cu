// dW += dyᵀ·low for the adapters of matrices side by side, in one launch. As for every weight gradient, rows
// are not split, so a part has few tiles: 16 of 128 rows for 2048 features. Most of the device is idle
// meanwhile.
#include "kernels/cuda/product/adapter_products.h"
#include "kernels/cuda/product/matrix_product.h"

namespace stw::kernels::cuda {

void adapter_weight_gradient(const Launch& l, const AdapterArgs& args) {
  STW_ASSERT_WORKSPACE(adapter_weight_gradient);
  assert(is_built_in_kernel(args.products));
  const Products all = adapter_weight_gradient_products(args);
  if (all.count > 0) built_in_product<Contiguous::output, Contiguous::output>(l, all, args.products);
}

}  // namespace stw::kernels::cuda
