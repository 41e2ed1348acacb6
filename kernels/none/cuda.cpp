// A build without CUDA.
#include "kernels/kernels.h"

namespace stw::kernels {

const Table* cuda_table() { return nullptr; }

}  // namespace stw::kernels
