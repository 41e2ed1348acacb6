// Fuzzes reference files. An input that begins with "raw" is the whole file after that word. Any other input
// is the log-probabilities, and gets a matching trailer.
#include "src/data/reference_file.h"

#include <cmath>
#include <cstring>

#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  constexpr uint64_t pairs = 7;
  std::string file(reinterpret_cast<const char*>(data), size);
  uint64_t count = size / sizeof(float);
  if (file.starts_with("raw")) {
    file = file.substr(3);
    count = file.size() < 32 ? 0 : (file.size() - 32) / sizeof(float);
  } else {
    file.resize(count * sizeof(float));
    const uint64_t numbers[] = {count, pairs, stw::hash64(file.data(), file.size())};
    file += "stwref01" + std::string(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  const std::string path = folder.write("reference", file);
  fuzz::require(!stw::open_reference(path, count + 1, pairs), "a reference of other tokens is refused");
  const auto reference = stw::open_reference(path, count, pairs);
  if (!reference) return 0;
  for (uint64_t i = 0; i < count; ++i) {
    float value = 1;
    fuzz::require(bool(reference->read(i * sizeof value, &value, sizeof value)),
                  "log-probabilities can be read");
    fuzz::require(std::isfinite(value) && value <= 0, "log-probabilities are finite and at most 0");
  }
  return 0;
}
