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
  fmt::print("{:<12}{:<28}{:>9}{:>10}{:>14}{:>10}{:>7}{:>7}{:>7}{:>9}{:>8}{:>10}\n", "profile", "name",
             "memory", "reserve", "fp32 GFLOP/s", "bf16", "watts", "GB/s", "host", "product", "stream",
             "launch");
  std::vector<std::string> sources;
  for (size_t index = 0;; ++index) {
    auto info = sized<stw_profile_info>();
    if (stw_profile_at(index, &info) != STW_OK) break;
    auto source = std::find(sources.begin(), sources.end(), info.source);
    if (source == sources.end()) source = sources.insert(sources.end(), info.source);
    fmt::print("{:<12}{:<28}{:>9}{:>10}{:>14}{:>10}{:>7}{:>7}{:>7}{:>8.1f}%{:>7.1f}%{:>7} ns [{}]\n",
               info.name, info.title, info.memory ? human_bytes(info.memory) : "-", human_bytes(info.reserve),
               info.gflops_fp32, info.gflops_bf16, info.watts ? fmt::format("{}", info.watts) : "-",
               info.gbytes_per_second, info.host_gbytes_per_second, info.product_permille / 10.0,
               info.stream_permille / 10.0, info.launch_nanoseconds, source - sources.begin() + 1);
  }
  for (size_t i = 0; i < sources.size(); ++i) fmt::print("[{}] {}\n", i + 1, sources[i]);
}

// The figures of a GPU as the file that --device takes.
void show_profile(const std::string& name) {
  for (size_t index = 0;; ++index) {
    auto p = sized<stw_profile_info>();
    if (stw_profile_at(index, &p) != STW_OK)
      throw Failure(exit_usage, fmt::format("{}: there is no profile of this name", name));
    if (name != p.name) continue;
    if (!p.is_cuda) throw Failure(exit_usage, "cpu: figures of GPUs are shown; those of a CPU are measured");
    const auto of_ceiling = [&](uint32_t permille) {
      return (permille * 1000 + p.product_permille - 1) / p.product_permille;
    };
    const std::pair<const char*, uint64_t> figures[] = {
        {"gflops_fp32", p.gflops_fp32},
        {"gflops_bf16", p.gflops_bf16},
        {"watts", p.watts},
        {"gflops_per_watt", p.gflops_per_watt},
        {"gbytes_per_second", p.gbytes_per_second},
        {"host_gbytes_per_second", p.host_gbytes_per_second},
        {"launch_nanoseconds", p.launch_nanoseconds},
        {"stream_permille", p.stream_permille},
        {"mma_permille", p.mma_permille},
        {"wgmma_permille", p.wgmma_permille},
        {"fp32_permille", p.fp32_permille},
        {"attention_permille", of_ceiling(p.attention_permille)},
        {"wide_attention_permille", of_ceiling(p.wide_attention_permille)}};
    fmt::print("{{\n \"format\": \"stowage-profile\",\n \"version\": 2,\n \"device\": \"{}\"", name);
    for (const auto& [key, value] : figures) fmt::print(",\n \"{}\": {}", key, value);
    fmt::print("\n}}\n");
    return;
  }
}

void run(bool profiles, const std::string& profile) {
  if (!profile.empty()) return show_profile(profile);
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
  auto profile = std::make_shared<std::string>();
  command
      .add_option("--profile", *profile,
                  "Print the figures of this GPU, as a profile that `stowage plan` takes.")
      ->type_name("NAME");
  command.callback([profiles, profile] { run(*profiles, *profile); });
}

}  // namespace command
