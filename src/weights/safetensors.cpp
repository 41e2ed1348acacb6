#include "src/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>

#include "planner/base/json.h"
#include "planner/base/python_json.h"
#include "src/files/file_kind.h"
#include "src/weights/absent_weights.h"

namespace stw {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format stores little-endian numbers as they are");

constexpr uint64_t largest_header = 100'000'000;  // bytes; the format's own limit
constexpr uint64_t index_limit = 100'000'000;     // bytes of a .index.json
constexpr std::string_view metadata_key = "__metadata__";

struct DTypeRow {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<DTypeRow, 10> dtypes = {{{"F64", 8},
                                              {"F32", 4},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"I64", 8},
                                              {"I32", 4},
                                              {"I16", 2},
                                              {"I8", 1},
                                              {"U8", 1},
                                              {"BOOL", 1}}};

std::optional<TensorDType> find_dtype(std::string_view name) {
  for (size_t index = 0; index < dtypes.size(); ++index)
    if (dtypes[index].name == name) return static_cast<TensorDType>(index);
  return std::nullopt;
}

// The size of a tensor with `bytes` bytes an element; nullopt where a dimension is negative or the product
// overflows.
std::optional<uint64_t> tensor_bytes(uint64_t bytes, const std::vector<int64_t>& shape) {
  for (const int64_t dimension : shape)
    if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes))
      return std::nullopt;
  return bytes;
}

Error in_tensor(const std::string& path, const std::string& name, std::string_view message) {
  return corrupt(path, "tensor \"" + name + "\": " + std::string(message));
}

// The result's `offset` counts from the start of the data.
Result<SafetensorsInfo> parse_tensor(const std::string& path, const std::string& name, const Json& value) {
  auto dtype_text = get_string(value, "dtype");
  if (!dtype_text) return in_tensor(path, name, dtype_text.error().message);
  const auto dtype = find_dtype(*dtype_text);
  SafetensorsInfo info{name, *dtype_text, dtype, {}, 0, 0, 0};

  auto shape = get_array(value, "shape");
  if (!shape) return in_tensor(path, name, shape.error().message);
  for (const Json& dimension : (*shape)->elements()) {
    const int64_t* held = dimension.as_int();
    if (!held || *held < 0)
      return in_tensor(path, name,
                       "\"shape\": expected integers that are not negative, found " + to_string(**shape, 0));
    info.shape.push_back(*held);
  }
  const auto bytes = tensor_bytes(dtype ? dtype_bytes(*dtype) : 1, info.shape);
  if (!bytes)
    return in_tensor(path, name, "the size of shape " + to_string(**shape, 0) + " does not fit 64 bits");

  auto offsets = get_array(value, "data_offsets");
  if (!offsets) return in_tensor(path, name, offsets.error().message);
  const Json::Array& pair = (*offsets)->elements();
  const int64_t* begin = pair.size() == 2 ? pair[0].as_int() : nullptr;
  const int64_t* end = pair.size() == 2 ? pair[1].as_int() : nullptr;
  if (!begin || !end || *begin < 0 || *end < *begin)
    return in_tensor(path, name, "\"data_offsets\": expected [begin, end], found " + to_string(**offsets, 0));
  info.offset = static_cast<uint64_t>(*begin);
  info.bytes = static_cast<uint64_t>(*end - *begin);
  // With an unknown dtype the size is unknown, but it is 0 exactly where there are no elements.
  if (dtype ? info.bytes != *bytes : (info.bytes == 0) != (*bytes == 0))
    return in_tensor(path, name,
                     "expected " + (dtype || *bytes == 0 ? std::to_string(*bytes) : "more") +
                         " bytes for dtype " + *dtype_text + " and shape " + to_string(**shape, 0) +
                         ", found " + std::to_string(info.bytes));
  return info;
}

