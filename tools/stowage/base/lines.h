// Lines of a text, for files with one item a line.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

namespace command {

inline bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Removes the byte-order mark that some editors put at the beginning. It is not part of the text.
inline std::string_view without_mark(std::string_view content) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (content.starts_with(mark)) content.remove_prefix(mark.size());
  return content;
}

// Calls line(number, text) for each line until it returns false. Numbers start at 1.
template <class Line>
void for_all_lines(std::string_view content, const Line& line) {
  content = without_mark(content);
  for (uint64_t number = 1; !content.empty(); ++number) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view here = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (!line(number, here)) return;
  }
}

// The same, without blank lines.
template <class Line>
void for_lines(std::string_view content, const Line& line) {
  for_all_lines(content,
                [&](uint64_t number, std::string_view here) { return is_blank(here) || line(number, here); });
}

}  // namespace command
