// One matrix product in the way that the caller chose.
#pragma once
#include "kernels/cuda/chain_product.h"
#include "kernels/cuda/tensor_product.h"

namespace stw::kernels::cuda {

template <Contiguous a_along, Contiguous b_along, bool rounded = false>
void matrix_product(const Launch& l, const Products& all, bool tensor_cores) {
  if (tensor_cores && fits_tensor_cores<a_along, b_along>(all)) tensor_product<a_along, b_along, rounded>(l, all);
  else chain_product<a_along, b_along, rounded>(l, all);
}

}  // namespace stw::kernels::cuda
