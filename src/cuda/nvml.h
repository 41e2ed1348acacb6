// Who holds a card's memory: NVIDIA's management library, which comes with the driver, tells.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/device/device.h"

namespace stw::cuda {

// Processes by what they hold, of the card at this PCI bus id (cudaDeviceGetPCIBusId); none where nobody tells. Any thread.
std::vector<MemoryHolder> memory_holders(const std::string& bus_id);
// In bytes, of all processes, the driver's own share included; no context is made to be told.
std::optional<uint64_t> memory_used(const std::string& bus_id);

}  // namespace stw::cuda
