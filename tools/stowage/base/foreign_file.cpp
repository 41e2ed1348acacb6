#include "base/foreign_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/failure.h"
#include "base/files.h"
#include "base/utf8.h"

namespace command {
namespace {

// "a/b.jsonl" and "utf8" make "a/b.utf8.jsonl".
std::string renamed(const std::string& path, const std::string& with) {
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  const bool has_ending =
      dot != std::string::npos && dot > 0 && (slash == std::string::npos || dot > slash + 1);
  return has_ending ? path.substr(0, dot) + "." + with + path.substr(dot) : path + "." + with;
}

std::string without_ending(const std::string& path) {
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  return dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) ? path.substr(0, dot)
                                                                                     : path;
}

std::string conversion(const char* encoding, const std::string& name) {
  const std::string command = fmt::format("iconv -f {} -t UTF-8", encoding);
  if (!is_there(name) || !may_be_read_again(name)) return command;
  return fmt::format("{} {} > {}", command, shell_word(name), shell_word(renamed(name, "utf8")));
}

// The name that iconv has for the encoding; null if the text is neither UTF-16 nor UTF-32. Text without a
// byte-order mark is recognised by the zero bytes of its ASCII characters. At least one in `one_in`
// characters must be ASCII.
const char* wide_encoding(std::string_view text, size_t one_in) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv)) return "UTF-16";
  const size_t quads = std::min<size_t>(text.size(), 4096) / 4;
  size_t zeros[4] = {};
  for (size_t i = 0; i < 4 * quads; ++i) zeros[i % 4] += text[i] == '\0';
  const size_t even = zeros[0] + zeros[2], odd = zeros[1] + zeros[3];
  if (quads < 2 || one_in * (even + odd) < 2 * quads) return nullptr;
  if (zeros[3] == quads && zeros[2] > quads / 2 && zeros[0] == 0) return "UTF-32LE";
  if (zeros[0] == quads && zeros[1] > quads / 2 && zeros[3] == 0) return "UTF-32BE";
  return even == 0 ? "UTF-16LE" : odd == 0 ? "UTF-16BE" : nullptr;
}

// how: {0} is the file, {1} its name without the ending, {2} the file as a Python string
struct Foreign {
  std::string_view begin;
  const char *what, *how;
};

constexpr const char* by_pandas =
    "python3 -c \"import pandas; pandas.read_{}({{2}}).to_json({{1}} + '.jsonl', orient='records', "
    "lines=True)\"";

