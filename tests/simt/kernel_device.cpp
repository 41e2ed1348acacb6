// The machine of tests/kernels/cuda_device.cpp, emulated.
#include "tests/kernels/device.h"

namespace stw::kernels::test {

bool emulated() { return true; }

}  // namespace stw::kernels::test
