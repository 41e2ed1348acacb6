#include "run/weights_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/failure.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/units.h"

namespace command {
namespace {

constexpr uint64_t head_limit = 100'000'000;  // bytes; the limit of the format

std::optional<uint64_t> bits_of(std::string_view format) {
  static const std::map<std::string_view, uint64_t> bits{
      {"F64", 64}, {"I64", 64}, {"U64", 64},    {"C64", 64},    {"F32", 32},   {"I32", 32},
      {"U32", 32}, {"F16", 16}, {"BF16", 16},   {"I16", 16},    {"U16", 16},   {"I8", 8},
      {"U8", 8},   {"BOOL", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}};
  const auto found = bits.find(format);
  if (found == bits.end()) return std::nullopt;
  return found->second;
}

StoredTensor read_tensor(JsonReader& head, const std::string& name) {
  StoredTensor tensor;
  tensor.name = name;
  std::vector<uint64_t> offsets;
  head.object([&](const std::string& key) {
    if (key == "dtype") tensor.format = head.string();
    else if (key == "shape") head.list('[', ']', [&] { tensor.shape.push_back(head.integer()); });
    else if (key == "data_offsets") head.list('[', ']', [&] { offsets.push_back(head.integer()); });
    else head.fail(fmt::format("{}: unknown field \"{}\" of a tensor", name, key));
  });
  if (tensor.format.empty() || offsets.size() != 2 || offsets[0] > offsets[1])
    head.fail(fmt::format("{}: expected a dtype, a shape and two data_offsets", name));
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  for (const uint64_t size : tensor.shape)
    if (__builtin_mul_overflow(tensor.elements, size, &tensor.elements))
      head.fail(fmt::format("{}: its shape has too many elements", name));
  uint64_t bits = 0;
  if (const auto each = bits_of(tensor.format);
      each &&
      (__builtin_mul_overflow(tensor.elements, *each, &bits) || bits / 8 != tensor.end - tensor.begin))
    head.fail(fmt::format("{}: {} elements of {} do not take the {} bytes of its data_offsets", name,
                          grouped(tensor.elements), tensor.format, grouped(tensor.end - tensor.begin)));
  return tensor;
}

}  // namespace

std::vector<StoredTensor> read_weights_head(const std::string& path) {
  const uint64_t size = file_bytes(path);
  std::ifstream file(path, std::ios::binary);
  unsigned char prefix[8] = {};
  uint64_t bytes = 0;
  if (!file) throw Failure(exit_failed, fmt::format("{}: cannot read", path));
  if (!file.read(reinterpret_cast<char*>(prefix), sizeof prefix))
    throw Failure(
        exit_failed,
        fmt::format("{}: cut short: expected the 8 bytes that a .safetensors file begins with", path));
  for (size_t i = 0; i < sizeof prefix; ++i) bytes |= uint64_t{prefix[i]} << 8 * i;
  if (bytes > head_limit)
    throw Failure(exit_failed, fmt::format("{}: expected a .safetensors file, its head would take {} bytes",
                                           path, grouped(bytes)));
  std::string text(bytes, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(bytes)))
    throw Failure(exit_failed, fmt::format("{}: cut short: its head takes {} bytes, the file has {}", path,
                                           grouped(8 + bytes), grouped(size)));

  std::vector<StoredTensor> tensors;
  JsonReader head(text, path + ": its head is damaged", sizeof prefix);
  head.object([&](const std::string& name) {
    if (name == "__metadata__") head.object([&](const std::string&) { head.string(); });
    else tensors.push_back(read_tensor(head, name));
  });
  if (!head.at_end()) head.fail("expected the end of the text");

  const auto by_name = [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; };
  std::sort(tensors.begin(), tensors.end(), by_name);
  const auto twice = std::adjacent_find(tensors.begin(), tensors.end(),
                                        [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != tensors.end())
    throw Failure(exit_failed, fmt::format("{}: {} is there twice", path, twice->name));
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != end)
      throw Failure(
          exit_failed,
          fmt::format("{}: {} begins at byte {}, expected {}: tensors follow each other without holes", path,
                      tensor.name, grouped(tensor.begin), grouped(end)));
    end = tensor.end;
  }
  const uint64_t there = size - 8 - bytes;
  if (there != end)
    throw Failure(exit_failed,
                  fmt::format("{}: {}: expected {} bytes of tensors, found {}", path,
                              there < end ? "cut short" : "too long", grouped(end), grouped(there)));
  return tensors;
}

}  // namespace command
