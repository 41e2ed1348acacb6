// The processes that use the emulated card's memory.
#include "src/cuda/nvml.h"
#include "tests/simt/runtime.h"

namespace stw::cuda {

std::vector<MemoryHolder> memory_holders(const std::string& bus_id) {
  if (bus_id != "0000:05:00.0") return {};
  std::vector<MemoryHolder> holders;
  for (const simt::Holder& h : simt::faults.holders) holders.push_back({h.process, h.bytes, h.name});
  return holders;
}

std::optional<uint64_t> memory_used(const std::string& bus_id) {
  if (bus_id != "0000:05:00.0" || !simt::faults.tells_memory) return {};
  uint64_t used = simt::device_bytes_in_use() + (simt::has_context(0) ? simt::faults.context_bytes : 0);
  for (const simt::Holder& h : simt::faults.holders) used += h.bytes;
  return used;
}

}  // namespace stw::cuda
