#include "plans/memory_in_use.h"

#include <cstdio>

#include "base/handles.h"
#include "base/repeated.h"

namespace command {
namespace {

uint64_t resident_bytes() {
  std::FILE* file = open_file("/proc/self/status", "r");
  if (!file) return 0;
  char line[256];
  unsigned long long kibibytes = 0;
  while (std::fgets(line, sizeof line, file))
    if (std::sscanf(line, "VmRSS: %llu kB", &kibibytes) == 1) break;
  std::fclose(file);
  return uint64_t{kibibytes} * 1024;
}

}  // namespace

uint64_t memory_in_use(const stw_device* device) {
  auto info = sized<stw_device_info>();
  if (stw_device_query(device, &info) == STW_OK && info.backend == STW_BACKEND_CUDA)
    return info.memory_total - info.memory_free;
  return resident_bytes();
}

}  // namespace command
