#include "run/checkpoint_header.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/files.h"
#include "base/json_fields.h"

namespace command {
namespace {

// magic 8 | version u32 | zero u32 | header bytes u64 | header; little-endian, as in
// src/files/checkpoint_file.h.
constexpr char magic[8] = {'\x89', 'S', 'T', 'W', '\r', '\n', '\x1a', '\n'};
constexpr uint64_t header_limit = 100'000'000;

}  // namespace

std::optional<std::string> checkpoint_header(const std::string& path) {
  if (!may_be_read_again(path)) return std::nullopt;  // opening a pipe would wait for its writer
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

std::string checkpoint_section(const std::string& path, uint64_t byte) {
  const auto header = checkpoint_header(path);
  if (!header) return "the header";
  uint64_t end = 24 + header->size() + 8;  // after the header and its hash
  if (byte < end) return "the header";
  for (const std::string& section : json_list(*header, "", "sections").value_or(std::vector<std::string>{})) {
    end += json_integer(section, "", "bytes").value_or(0);
    if (byte < end) return json_string(section, "", "name").value_or("a section without a name");
  }
  return "the checksums";
}

}  // namespace command
