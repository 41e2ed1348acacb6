// `stowage devices`: what can train here, and why CUDA cannot where it cannot.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>

#include "commands.h"
#include "handles.h"
#include "units.h"

namespace command {
namespace {

const char* instruction_set(uint32_t isa) {
  static constexpr std::array<const char*, 5> names{"", "scalar", "AVX2", "AVX-512", "NEON"};
  return isa < names.size() ? names[isa] : "";
}

std::string details(const stw_device_info& info) {
  if (info.backend == STW_BACKEND_CUDA)
    return fmt::format("compute capability {}.{}", info.compute_major, info.compute_minor);
  return fmt::format("{} thread{}, {}", info.threads, info.threads == 1 ? "" : "s", instruction_set(info.isa));
}

void run() {
  bool cuda = false;
  fmt::print("{:<8}{:<32}{:>11}{:>11}  {}\n", "device", "name", "memory", "free", "details");
  for (size_t index = 0;; ++index) {
    auto info = sized<stw_device_info>();
    if (stw_device_at(index, &info, nullptr) != STW_OK) break;
    cuda |= info.backend == STW_BACKEND_CUDA;
    fmt::print("{:<8}{:<32.31}{:>11}{:>11}  {}\n", info.backend == STW_BACKEND_CUDA ? "cuda" : "cpu", info.name,
               human_bytes(info.memory_total), human_bytes(info.memory_free), details(info));
  }
  if (!cuda) fmt::print("\nNo CUDA device: {}\n", stw_build_info());
}

}  // namespace

void add_devices(CLI::App& application) {
  application.add_subcommand("devices", "List the devices that can train here.")->callback(run);
}

}  // namespace command
