// The layout is that of the toolkit's own structures: a header of 16 bytes, then entries, each with a header
// of its own.
#include "tests/ptx/fatbin.h"

#include <fatbinary_section.h>

#include <cstdint>
#include <cstring>

#include "tests/ptx/machine.h"

namespace ptx {
namespace {

constexpr uint32_t container_magic = 0xba55ed50u;
struct Container {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;
};
struct Entry {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;
  uint32_t compressed_bytes;
};
constexpr uint16_t kind_ptx = 1;

template <class T>
T read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::string text_of_fatbinary(const void* wrapper) {
  const auto w = read<__fatBinC_Wrapper_t>(static_cast<const char*>(wrapper));
  if (w.magic != FATBINC_MAGIC) die("what was registered is no fat binary");
  const char* at = reinterpret_cast<const char*>(w.data);
  const auto container = read<Container>(at);
  if (container.magic != container_magic) die("a fat binary of an unknown form");
  at += container.header_bytes;
  for (const char* const end = at + container.bytes; at < end;) {
    const auto entry = read<Entry>(at);
    const char* const content = at + entry.header_bytes;
    if (entry.kind == kind_ptx) {
      std::string text(content, strnlen(content, entry.bytes));
      if (entry.compressed_bytes != 0 || text.find(".version") == std::string::npos)
        die("compressed PTX: build with nvcc --no-compress");
      return text;
    }
    at = content + entry.bytes;
  }
  die("a fat binary without PTX");
}

}  // namespace ptx
