// Processes that hold a card's memory, from NVIDIA's management library, which is part of the driver.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/device/device.h"

namespace stw::cuda {

// The processes that hold memory of the card at this PCI bus id (cudaDeviceGetPCIBusId); empty if unknown.
// Any thread.
std::vector<MemoryHolder> memory_holders(const std::string& bus_id);
// Bytes in use by all processes, including the driver's own share. Makes no context.
std::optional<uint64_t> memory_used(const std::string& bus_id);

}  // namespace stw::cuda
