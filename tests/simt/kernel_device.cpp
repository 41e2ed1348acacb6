// The machine of tests/kernels/cuda_device.cpp, emulated.
#include "tests/kernels/device.h"
#include "tests/simt/runtime.h"

namespace stw::kernels::test {

bool emulated() { return true; }

void finish_kernels() { simt::finish(); }

}  // namespace stw::kernels::test
