// Converts errors of the CUDA runtime to ours.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "planner/base/result.h"

namespace stw::cuda {

// `what`: the failed action, or the place where the error was found.
inline Error error_of(const std::string& what, cudaError_t status) {
  Error e;
  switch (status) {
    case cudaErrorMemoryAllocation: e.code = Code::out_of_memory; break;
    // After these errors the context is gone: everything on the device is lost until the process ends.
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorContextIsDestroyed:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown: e.code = Code::device_lost; break;
    default: e.code = Code::device_error;
  }
  e.native = static_cast<int32_t>(status);
  e.message = "CUDA: " + what + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")" +
              (e.code == Code::device_lost             ? "; the device is lost to this process"
               : status == cudaErrorDevicesUnavailable ? "; another process may use it alone: see nvidia-smi"
                                                       : "");
  return e;
}

#define STW_CUDA_TRY(what, call)                                                      \
  do {                                                                                \
    if (const cudaError_t stw_cuda_status = (call); stw_cuda_status != cudaSuccess) { \
      static_cast<void>(cudaGetLastError());                                          \
      return ::stw::cuda::error_of(what, stw_cuda_status);                            \
    }                                                                                 \
  } while (0)

}  // namespace stw::cuda
