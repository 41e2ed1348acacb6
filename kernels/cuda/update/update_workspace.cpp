#include "kernels/cuda/workspace.h"

#include "kernels/common/adafactor_layout.h"
#include "kernels/cuda/update/muon_layout.h"
#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t muon_workspace(const UpdateArgs& args) { return static_cast<uint64_t>(muon_layout(args).bytes); }
uint64_t adafactor_workspace(const UpdateArgs& args) { return static_cast<uint64_t>(16 + adafactor_layout(args).bytes); }

}  // namespace stw::kernels::cuda
