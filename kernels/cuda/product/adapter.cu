// y = base + low·Wᵀ for the adapters of matrices side by side, in one launch: chains over the rank that start
// from the base. Bound by memory: y is read and written, which is 4 bytes an element if y has 16 bits. Up to
// a rank of about 100, arithmetic takes less time than that. A base that is not y is copied first; our plans
// have none.
#include "kernels/cuda/product/adapter_products.h"
#include "kernels/cuda/product/matrix_product.h"

namespace stw::kernels::cuda {

void adapter(const Launch& l, const AdapterArgs& args) {
  STW_ASSERT_WORKSPACE(adapter);
  assert(is_built_in_kernel(args.products));
  assert(args.base.dtype == args.y.dtype);
  if (args.base.data != args.y.data) {
    const auto bytes = static_cast<uint64_t>(args.rows * args.width * (args.y.dtype == DType::f32 ? 4 : 2));
    cudaMemcpyAsync(args.y.data, args.base.data, bytes, cudaMemcpyDefault,
                    static_cast<cudaStream_t>(l.stream));
  }
  built_in_product<Contiguous::depth, Contiguous::depth>(l, adapter_products(args), args.products);
}

}  // namespace stw::kernels::cuda
