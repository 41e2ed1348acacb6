// `stowage devices`: the devices that can train on this machine, and the reason if CUDA is not among them.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/handles.h"
#include "base/units.h"
#include "commands/commands.h"
#include "flags/flags.h"

namespace command {
namespace {

const char* instruction_set(uint32_t isa) {
  static constexpr std::array<const char*, 5> names{"", "scalar", "AVX2", "AVX-512", "NEON"};
  return isa < names.size() ? names[isa] : "";
}

std::string details(const stw_device_info& info) {
  if (info.backend == STW_BACKEND_CUDA)
    return fmt::format("compute capability {}.{}", info.compute_major, info.compute_minor);
  return fmt::format("{} thread{}, {}", info.threads, info.threads == 1 ? "" : "s",
                     instruction_set(info.isa));
}

// The devices that can be planned for, whether present or not, and the sources of their figures.
void show_profiles() {
  fmt::print("{:<12}{:<28}{:>9}{:>10}{:>14}{:>10}{:>7}{:>7}{:>9}{:>8}{:>10}\n", "profile", "name", "memory",
             "reserve", "fp32 GFLOP/s", "bf16", "GB/s", "host", "product", "stream", "launch");
  std::vector<std::string> sources;
  for (size_t index = 0;; ++index) {
    auto info = sized<stw_profile_info>();
    if (stw_profile_at(index, &info) != STW_OK) break;
    auto source = std::find(sources.begin(), sources.end(), info.source);
    if (source == sources.end()) source = sources.insert(sources.end(), info.source);
    fmt::print("{:<12}{:<28}{:>9}{:>10}{:>14}{:>10}{:>7}{:>7}{:>8.1f}%{:>7.1f}%{:>7} ns [{}]\n", info.name,
               info.title, info.memory ? human_bytes(info.memory) : "-", human_bytes(info.reserve),
               info.gflops_fp32, info.gflops_bf16, info.gbytes_per_second, info.host_gbytes_per_second,
               info.product_permille / 10.0, info.stream_permille / 10.0, info.launch_nanoseconds,
               source - sources.begin() + 1);
  }
  for (size_t i = 0; i < sources.size(); ++i) fmt::print("[{}] {}\n", i + 1, sources[i]);
}

void run(bool profiles) {
  if (profiles) return show_profiles();
  bool cuda = false;
  fmt::print("{:<8}{:<32}{:>11}{:>11}  {}\n", "device", "name", "memory", "free", "details");
  for (size_t index = 0;; ++index) {
    auto info = sized<stw_device_info>();
    if (stw_device_at(index, &info, nullptr) != STW_OK) break;
    if (info.backend == STW_BACKEND_CUDA) ask_memory_free(static_cast<int32_t>(index) - 1, info);
    cuda |= info.backend == STW_BACKEND_CUDA;
    fmt::print("{:<8}{:<32.31}{:>11}{:>11}  {}\n", info.backend == STW_BACKEND_CUDA ? "cuda" : "cpu",
               info.name, human_bytes(info.memory_total),
               info.memory_free ? human_bytes(info.memory_free) : "unknown", details(info));
  }
  if (!cuda) fmt::print("\nNo CUDA device: {}\n", stw_build_info());
}

}  // namespace

void add_devices(CLI::App& application) {
  CLI::App& command =
      *application.add_subcommand("devices", "List the devices that can train on this machine.");
  auto profiles = std::make_shared<bool>(false);
  command.add_flag("--profiles", *profiles,
                   "List the devices that can be planned for, with their figures, instead.");
  command.callback([profiles] { run(*profiles); });
}

}  // namespace command
