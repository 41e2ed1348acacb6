// Reads the header of a .safetensors file (https://huggingface.co/docs/safetensors), without its tensors.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace command {

struct StoredTensor {
  std::string name, format;  // as the file spells them
  std::vector<uint64_t> shape;
  uint64_t elements = 1;
  uint64_t begin = 0, end = 0;  // bytes after the header; half-open
};

// The tensors in the order of their bytes. Throws a Failure if the file is not of this format, is truncated,
// or if its tensors do not fill it exactly.
std::vector<StoredTensor> read_weights_head(const std::string& path);

}  // namespace command
