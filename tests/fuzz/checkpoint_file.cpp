// Fuzzes the format of checkpoint files. An input that begins with "raw" is the whole file after that word.
// Any other input is the header's text and, after a byte 0xFF, the bytes of the sections. The file then gets
// a matching prefix and matching checksums, so that the fuzzer gets past the checksums.
#include <algorithm>
#include <cstring>

#include "input.h"
#include "src/files/checkpoint_file.h"

namespace {

std::string word(uint64_t value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, 8);
  return bytes;
}

std::string framed(const std::string& header, const std::string& data) {
  std::string file =
      std::string("\x89STW\r\n\x1a\n", 8) + word(stw::checkpoint_version) + word(header.size()) + header;
  const uint64_t header_hash = stw::hash64(file.data(), file.size());
  file += word(header_hash) + data;
  std::string table;
  size_t at = 0;
  if (const auto json = stw::parse_json(header))
    if (const auto sections = stw::get_array(*json, "sections"))
      for (const stw::Json& section : (*sections)->elements()) {
        const auto bytes = stw::get_uint(section, "bytes");
        const size_t length = bytes ? std::min<uint64_t>(*bytes, data.size() - at) : 0;
        table += word(stw::hash64(data.data() + at, length));
        at += length;
      }
  const std::string hashes = word(header_hash) + table;
  return file + table + word(stw::hash64(hashes.data(), hashes.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const auto parts = fuzz::parts_of(data, size, 2);
  const bool is_raw = input.starts_with("raw");
  const std::string file = is_raw ? input.substr(3) : framed(parts[0], parts[1]);
  const auto reader = stw::CheckpointReader::open(folder.write("checkpoint", file));
  if (!reader) return 0;
  uint64_t bytes = 0;
  bool all_read = true;
  for (const stw::CheckpointSection& section : reader->sections()) {
    fuzz::require(section.bytes <= file.size() - bytes, "sections lie in the file, one after the other");
    bytes += section.bytes;
    if (reader->find(section.name) != &section) continue;  // another section has the same name
    auto in = reader->section(section.name, section.bytes);
    std::vector<std::byte> out(section.bytes);
    all_read = in && bool(in->read(out)) && all_read;
  }
  fuzz::require(!bool(reader->verify_all()) || all_read, "a checkpoint that is whole can be read");
  fuzz::require(is_raw || all_read, "sections with the checksums that belong to them can be read");
  return 0;
}
