#include "src/cuda/current.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace stw::cuda {

namespace {

// Choosing a device gives it a context, which takes hundreds of megabytes, and the runtime cannot choose "no
// device". The driver's own functions can. The runtime knows their addresses, so that nothing has to be
// linked.
struct Driver {
  decltype(&cuCtxGetCurrent) get_context = nullptr;
  decltype(&cuCtxSetCurrent) set_context = nullptr;
  decltype(&cuDevicePrimaryCtxGetState) state_of = nullptr;
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_mode = nullptr;
  bool is_there = false;
};

template <class F>
bool find(const char* name, F& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found) != cudaSuccess)
    static_cast<void>(cudaGetLastError());
  function = reinterpret_cast<F>(address);
  return address && found == cudaDriverEntryPointSuccess;
}

const Driver& driver() {
  static const Driver one = [] {
    Driver d;
    d.is_there = find("cuCtxGetCurrent", d.get_context) && find("cuCtxSetCurrent", d.set_context) &&
                 find("cuDevicePrimaryCtxGetState", d.state_of);
    if (!find("cuThreadExchangeStreamCaptureMode", d.exchange_mode)) d.exchange_mode = nullptr;
    return d;
  }();
  return one;
}

// Returns the thread's previous mode, or -1.
int exchange_mode(int mode) {
  auto exchanged = static_cast<CUstreamCaptureMode>(mode);
  return driver().exchange_mode && driver().exchange_mode(&exchanged) == CUDA_SUCCESS
             ? static_cast<int>(exchanged)
             : -1;
}

}  // namespace

std::optional<bool> has_context(int ordinal) {
  int is_active = 0;
  unsigned flags = 0;
  if (!driver().is_there || driver().state_of(ordinal, &flags, &is_active) != CUDA_SUCCESS) return {};
  return is_active != 0;
}

Current::Current(int ordinal) {
  if (cudaGetDevice(&device_) != cudaSuccess) device_ = -1;
  CUcontext context = nullptr;
  if (driver().is_there && driver().get_context(&context) == CUDA_SUCCESS) context_ = context;
  // Even if it is current already: the host may use a context of its own on it.
  failure_ = static_cast<int>(cudaSetDevice(ordinal));
  if (failure_) static_cast<void>(cudaGetLastError());
  mode_ = exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
}

Current::~Current() {
  if (mode_ >= 0) exchange_mode(mode_);
  if (!driver().is_there) {
    if (device_ >= 0) cudaSetDevice(device_);
    return;
  }
  driver().set_context(static_cast<CUcontext>(context_));
  if (context_ || device_ < 0) return;
  // A thread without a context gets one on the device that it chose last. If that device has a context
  // already, this costs nothing.
  int now = 0;
  if (cudaGetDevice(&now) == cudaSuccess && now != device_ && has_context(device_) == true)
    cudaSetDevice(device_);
}

}  // namespace stw::cuda
