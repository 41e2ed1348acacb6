#include "data/token_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/failure.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/utf8.h"

namespace command {

uint32_t token_type_number(const std::string& name) {
  return static_cast<uint32_t>(std::find(std::begin(token_types), std::end(token_types), name) -
                               std::begin(token_types));
}

size_t bytes_of_type(const std::string& name, uint64_t vocabulary) {
  return name == "auto"     ? static_cast<size_t>(token_bytes(vocabulary))
         : name == "int64"  ? 8
         : name == "uint16" ? 2
                            : 4;
}

namespace {

constexpr std::string_view numpy_magic = "\x93NUMPY";

// The parts of a NumPy array that are needed to join arrays. The library checks the joined array.
struct NumpyArray {
  std::string type;  // as its header writes it: "<u2"
  size_t width = 0;  // bytes of a number
  std::string_view data;
};

// The bytes of an array of one dimension. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
NumpyArray numpy_array(std::string_view content, const std::string& path) {
  const auto damaged = [&] {
    return Failure(exit_failed, fmt::format("{}: a NumPy array whose header is damaged", path));
  };
  if (content.size() < 12) throw damaged();
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(content[i])); };
  const size_t front = byte(6) == 1 ? 10 : 12,
               length = byte(8) | byte(9) << 8 | (byte(6) == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > content.size() - front) throw damaged();
  std::string header(content.substr(front, length));
  std::erase(header, ' ');
  std::replace(header.begin(), header.end(), '"', '\'');
  constexpr std::string_view key = "'descr':'";
  const size_t at = header.find(key), end = at == std::string::npos ? at : header.find('\'', at + key.size());
  if (end == std::string::npos || end == at + key.size()) throw damaged();
  NumpyArray array{header.substr(at + key.size(), end - at - key.size()), 0, content.substr(front + length)};
  const char digit = array.type.back();
  if (digit < '1' || digit > '8')
    throw Failure(exit_failed,
                  fmt::format("{}: a NumPy array of type \"{}\", whose numbers are not token ids", path,
                              shortened(array.type)));
  array.width = static_cast<size_t>(digit - '0');
  if (array.data.size() % array.width != 0 ||
      header.find(fmt::format("'shape':({},)", array.data.size() / array.width)) == std::string::npos)
    throw Failure(
        exit_failed,
        fmt::format("{}: expected a NumPy array of one dimension, with as many numbers as its header says",
                    path));
  return array;
}

// The header of such an array, as numpy.save writes it.
std::string numpy_header(const std::string& type, size_t count) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", type, count);
  header.append(63 - (header.size() + 10) % 64, ' ') += '\n';
  const auto byte = [&](size_t shift) { return static_cast<char>(header.size() >> shift & 255); };
  return std::string(numpy_magic) + '\x01' + '\x00' + byte(0) + byte(8) + header;
}

}  // namespace

std::string tokens_of_files(const DataSource& data, const Tokenization& tokenization,
                            std::optional<uint32_t> document_end, uint64_t vocabulary,
                            const std::string& token_type) {
  const bool has_ids = tokenization.kind() == Tokenization::Kind::ids;
  auto width = has_ids ? bytes_of_type(token_type, vocabulary) : static_cast<size_t>(token_bytes(vocabulary));
  std::string all, array_type;  // empty: no arrays
  for (size_t i = 0; i < data.files().size(); ++i) {
    const std::string& path = data.files()[i].path;
    std::string_view content = data.content(i);
    const bool is_array = has_ids && content.starts_with(numpy_magic);
    if (has_ids && i > 0 && is_array == array_type.empty())
      throw Failure(
          exit_failed,
          fmt::format("{}: {} a NumPy array, and {} {}; files of one kind are read together", path,
                      is_array ? "is" : "is not", data.files()[0].path, is_array ? "is not" : "is"));
    if (is_array && data.files().size() > 1) {
      const NumpyArray array = numpy_array(content, path);
      if (i > 0 && array.type != array_type)
        throw Failure(
            exit_failed,
            fmt::format(
                "{}: its ids are {}, and those of {} are {}; write them with one type: array.astype('{}')",
                path, shortened(array.type), data.files()[0].path, array_type, array_type));
      array_type = array.type, width = array.width, content = array.data;
    } else if (has_ids && !is_array && content.size() % width != 0) {
      throw Failure(exit_failed, fmt::format("{}: expected token ids of {} bytes each, found {} bytes", path,
                                             width, grouped(content.size())));
    }
    if (has_ids) all += content;
    else all += token_file(tokenization.encode(std::string(content), path), vocabulary);
    data.forget();
    if (!document_end || i + 1 == data.files().size()) continue;
    std::string end = token_file(std::vector<int32_t>{static_cast<int32_t>(*document_end)}, vocabulary);
    if (width < 4 && *document_end >> 8 * width != 0)
      throw Failure(exit_usage, fmt::format("--document-end {}: does not fit the ids of {} bits of {}",
                                            *document_end, 8 * width, path));
    end.resize(width, '\0');
    if (all.size() < width || all.compare(all.size() - width, width, end) != 0) all += end;
  }
  return array_type.empty() ? all : numpy_header(array_type, all.size() / width) + all;
}

}  // namespace command
