// y = x·Wᵀ + b for up to max_parts weights side by side, in one launch. Each element is the sum of chains
// over the inputs, then the bias, then one rounding (bf16, f16), then the residual. The residual is read
// where y is written. For 16-bit tensors, this takes 4 bytes an element; a separate addition would take 8. No
// bit depends on the number of rows. The vendor's library starts from the residual.
//
// If a GELU follows, it is applied before the store. This writes 2 bytes an element; a separate kernel would
// also read 2.
#include "kernels/cuda/product/linear_products.h"
#include "kernels/cuda/product/matrix_product.h"

namespace stw::kernels::cuda {

void linear(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear);
  assert(args.residual.data == nullptr || (args.parts == 1 && args.residual.dtype == args.y.dtype));
  const Products all = forward_products(args);
  if (args.activated.data != nullptr) {
    assert(args.parts == 1 && args.residual.data == nullptr && args.y_stride == args.part[0].features &&
           args.activated.dtype == args.y.dtype);
    const bool inside = args.transposed
                            ? ends_inside<Contiguous::depth, Contiguous::output>(all, args.products)
                            : ends_inside<Contiguous::depth, Contiguous::depth>(all, args.products);
    if (!inside) {
      LinearArgs product = args;
      product.activated = {};
      if (args.y.data == nullptr) product.y.data = args.activated.data;
      linear(l, product);
      return gelu(l, {args.rows * args.part[0].features,
                      Activation::gelu_tanh,
                      {product.y.data, args.y.dtype},
                      {},
                      args.activated,
                      true});
    }
  }
  if (args.transposed) product_of_rows<Contiguous::depth, Contiguous::output>(l, all, args.products);
  else product_of_rows<Contiguous::depth, Contiguous::depth>(l, all, args.products);
}

}  // namespace stw::kernels::cuda
