// Products of fp16 operands by warpgroups. Weight gradients that are rounded to bf16 after each sample.
#include "kernels/cuda/product/warpgroup_product_tiles.h"

namespace stw::kernels::cuda {

template void warpgroup_product_of_type<Contiguous::output, Contiguous::output, true, DType::f16>(
    const Launch&, const Products&);

}  // namespace stw::kernels::cuda
