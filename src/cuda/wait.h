// Waits for the device that a cancel ends.
#pragma once
#include <cuda_runtime_api.h>

#include <chrono>
#include <thread>

#include "planner/base/check_in.h"

namespace stw::cuda {

// Waits until the device reaches the event. Throws Cancelled if the call is cancelled: the driver's own wait
// cannot be ended. Short waits poll without a pause, as a pause would take longer than they do.
inline cudaError_t wait_for(cudaEvent_t event) {
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  cudaError_t status;
  while ((status = cudaEventQuery(event)) == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // it is not an error
    check_in();
    if (steady_clock::now() - begin < std::chrono::milliseconds(1)) std::this_thread::yield();
    else std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return status;
}

}  // namespace stw::cuda
