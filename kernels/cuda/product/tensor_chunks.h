// One launch for several tensors: each is cut into chunks, which are numbered through the launch.
#pragma once
#include "kernels/lanes/device.h"

namespace stw::kernels::cuda {

// Calls body(tensor, chunk) for this block's chunks, by all of its threads. `batch` has `chunks`, `tensors`
// and, for each tensor[k], `first_chunk`.
template <class Batch, class Body>
STW_DEVICE void for_chunks(const Batch& batch, const Body& body) {
  int tensor = 0;
  STW_ROLLED
  for (int chunk = static_cast<int>(blockIdx.x); chunk < batch.chunks; chunk += static_cast<int>(gridDim.x)) {
    STW_ROLLED
    while (tensor + 1 < batch.tensors && chunk >= batch.tensor[tensor + 1].first_chunk) ++tensor;
    body(tensor, chunk);
  }
}

}  // namespace stw::kernels::cuda
