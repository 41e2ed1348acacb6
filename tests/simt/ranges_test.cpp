// The ranges that profilers show. This program is its own profiler: NVTX calls the functions linked with it.
#include <algorithm>
#include <cstdint>

extern "C" int (*InitializeInjectionNvtx2_fnptr)(const void* (*tables)(uint32_t));
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

#include "tests/device/cuda_device.h"

namespace stw {
namespace {

using namespace testing_tools;

std::string domain;
std::vector<std::string> begun;
int open_ranges = 0;

nvtxDomainHandle_t create_domain(const char* name) {
  domain = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}
int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* about) {
  begun.push_back(about->message.ascii);
  return open_ranges++;
}
int pop(nvtxDomainHandle_t) { return --open_ranges; }

int take_over(NvtxGetExportTableFunc_t tables) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned count = 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count)) return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

bool saw(const std::string& name) { return std::find(begun.begin(), begun.end(), name) != begun.end(); }

TEST_F(CudaDeviceTest, ProfilersSeeProgramsAndOps) {
  begun.clear();
  const auto trainer = trainer_for(model_, plan_for(*model_, request()), {}, cuda_device());
  EXPECT_EQ(domain, "stowage");
  EXPECT_TRUE(saw("record micro_first"));
  EXPECT_TRUE(saw("attention, block 0"));
  EXPECT_TRUE(saw("linear_weight_gradient, block 1"));
  EXPECT_TRUE(saw("adamw"));

  begun.clear();
  run(*trainer, 0, 1);
  EXPECT_EQ(begun, (std::vector<std::string>{"micro_first", "micro_next", "micro_short", "update"}));
  EXPECT_EQ(open_ranges, 0);
}

}  // namespace
}  // namespace stw

int (*InitializeInjectionNvtx2_fnptr)(const void* (*tables)(uint32_t)) = stw::take_over;
