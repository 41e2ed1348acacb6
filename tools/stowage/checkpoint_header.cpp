#include "checkpoint_header.h"

#include <cstdint>
#include <cstring>
#include <fstream>

namespace command {
namespace {

// magic 8 | version u32 | zero u32 | header bytes u64 | header; little-endian, as src/checkpoint_file.h says.
constexpr char magic[8] = {'\x89', 'S', 'T', 'W', '\r', '\n', '\x1a', '\n'};
constexpr uint64_t header_limit = 100'000'000;

}  // namespace

std::optional<std::string> checkpoint_header(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char prefix[24];
  if (!file.read(prefix, sizeof prefix) || std::memcmp(prefix, magic, sizeof magic) != 0) return std::nullopt;
  uint64_t bytes = 0;
  std::memcpy(&bytes, prefix + 16, sizeof bytes);
  if (bytes > header_limit) return std::nullopt;
  std::string header(bytes, '\0');
  if (!file.read(header.data(), static_cast<std::streamsize>(bytes))) return std::nullopt;
  return header;
}

}  // namespace command
