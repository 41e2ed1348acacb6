// Stubs for a build without kernels for compute capability 9.0.
#include "kernels/cuda/attention/warpgroup_attention.h"
#include "kernels/cuda/product/warpgroup_product.h"

namespace stw::kernels {

bool has_warpgroup_kernels() { return false; }

namespace cuda {

template <Contiguous a_along, Contiguous b_along, bool rounded>
void warpgroup_product(const Launch&, const Products&) {
  assert(!"such products are refused where a trainer is created");
}
template void warpgroup_product<Contiguous::depth, Contiguous::depth, false>(const Launch&, const Products&);
template void warpgroup_product<Contiguous::depth, Contiguous::output, false>(const Launch&, const Products&);
template void warpgroup_product<Contiguous::output, Contiguous::output, false>(const Launch&,
                                                                               const Products&);
template void warpgroup_product<Contiguous::output, Contiguous::output, true>(const Launch&, const Products&);

void warpgroup_attention(const Launch&, const AttentionArgs&) {
  assert(!"such attention is refused where a trainer is created");
}
void warpgroup_attention_gradient(const Launch&, const AttentionArgs&, const QueryStatistics&) {
  assert(!"such attention is refused where a trainer is created");
}

}  // namespace cuda

}  // namespace stw::kernels
