// Files that are no text in UTF-8: how they are known by their first bytes, and the command that makes a text of them.
#pragma once
#include <string>
#include <string_view>

namespace command {

// Throws a Failure where `content`, of which the beginning is enough, is text in UTF-16 or UTF-32, or a file of another program (Parquet, gzip, pickle …).
void refuse_foreign_file(std::string_view content, const std::string& path);

// Throws a Failure that names the line where `content`, a whole file, is not UTF-8.
void require_utf8_file(std::string_view content, const std::string& path);

// A word of a command line, with quotes where it needs them; and a string of Python inside of a command in double quotes.
std::string shell_word(const std::string& word);
std::string python_string(const std::string& text);

// The end of a message about a text that is not UTF-8: what else it may be, and how to convert it. `name`: of its file, where it is one.
std::string encoding_advice(std::string_view text, const std::string& name);

}  // namespace command
