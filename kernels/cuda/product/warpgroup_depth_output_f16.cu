// Products of fp16 operands by warpgroups. The first is contiguous along k, the second along the output.
#include "kernels/cuda/product/warpgroup_product_tiles.h"

namespace stw::kernels::cuda {

template void warpgroup_product_of_type<Contiguous::depth, Contiguous::output, false, DType::f16>(
    const Launch&, const Products&);

}  // namespace stw::kernels::cuda
