// Fills memory with zeros by cudaMemsetAsync.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

void fill(const Launch& l, const FillArgs& args) {
  cudaMemsetAsync(args.data, 0, args.bytes, static_cast<cudaStream_t>(l.stream));
}

}  // namespace stw::kernels::cuda
