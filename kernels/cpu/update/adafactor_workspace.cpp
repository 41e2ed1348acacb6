#include "kernels/common/adafactor_layout.h"

namespace stw::kernels {

uint64_t adafactor_workspace(const UpdateArgs& args, int) { return (uint64_t)adafactor_layout(args).bytes; }

}  // namespace stw::kernels
