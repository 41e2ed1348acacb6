#include "base/downloads.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/failure.h"
#include "base/files.h"

namespace command {
namespace {

constexpr size_t largest_message = 65536;  // bytes of an error message
constexpr size_t message_start = 64;       // bytes in which such a message names itself

bool begins_with(std::string_view text, std::string_view word) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [&](char a, char b) { return a == lower(b); });
}

}  // namespace

Download kind_of_download(std::string_view beginning, size_t size) {
  if (size == 0) return Download::empty;
  if (beginning.starts_with("version https://git-lfs.github.com/spec/")) return Download::pointer;
  const std::string_view text =
      beginning.substr(std::min(beginning.find_first_not_of(" \t\r\n"), beginning.size()));
  if (begins_with(text, "<!doctype") || begins_with(text, "<html") || begins_with(text, "<?xml"))
    return Download::web_page;
  const bool says_error = text.find("\"error\"") < message_start || text.find("\"message\"") < message_start;
  return text.starts_with('{') && says_error && size < largest_message ? Download::error_message
                                                                       : Download::none;
}

std::string description_of(Download kind) {
  switch (kind) {
    case Download::empty: return "damaged: an empty file; download it again";
    case Download::pointer:
      return "a pointer of Git LFS in place of the file: run git lfs pull where it was cloned";
    case Download::web_page:
      return "a web page in place of the file: the download failed (access denied, or a wrong address); "
             "download it again";
    case Download::error_message:
      return "an error message in place of the file: the download failed; download it again";
    case Download::none: break;
  }
  return "";
}

std::string read_model_file(const std::string& path) {
  auto text = read_text_if_there(path);
  if (!text) return read_text(path);  // throws: there is no such file
  if (const Download kind = kind_of_download(*text, text->size()); kind != Download::none)
    throw Failure(exit_failed, fmt::format("{}: {}", path, description_of(kind)));
  return std::move(*text);
}

}  // namespace command
