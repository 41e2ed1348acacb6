// Chooses the products of warpgroup_product_tiles.h by type.
#include "kernels/cuda/product/warpgroup_product.h"

namespace stw::kernels {

bool has_warpgroup_kernels() { return true; }

namespace cuda {

template <Contiguous a_along, Contiguous b_along, bool rounded>
void warpgroup_product(const Launch& l, const Products& all) {
  if (all.a == DType::bf16) warpgroup_product_of_type<a_along, b_along, rounded, DType::bf16>(l, all);
  else warpgroup_product_of_type<a_along, b_along, rounded, DType::f16>(l, all);
}
template void warpgroup_product<Contiguous::depth, Contiguous::depth, false>(const Launch&, const Products&);
template void warpgroup_product<Contiguous::depth, Contiguous::output, false>(const Launch&, const Products&);
template void warpgroup_product<Contiguous::output, Contiguous::output, false>(const Launch&,
                                                                               const Products&);
template void warpgroup_product<Contiguous::output, Contiguous::output, true>(const Launch&, const Products&);

}  // namespace cuda

}  // namespace stw::kernels
