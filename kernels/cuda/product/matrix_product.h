// Matrix products in the way that the caller chose, or by its fallback (kernels.h, ProductKernels).
#pragma once
#include "kernels/cuda/product/chain_product.h"
#include "kernels/cuda/product/library_product.h"
#include "kernels/cuda/product/tensor_product.h"
#include "kernels/cuda/product/warpgroup_product.h"

namespace stw::kernels::cuda {

template <Contiguous a_along, Contiguous b_along, bool rounded = false>
void built_in_product(const Launch& l, const Products& all, ProductKernels how) {
  if (how == ProductKernels::chain || !fits_tensor_cores<a_along, b_along>(all))
    return chain_product<a_along, b_along, rounded>(l, all);
  if (may_use_warpgroups(how)) return warpgroup_product<a_along, b_along, rounded>(l, all);
  tensor_product<a_along, b_along, rounded>(l, all);
}

// Whether a product's kernel can apply GELU in its epilogue.
template <Contiguous a_along, Contiguous b_along>
bool ends_inside(const Products& all, ProductKernels how) {
  return (how == ProductKernels::tensor || how == ProductKernels::warpgroup) && all.c == all.a &&
         fits_tensor_cores<a_along, b_along>(all);
}

// For rows of activations: the bits of a row do not depend on other rows.
template <Contiguous a_along, Contiguous b_along>
void product_of_rows(const Launch& l, const Products& all, ProductKernels how) {
  constexpr auto free = LibraryProduct::Free::m;
  if (may_use_library(how) && library_takes<a_along, b_along>(l, all, free))
    library_multiply<a_along, b_along>(l, all, free);
  else built_in_product<a_along, b_along>(l, all, how);
}

}  // namespace stw::kernels::cuda
