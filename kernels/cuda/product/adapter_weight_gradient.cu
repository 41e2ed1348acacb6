// dW += dyᵀ·low for the adapters of matrices side by side, in one launch. As for every weight gradient, rows
// are not split, so there are only as many tiles as a part's features give: 16 tiles of 128 for 2048. Most of
// a device is idle meanwhile.
#include "kernels/cuda/product/adapter_products.h"
#include "kernels/cuda/product/matrix_product.h"

namespace stw::kernels::cuda {

void adapter_weight_gradient(const Launch& l, const AdapterArgs& args) {
  STW_ASSERT_WORKSPACE(adapter_weight_gradient);
  assert(is_own(args.products));
  const Products all = adapter_weight_gradient_products(args);
  if (all.count > 0) own_product<Contiguous::output, Contiguous::output>(l, all, args.products);
}

}  // namespace stw::kernels::cuda
