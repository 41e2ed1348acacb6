// The lines of a file of words. Each has a word and what belongs to it, in columns; a blank line ends a text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace command {

struct WordLine {
  uint64_t number;  // of the line, from 1
  uint64_t text;    // lines without a blank one between them have the same number
  bool is_sign;     // begins with #: a comment, or a word
  bool is_first;    // no line of the text before it has a word for certain
  std::string_view content;
  std::vector<std::string_view> fields;
};

struct WordLines {
  std::vector<WordLine> lines;  // without blank lines and -DOCSTART-
  bool has_tabs = false;  // one tab between columns, and blanks belong to fields; else blanks of any kind
  size_t columns = 0;
};

// Finds how columns are separated, and cuts the lines at separators. Throws a Failure that names the line
// where the number of columns changes. A line that begins with # may have any number of columns if it comes
// before the words of its text.
WordLines word_lines(std::string_view content, const std::string& path);

}  // namespace command
