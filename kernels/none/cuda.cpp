// Stubs for a build without CUDA.
#include "kernels/contract/kernels.h"

namespace stw::kernels {

const Table* cuda_table() { return nullptr; }
bool has_warpgroup_kernels() { return false; }

}  // namespace stw::kernels
