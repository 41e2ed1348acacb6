// A build without CUDA.
#include "src/device/device.h"

namespace stw {

int cuda_device_count() { return 0; }

CudaPresence cuda_presence() { return {false, "not part of this build"}; }

Result<std::unique_ptr<Device>> open_cuda(const DeviceOptions&) {
  return Error{Code::unsupported, "device: this build has no CUDA backend; the CPU is STW_BACKEND_CPU"};
}

}  // namespace stw
