// Products of fp16 operands by warpgroups. Weight gradients in fp32: both are contiguous along the output,
// and k counts tokens.
#include "kernels/cuda/product/warpgroup_product_tiles.h"

namespace stw::kernels::cuda {

template void warpgroup_product_of_type<Contiguous::output, Contiguous::output, false, DType::f16>(
    const Launch&, const Products&);

}  // namespace stw::kernels::cuda
