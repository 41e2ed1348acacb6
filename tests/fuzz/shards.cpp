// Fuzzes indexes of shards. An input is a model.safetensors.index.json; after a byte 0xFF follows the header
// of a.safetensors, and after another the header of b.safetensors. All numbers are zeros. The tensors of an
// accepted index lie in the folder's files and can be read.
#include "input.h"
#include "src/weights/safetensors.h"
#include "weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of(data, size, 3);
  folder.write("model.safetensors.index.json", parts[0]);
  folder.write("a.safetensors", fuzz::weights_of(parts[1]));
  folder.write("b.safetensors", fuzz::weights_of(parts[2]));
  const auto reader = stw::SafetensorsReader::open(folder.path());
  if (!reader) return 0;
  for (const stw::SafetensorsInfo& tensor : reader->tensors()) {
    const std::string& path = reader->path_of(tensor);
    fuzz::require(path == folder.path() + "/a.safetensors" || path == folder.path() + "/b.safetensors",
                  "a shard lies in the index's folder");
    fuzz::require(reader->find(tensor.name) == &tensor, "a tensor is found by its name, once");
    std::vector<std::byte> bytes(tensor.bytes);
    fuzz::require(bool(reader->read(tensor, 0, bytes)), "a tensor can be read");
  }
  return 0;
}