// Checks that the tensors cover [0, data_bytes) exactly: no overlap, no hole, and no data after the last
// tensor.
Status check_cover(const std::string& path, const std::vector<SafetensorsInfo>& tensors, uint64_t header_end,
                   uint64_t file_bytes) {
  std::vector<const SafetensorsInfo*> order;
  order.reserve(tensors.size());
  uint64_t data_bytes = 0;
  for (const SafetensorsInfo& tensor : tensors) {
    order.push_back(&tensor);
    data_bytes = std::max(data_bytes, tensor.offset + tensor.bytes);
  }
  if (header_end + data_bytes != file_bytes)
    return corrupt(path,
                   "expected " + std::to_string(header_end + data_bytes) + " bytes, found " +
                       std::to_string(file_bytes) +
                       (file_bytes < header_end + data_bytes ? " (the file is truncated: download it again)"
                                                             : " (data without a tensor)"));
  std::sort(order.begin(), order.end(), [](const SafetensorsInfo* a, const SafetensorsInfo* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  uint64_t covered = 0;
  for (const SafetensorsInfo* tensor : order) {
    if (tensor->offset != covered)
      return in_tensor(path, tensor->name,
                       "expected its data at offset " + std::to_string(covered) + ", found " +
                           std::to_string(tensor->offset) +
                           (tensor->offset < covered ? " (tensors overlap)" : " (a hole in the data)"));
    covered += tensor->bytes;
  }
  return ok();
}

}  // namespace

std::string_view dtype_name(TensorDType dtype) { return dtypes[static_cast<size_t>(dtype)].name; }
uint64_t dtype_bytes(TensorDType dtype) { return dtypes[static_cast<size_t>(dtype)].bytes; }

Result<std::string> weights_in(const std::string& folder) {
  const std::string single = folder + "/model.safetensors", index = single + ".index.json";
  if (file_exists(single)) return single;
  if (file_exists(index)) return index;
  STW_ASSIGN(names, files_in(folder, ".safetensors"));
  if (names.size() > 1)
    return Error{Code::bad_argument, folder +
                                         ": expected model.safetensors, model.safetensors.index.json or one "
                                         "other .safetensors file, found " +
                                         std::to_string(names.size()) + ", " + names[0] + " the first"};
  if (names.empty()) {
    STW_TRY(check_absent_weights(folder));
    return std::string();
  }
  if (names[0] == "adapter_model.safetensors")
    return Error{Code::corrupt,
                 folder +
                     ": has the weights of adapters alone (adapter_model.safetensors); download the model's "
                     "too, or give the config.json alone (--from-scratch) to begin with random ones"};
  if (const size_t of = names[0].rfind("-of-");
      of != std::string::npos && of >= 5 &&
      names[0].find_first_not_of("0123456789", of + 4) == names[0].size() - 12)
    return corrupt(folder + "/" + names[0],
                   "one of several files of weights, and the others and model.safetensors.index.json are not "
                   "there; download them again");
  return folder + "/" + names[0];
}

Result<SafetensorsReader> SafetensorsReader::open(const std::string& path) {
  SafetensorsReader reader;
  if (is_directory(path)) {
    STW_ASSIGN(weights, weights_in(path));
    if (weights.empty())
      return Error{Code::io_error,
                   path + ": expected model.safetensors or model.safetensors.index.json in this folder"};
    return open(weights);
  } else if (path.ends_with(".index.json")) {
    STW_TRY(reader.add_shards(path));
  } else {
    STW_TRY(reader.add_file(path));
  }
  reader.index_names();
  return reader;
}

Status SafetensorsReader::add_file(const std::string& path) {
  STW_ASSIGN(file, File::open(path));
  if (const std::string kind = kind_of_download(file); !kind.empty()) return corrupt(path, kind);
  if (file.size() < 8)
    return corrupt(path, "expected at least 8 bytes, found " + std::to_string(file.size()));
  uint64_t header_bytes = 0;
  STW_TRY(file.read(0, &header_bytes, 8));
  if (header_bytes > largest_header)
    return corrupt(path, "expected a safetensors file, with a header of at most " +
                             std::to_string(largest_header) + " bytes, found a length of " +
                             std::to_string(header_bytes));
  if (header_bytes > file.size() - 8)
    return corrupt(path, "expected at least " + std::to_string(8 + header_bytes) +
                             " bytes for the header, found " + std::to_string(file.size()) +
                             " (the file is truncated: download it again)");
  std::string text(header_bytes, '\0');
  STW_TRY(file.read(8, text.data(), header_bytes));
  if (!text.starts_with('{'))
    return corrupt(path, "expected a safetensors file, with a header that starts with {");
  auto header = parse_json(text);
  if (!header) return corrupt(path, "header: " + header.error().message);

  std::vector<SafetensorsInfo> found;
  for (const auto& [name, value] : header->members()) {
    if (name == metadata_key) {
      for (const auto& [key, entry] : value.members()) {
        if (!entry.is_string()) return corrupt(path, "__metadata__: \"" + key + "\": expected a string");
        if (files_.empty()) metadata_.emplace_back(key, *entry.as_string());
      }
      if (!value.is_object()) return corrupt(path, "__metadata__: expected an object");
      continue;
    }
    STW_ASSIGN(info, parse_tensor(path, name, value));
    found.push_back(std::move(info));
  }
  STW_TRY(check_cover(path, found, 8 + header_bytes, file.size()));
  for (SafetensorsInfo& info : found) {
    info.offset += 8 + header_bytes;
    info.file = files_.size();
    tensors_.push_back(std::move(info));
  }
  files_.push_back(std::move(file));
  return ok();
}

Status SafetensorsReader::add_shards(const std::string& index_path) {
  STW_ASSIGN(text, read_text(index_path, index_limit));
  if (const std::string kind = kind_of_download(text, text.size()); !kind.empty())
    return corrupt(index_path, kind);
  auto index = parse_python_json(text);
  if (!index) return corrupt(index_path, index.error().message);
  auto weight_map = get_object(*index, "weight_map");
  if (!weight_map) return corrupt(index_path, weight_map.error().message);

  const size_t slash = index_path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : index_path.substr(0, slash + 1);
  std::map<std::string, std::string, std::less<>> shard_of;  // tensor -> path
  std::set<std::string> shards;                              // paths, sorted
  for (const auto& [name, shard] : (*weight_map)->members()) {
    const std::string* file_name = shard.as_string();
    // A name, not a path: an index must not reach outside its folder.
    if (!file_name || file_name->empty() ||
        file_name->find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      return corrupt(index_path, "weight_map: \"" + name + "\": expected the name of a file, found " +
                                     to_string(shard, 0));
    shard_of.emplace(name, folder + *file_name);
    shards.insert(folder + *file_name);
  }
  for (const std::string& path : shards)
    if (!file_exists(path))
      return corrupt(index_path, "names " + path + ", which is not there; download it too");
  for (const std::string& path : shards) STW_TRY(add_file(path));
  std::erase_if(tensors_, [&](const SafetensorsInfo& tensor) {
    const auto entry = shard_of.find(tensor.name);
    if (entry == shard_of.end() || entry->second != path_of(tensor)) return true;
    shard_of.erase(entry);
    return false;
  });
  if (!shard_of.empty())
    return corrupt(index_path, "tensor \"" + shard_of.begin()->first + "\": expected in " +
                                   shard_of.begin()->second + ", which does not have it");
  return ok();
}

// Removes the prefixes that PyTorch adds to the names of compiled models (_orig_mod.) and of models wrapped
// to train on several devices (module.).
void SafetensorsReader::unwrap_names() {
  constexpr std::string_view compiled = "_orig_mod.", wrapped = "module.";
  for (SafetensorsInfo& tensor : tensors_)
    for (size_t at;
         (at = tensor.name.find(compiled)) != std::string::npos && (at == 0 || tensor.name[at - 1] == '.');)
      tensor.name.erase(at, compiled.size());
  const auto is_wrapped = [&](const SafetensorsInfo& tensor) { return tensor.name.starts_with(wrapped); };
  if (tensors_.empty() || !std::all_of(tensors_.begin(), tensors_.end(), is_wrapped)) return;
  for (SafetensorsInfo& tensor : tensors_) tensor.name.erase(0, wrapped.size());
}

void SafetensorsReader::index_names() {
  unwrap_names();
  for (size_t index = 0; index < tensors_.size(); ++index) names_.emplace(tensors_[index].name, index);
}

const SafetensorsInfo* SafetensorsReader::find(std::string_view name) const {
  const auto entry = names_.find(name);
  return entry == names_.end() ? nullptr : &tensors_[entry->second];
}

Status SafetensorsReader::read(const SafetensorsInfo& tensor, uint64_t offset,
                               std::span<std::byte> out) const {
  if (offset > tensor.bytes || out.size() > tensor.bytes - offset)
    return Error{Code::bad_argument, path_of(tensor) + ": tensor \"" + tensor.name + "\" has " +
                                         std::to_string(tensor.bytes) + " bytes; asked for " +
                                         std::to_string(out.size()) + " at " + std::to_string(offset)};
  return files_[tensor.file].read(tensor.offset + offset, out.data(), out.size());
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path,
                                                    const std::vector<SafetensorsEntry>& entries,
                                                    const SafetensorsMetadata& metadata) {
  const auto refuse = [&](const std::string& message) {
    return Error{Code::bad_argument, path + ": " + message};
  };
  std::set<std::string_view> names;
  Json::Object header;
  header.reserve(entries.size() + 1);
  if (!metadata.empty()) {
    Json held = Json::object();
    for (const auto& [key, value] : metadata) held.set(key, value);
    header.emplace_back(metadata_key, std::move(held));
  }
  uint64_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name == metadata_key || !names.insert(entry.name).second)
      return refuse("the tensor name \"" + entry.name + "\" is reserved or appears twice");
    const auto bytes = tensor_bytes(dtype_bytes(entry.dtype), entry.shape);
    const uint64_t begin = position;
    if (!bytes || __builtin_add_overflow(position, *bytes, &position) || position > INT64_MAX)
      return refuse("tensor \"" + entry.name + "\": its shape is negative or too large");
    Json shape = Json::array();
    for (const int64_t dimension : entry.shape) shape.push(dimension);
    Json tensor = Json::object();
    tensor.set("dtype", dtype_name(entry.dtype)).set("shape", std::move(shape));
    tensor.set("data_offsets", Json(Json::Array{begin, position}));
    header.emplace_back(entry.name, std::move(tensor));
  }
  std::string text = to_string(Json(std::move(header)), 0);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > largest_header)
    return refuse("the header would have " + std::to_string(text.size()) + " bytes, the format allows " +
                  std::to_string(largest_header));
  STW_ASSIGN(writer, FileWriter::create(path));
  const uint64_t header_bytes = text.size();
  STW_TRY(writer.write(&header_bytes, 8));
  STW_TRY(writer.write(text.data(), text.size()));
  return SafetensorsWriter(std::move(writer), position);
}

Status SafetensorsWriter::write(std::span<const std::byte> data) {
  if (data.size() > missing_)
    return Error{Code::bad_argument, writer_.path() + ": " + std::to_string(data.size()) +
                                         " bytes were written where " + std::to_string(missing_) +
                                         " are missing"};
  STW_TRY(writer_.write(data.data(), data.size()));
  missing_ -= data.size();
  return ok();
}

Status SafetensorsWriter::finish() {
  if (missing_ > 0)
    return Error{Code::bad_state,
                 writer_.path() + ": finished while " + std::to_string(missing_) + " bytes are missing"};
  return writer_.finish();
}

}  // namespace stw
