#include "kernels/cpu/update/muon_layout.h"

namespace stw::kernels {

uint64_t muon_workspace(const UpdateArgs& args, int threads) { return (uint64_t)muon_layout(args, threads).bytes; }

}  // namespace stw::kernels
