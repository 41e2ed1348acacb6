// dx = addend + Σ_parts dy·W: the chains over the features of all parts are added in order to the addend; a
// 16-bit dx is rounded once, at the end. Every thread reads its addends before it stores, and no other thread
// reads them, so dx may be the addend. The vendor's library takes the parts one after the other and rounds
// after each.
//
// If x is the output of a GELU, dx is multiplied by GELU's derivative before it is stored. This reads the
// input of GELU and writes dx, which is 4 bytes an element for 16-bit tensors. A separate kernel would move 6
// bytes in addition to the 2 of the product. If samples consist of whole tiles of token_tile rows, a block
// also sums the columns of its tiles of dx, for the gradient of the bias before that GELU. The sums are 1/32
// of dx; another call may add them up.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/product/bias_sums.h"
#include "kernels/cuda/product/matrix_product.h"

namespace stw::kernels::cuda {

static void sum_input_tiles(const Launch& l, const LinearArgs& args) {
  if (args.input_bias_sums == nullptr) return;
  Biases bias = {0, args.x.dtype, {args.rows, args.rows_per_sample}, 0, {}};
  bias.add(input_bias_args(args), 0, args.inputs, args.input_bias_sums);
  launch_bias_tiles(l, bias);
}

void linear_input_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_input_gradient);
  Products all = input_gradient_products(args);
  if (args.before_gelu.data != nullptr) {
    assert(args.parts == 1 && args.addend.data == nullptr && args.x_stride == 0 &&
           args.before_gelu.dtype == args.x.dtype);
    const bool inside = args.transposed
                            ? ends_inside<Contiguous::depth, Contiguous::depth>(all, args.products)
                            : ends_inside<Contiguous::depth, Contiguous::output>(all, args.products);
    if (!inside) {
      assert(args.before_gelu.data != args.x.data);
      LinearArgs product = args;
      product.before_gelu = {};
      product.input_bias_gradient = product.input_bias_sums = nullptr;
      linear_input_gradient(l, product);
      gelu_gradient(l, {args.rows * args.inputs,
                        Activation::gelu_tanh,
                        args.before_gelu,
                        {args.x.data, args.x.dtype},
                        args.x,
                        true});
      if (args.input_bias_gradient != nullptr) linear_bias_gradient(l, input_bias_args(args));
      sum_input_tiles(l, args);
      return;
    }
    // Tiles of products begin at multiples of token_tile, so samples must too.
    if (args.rows_per_sample % token_tile == 0)
      all.product[0].column_sums =
          args.input_bias_gradient != nullptr ? static_cast<float*>(l.workspace) : args.input_bias_sums;
  }
  if (args.transposed) product_of_rows<Contiguous::depth, Contiguous::depth>(l, all, args.products);
  else product_of_rows<Contiguous::depth, Contiguous::output>(l, all, args.products);
  if (all.product[0].column_sums == nullptr) sum_input_tiles(l, args);
  if (args.input_bias_gradient == nullptr) return;
  if (all.product[0].column_sums == nullptr) return linear_bias_gradient(l, input_bias_args(args));
  Folds folds = {args.accumulate, {args.rows, args.rows_per_sample}, 0, {}};
  folds.add(all.product[0].column_sums, args.inputs, args.input_bias_gradient);
  launch_folds(l, folds);
}

}  // namespace stw::kernels::cuda
