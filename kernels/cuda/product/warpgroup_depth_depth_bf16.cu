// Products of bf16 operands by warpgroups. Both are contiguous along k.
#include "kernels/cuda/product/warpgroup_product_tiles.h"

namespace stw::kernels::cuda {

template void warpgroup_product_of_type<Contiguous::depth, Contiguous::depth, false, DType::bf16>(
    const Launch&, const Products&);

}  // namespace stw::kernels::cuda
