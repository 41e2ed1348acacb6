#include "src/device/control_group.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "src/files/file.h"

namespace stw {
namespace {

// Each line of `groups` is "hierarchy:controllers:path". Returns the folders of the group whose line has this
// controller (empty: version 2), and of all groups around it. In a container the path may be that of the
// host, while the container's own group is the top of the tree. Then only the top folder exists.
std::vector<std::string> folders_of(std::string_view groups, const std::string& tree,
                                    std::string_view controller) {
  std::vector<std::string> folders;
  for (size_t begin = 0; begin < groups.size();) {
    const size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string_view line = groups.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const bool is_unified = controllers == ",,";
    if (is_unified != controller.empty()) continue;
    if (!is_unified && controllers.find("," + std::string(controller) + ",") == std::string::npos) continue;
    const std::string top = is_unified ? tree : tree + "/" + std::string(controller);
    std::string_view path = line.substr(second + 1);
    if (path.find("/..") != std::string_view::npos) path = {};  // outside of this process's view
    for (; path.size() > 1; path = path.substr(0, path.rfind('/')))
      folders.push_back(top + std::string(path));
    folders.push_back(top);
  }
  return folders;
}

// The number at the start of a text; 0 where there is none ("max", "-1").
uint64_t number_in(const std::string& text) {
  return text.starts_with('-') ? 0 : std::strtoull(text.c_str(), nullptr, 10);
}

// The number in a line "key number".
uint64_t number_of(const std::string& lines, const std::string& key) {
  const std::string text = "\n" + lines, sought = "\n" + key + " ";
  const size_t at = text.find(sought);
  return at == std::string::npos ? 0 : number_in(text.substr(at + sought.size()));
}

// The last two are keys of memory.stat.
struct MemoryFiles {
  const char *limit, *used, *inactive, *active;
};
constexpr MemoryFiles unified{"/memory.max", "/memory.current", "inactive_file", "active_file"};
constexpr MemoryFiles version_1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file",
                                "total_active_file"};

void bound(SystemMemory& memory, const SystemMemory& machine, const std::string& folder,
           const MemoryFiles& files) {
  const uint64_t limit = number_in(kernel_text(folder + files.limit));
  if (limit == 0 || limit >= machine.total) return;
  // Cached files make room for allocations, as in the machine's MemAvailable.
  const std::string statistics = kernel_text(folder + "/memory.stat");
  const uint64_t cached = number_of(statistics, files.inactive) + number_of(statistics, files.active);
  const uint64_t used = number_in(kernel_text(folder + files.used)), held = used - std::min(used, cached);
  memory.total = std::min(memory.total, limit);
  memory.available = std::min(memory.available, limit - std::min(limit, held));
}

// The number of processors that a quota allows: `time` microseconds of processor time in every `period`
// microseconds.
int bound(int processors, uint64_t time, uint64_t period) {
  if (time == 0 || period == 0) return processors;
  return static_cast<int>(
      std::clamp<uint64_t>((time + period / 2) / period, 1, static_cast<uint64_t>(processors)));
}

}  // namespace

SystemMemory ControlGroups::memory_within(const SystemMemory& machine) const {
  SystemMemory memory = machine;
  for (const std::string& folder : folders_of(groups_, tree_, "")) bound(memory, machine, folder, unified);
  for (const std::string& folder : folders_of(groups_, tree_, "memory"))
    bound(memory, machine, folder, version_1);
  return memory;
}

int ControlGroups::processors_within(int processors) const {
  for (const std::string& folder : folders_of(groups_, tree_, "")) {
    const std::string quota = kernel_text(folder + "/cpu.max");  // "200000 100000" or "max 100000"
    const size_t space = quota.find(' ');
    if (space != std::string::npos)
      processors = bound(processors, number_in(quota), number_in(quota.substr(space + 1)));
  }
  for (const std::string& folder : folders_of(groups_, tree_, "cpu"))
    processors = bound(processors, number_in(kernel_text(folder + "/cpu.cfs_quota_us")),
                       number_in(kernel_text(folder + "/cpu.cfs_period_us")));
  return processors;
}

}  // namespace stw
