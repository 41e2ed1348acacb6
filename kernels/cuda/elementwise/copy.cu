// Copies between host memory and the arena, in either direction; the runtime finds the direction from the
// addresses.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

void copy(const Launch& l, const CopyArgs& args) {
  cudaMemcpyAsync(args.to, args.from, args.bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(l.stream));
}

}  // namespace stw::kernels::cuda
