// What a .safetensors file holds, by its head: https://huggingface.co/docs/safetensors. Tensors are not read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace command {

struct StoredTensor {
  std::string name, format;   // as the file spells them
  std::vector<uint64_t> shape;
  uint64_t elements = 1;
  uint64_t begin = 0, end = 0;   // bytes behind the head
};

// In the order of their bytes. Throws where the file is none, is cut short, or where its tensors do not fill it exactly.
std::vector<StoredTensor> read_weights_head(const std::string& path);

}  // namespace command
