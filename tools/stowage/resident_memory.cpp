#include "resident_memory.h"

#include <cstdio>

namespace command {

uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (!file) return 0;
  char line[256];
  unsigned long long kibibytes = 0;
  while (std::fgets(line, sizeof line, file))
    if (std::sscanf(line, "VmRSS: %llu kB", &kibibytes) == 1) break;
  std::fclose(file);
  return uint64_t{kibibytes} * 1024;
}

}  // namespace command
