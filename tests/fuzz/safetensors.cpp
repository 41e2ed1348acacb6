// Fuzzes weight files. An input is a header, to which its length is added, then a byte 0xFF and the data. The
// tensors of an accepted file lie inside of it, have the bytes of their shapes, and can be read.
#include "src/weights/safetensors.h"

#include <cstring>

#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of(data, size, 2);
  std::string file(8, '\0');
  const uint64_t length = parts[0].size();
  std::memcpy(file.data(), &length, 8);
  file += parts[0] + parts[1];
  const auto reader = stw::SafetensorsReader::open(folder.write("model.safetensors", file));
  if (!reader) return 0;
  for (const stw::SafetensorsInfo& tensor : reader->tensors()) {
    fuzz::require(tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset,
                  "a tensor lies in its file");
    if (tensor.dtype) {
      uint64_t bytes = stw::dtype_bytes(*tensor.dtype);
      for (const int64_t extent : tensor.shape) bytes *= static_cast<uint64_t>(extent);
      fuzz::require(bytes == tensor.bytes, "a tensor has the bytes of its shape");
    }
    fuzz::require(reader->find(tensor.name) == &tensor, "a tensor is found by its name");
    std::vector<std::byte> bytes(tensor.bytes);
    fuzz::require(bool(reader->read(tensor, 0, bytes)), "a tensor can be read");
  }
  return 0;
}