// If one beginning is a prefix of another, the longer one comes first.
Foreign found_in(std::string_view content) {
  using namespace std::string_view_literals;
  static const std::string parquet = fmt::format(fmt::runtime(by_pandas), "parquet"),
                           feather = fmt::format(fmt::runtime(by_pandas), "feather");
  const Foreign all[] = {
      {"PAR1"sv, "a Parquet file", parquet.c_str()},
      {"ARROW1"sv, "an Arrow file", feather.c_str()},
      {"\xFF\xFF\xFF\xFF"sv, "an Arrow stream",
       "python3 -c \"import datasets; datasets.Dataset.from_file({2}).to_json({1} + '.jsonl')\""},
      {"\x1F\x8B"sv, "compressed by gzip", "gzip -dk {0}"},
      {"\x28\xB5\x2F\xFD"sv, "compressed by zstd", "zstd -d {0}"},
      {"BZh"sv, "compressed by bzip2", "bzip2 -dk {0}"},
      {"\xFD"
       "7zXZ\0"sv,
       "compressed by xz", "xz -dk {0}"},
      {"\x04\x22\x4D\x18"sv, "compressed by lz4", "lz4 -d {0}"},
      {"7z\xBC\xAF\x27\x1C"sv, "a 7z archive", "7z x {0}"},
      {"\x93NUMPY"sv, "an array of NumPy",
       "python3 -c \"import numpy; numpy.load({2}).astype('<u2').tofile({1} + '.bin')\" (ids; '<u4' for a "
       "vocabulary above 65,536)"},
      {"Obj\x01"sv, "an Avro file", "write its records as JSON, one a line"},
      {"ORC"sv, "an ORC file",
       "python3 -c \"import pandas; pandas.read_orc({2}).to_json({1} + '.jsonl', orient='records', "
       "lines=True)\""},
      {"SQLite format 3\0"sv, "an SQLite database", "write its rows as JSON, one a line"},
      {"\x89HDF\r\n"sv, "an HDF5 file", "write its rows as JSON, one a line"},
      {"%PDF-"sv, "a PDF file", "pdftotext {0}"},
      {"version https://git-lfs.github.com/spec/v1"sv, "a pointer of Git LFS, not the file itself",
       "git lfs pull"},
  };
  for (const Foreign& one : all)
    if (content.starts_with(one.begin)) return one;
  if (content.starts_with("PK\x03\x04"sv)) {
    const auto has = [&](std::string_view name) { return content.find(name) != std::string_view::npos; };
    if (has("xl/"))
      return {"", "a workbook of Excel",
              "python3 -c \"import pandas; pandas.read_excel({2}).to_csv({1} + '.csv', index=False)\""};
    if (has("word/")) return {"", "a document of Word", "save it as text in UTF-8"};
    if (has(".npy"))
      return {"", "a .npz file of NumPy", "write one of its arrays as a .bin file of token ids"};
    if (has("data.pkl")) return {"", "a file of PyTorch", "write its content as JSON, one object a line"};
    return {"", "a zip archive", "unzip {0}"};
  }
  if (content.size() > 2 && content[0] == '\x80' && content[1] >= 2 && content[1] <= 5)
    return {"", "a pickle of Python", "write its content as JSON, one object a line"};
  if (content.size() > 9 && content.substr(3, 5) == "\0\0\0\0\0"sv && content[8] == '{')
    return {"", "a safetensors file of weights", "give it to --weights"};
  return {"", nullptr, nullptr};
}

}  // namespace

std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("-_./=+,:@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string python_string(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\\'                          ? "\\\\\\\\"
           : c == '\''                        ? "\\\\'"
           : c == '"' || c == '$' || c == '`' ? std::string("\\") + c
                                              : std::string(1, c);
  return out + "'";
}

std::string encoding_advice(std::string_view text, const std::string& name) {
  if (const char* const wide = wide_encoding(text, 32))
    return fmt::format("; it is {}: {}", wide, conversion(wide, name));
  size_t valid = 0;  // characters outside of ASCII
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    valid += length > 1;
    at += std::max<size_t>(length, 1);
  }
  if (valid > 0) return "; other characters of it are UTF-8, so it is damaged or cut off there";
  return fmt::format("; if it is Latin-1 or Windows-1252: {}", conversion("WINDOWS-1252", name));
}

void refuse_foreign_file(std::string_view content, const std::string& path) {
  if (const char* const wide = wide_encoding(content, 2))
    throw Failure(exit_failed,
                  fmt::format("{}: is {}, expected UTF-8: {}", path, wide, conversion(wide, path)));
  const Foreign found = found_in(content);
  if (!found.what) return;
  throw Failure(exit_failed,
                fmt::format("{}: is {}, expected text: {}", path, found.what,
                            fmt::format(fmt::runtime(found.how), shell_word(path),
                                        python_string(without_ending(path)), python_string(path))));
}

void require_utf8_file(std::string_view content, const std::string& path) {
  uint64_t line = 1;
  for (size_t at = 0; at < content.size();) {
    const size_t length = utf8_length(content.substr(at));
    if (length == 0)
      throw Failure(exit_failed,
                    fmt::format("{}, line {}: expected UTF-8, found the byte 0x{:02X}{}", path, line,
                                static_cast<unsigned char>(content[at]), encoding_advice(content, path)));
    line += content[at] == '\n';
    at += length;
  }
}

}  // namespace command
