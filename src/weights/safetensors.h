// Safetensors: the weights of models, in and out (https://github.com/huggingface/safetensors, "Format").
//
//   u64 header_bytes | JSON {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...} and spaces | data
//
// The reader checks the header, and that the tensors cover the data without holes or overlap, before it gives
// out a tensor. Tensors are streamed; no file is mapped or loaded as a whole.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/result.h"
#include "src/files/file.h"

namespace stw {

enum class TensorDType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
// The format's spelling: "F64", ..., "BOOL".
std::string_view dtype_name(TensorDType dtype);
uint64_t dtype_bytes(TensorDType dtype);  // of one element

struct SafetensorsInfo {
  std::string name;
  std::string format;                // its dtype in the file's spelling
  std::optional<TensorDType> dtype;  // nullopt: unknown here (F8_E4M3, ...); the bytes can still be read
  std::vector<int64_t> shape;        // row-major; empty for a scalar
  size_t file;                       // index into the files of the reader
  uint64_t offset;                   // from the start of that file, in bytes
  uint64_t bytes;
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

// The path of a folder's weights: model.safetensors, else model.safetensors.index.json, else the only
// .safetensors file; empty where there is none. Errors: io_error; bad_argument where there are several files
// and no index; unsupported where all weights are in another format.
Result<std::string> weights_in(const std::string& folder);

// Const methods may run on several threads at once.
class SafetensorsReader {
 public:
  // `path`: a .safetensors file, a .index.json of shards, or a folder (weights_in). From shards only the
  // tensors listed in the index are taken. Errors: io_error, corrupt (with file, tensor, expected and found
  // values).
  static Result<SafetensorsReader> open(const std::string& path);

  // In the order of the header; shards one after the other.
  const std::vector<SafetensorsInfo>& tensors() const { return tensors_; }
  // Borrowed; null where there is none.
  const SafetensorsInfo* find(std::string_view name) const;
  // "__metadata__" of the (first) file.
  const SafetensorsMetadata& metadata() const { return metadata_; }
  const std::string& path_of(const SafetensorsInfo& tensor) const { return files_[tensor.file].path(); }
  // Bytes [offset, offset + out.size()) of the tensor, little-endian as stored.
  Status read(const SafetensorsInfo& tensor, uint64_t offset, std::span<std::byte> out) const;

 private:
  SafetensorsReader() = default;
  Status add_file(const std::string& path);
  Status add_shards(const std::string& index_path);
  void unwrap_names();
  void index_names();

  std::vector<File> files_;
  std::vector<SafetensorsInfo> tensors_;
  std::map<std::string, size_t, std::less<>> names_;
  SafetensorsMetadata metadata_;
};

struct SafetensorsEntry {
  std::string name;
  TensorDType dtype;
  std::vector<int64_t> shape;
};

// Writes one file, atomically (see FileWriter). The data follows in the order of the entries, in pieces of
// any size.
class SafetensorsWriter {
 public:
  // Errors: bad_argument (a name twice, a negative or too large shape, a header over the format's limit),
  // io_error.
  static Result<SafetensorsWriter> create(const std::string& path,
                                          const std::vector<SafetensorsEntry>& entries,
                                          const SafetensorsMetadata& metadata);
  // Errors: bad_argument where there is more data than the entries have, io_error.
  Status write(std::span<const std::byte> data);
  // Errors: bad_state where data is missing, io_error.
  Status finish();

 private:
  SafetensorsWriter(FileWriter writer, uint64_t missing) : writer_(std::move(writer)), missing_(missing) {}
  FileWriter writer_;
  uint64_t missing_;  // bytes
};

}  // namespace stw
