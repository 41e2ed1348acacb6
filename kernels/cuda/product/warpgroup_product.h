// Matrix products by warpgroups, for operands that fits_tensor_cores accepts, on compute capability 9.0 only.
#pragma once
#include "kernels/cuda/product/product.h"

namespace stw::kernels::cuda {

template <Contiguous a_along, Contiguous b_along, bool rounded>
void warpgroup_product(const Launch& l, const Products& all);

// The same for operands of one type.
template <Contiguous a_along, Contiguous b_along, bool rounded, DType dtype>
void warpgroup_product_of_type(const Launch& l, const Products& all);

}  // namespace stw::kernels::cuda
