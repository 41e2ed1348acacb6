#include "src/files/file_kind.h"

#include <algorithm>

namespace stw {
namespace {

constexpr uint64_t probe_bytes = 512;

bool begins_with(std::string_view text, std::string_view word) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [&](char a, char b) { return a == lower(b); });
}

}  // namespace

std::string kind_of_download(std::string_view beginning, uint64_t size) {
  if (size == 0) return "empty: download it again";
  if (beginning.starts_with("version https://git-lfs.github.com/spec/"))
    return "a pointer of Git LFS in place of the file: run git lfs pull where it was cloned";
  const size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  const std::string_view text = beginning.substr(first);
  if (begins_with(text, "<!doctype") || begins_with(text, "<html") || begins_with(text, "<?xml"))
    return "a web page in place of the file: the download failed (access denied, or a wrong address); "
           "download it again";
  if (text.starts_with('{') && (text.find("\"error\"") < 64 || text.find("\"message\"") < 64) && size < 65536)
    return "an error message in place of the file: the download failed; download it again";
  return "";
}

std::string kind_of_download(const File& file) {
  std::string beginning(std::min(file.size(), probe_bytes), '\0');
  if (!file.read(0, beginning.data(), beginning.size())) return "";
  return kind_of_download(beginning, file.size());
}

}  // namespace stw
