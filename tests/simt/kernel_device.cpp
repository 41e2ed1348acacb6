// The emulated machine for tests/kernels/cuda_device.cpp.
#include "tests/kernels/device.h"

namespace stw::kernels::test {

bool emulated() { return true; }

}  // namespace stw::kernels::test
