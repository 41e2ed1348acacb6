// Ranges of host work for profilers (Nsight Systems), in an NVTX domain "stowage": programs at their launch,
// and ops with their blocks while they are recorded into graphs or timed. Without a profiler a range only
// tests a pointer.
#pragma once
#include <nvtx3/nvToolsExt.h>

namespace stw::cuda {

class Range {
 public:
  explicit Range(const char* name) {
    nvtxEventAttributes_t about{};
    about.version = NVTX_VERSION;
    about.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    about.messageType = NVTX_MESSAGE_TYPE_ASCII;
    about.message.ascii = name;
    nvtxDomainRangePushEx(domain(), &about);
  }
  ~Range() { nvtxDomainRangePop(domain()); }
  Range(const Range&) = delete;

 private:
  static nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t stowage = nvtxDomainCreateA("stowage");
    return stowage;
  }
};

}  // namespace stw::cuda
