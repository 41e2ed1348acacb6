// The lines of a text that say something, for files that have one thing a line.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

namespace command {

inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

// A byte-order mark in front, which some editors put there, says how a text is stored and is no part of it.
inline std::string_view without_mark(std::string_view content) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (content.starts_with(mark)) content.remove_prefix(mark.size());
  return content;
}

// line(number, text), numbers from 1 on, for every line until it returns false.
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

// The same for every line that is not blank.
template <class Line>
void for_lines(std::string_view content, const Line& line) {
  for_all_lines(content, [&](uint64_t number, std::string_view here) { return is_blank(here) || line(number, here); });
}

}  // namespace command
