#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t muon_workspace(const UpdateArgs&) { return 0; }
uint64_t adafactor_workspace(const UpdateArgs&) { return 0; }

}  // namespace stw::kernels::cuda
