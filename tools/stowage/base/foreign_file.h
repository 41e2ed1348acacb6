// Recognises files that are not UTF-8 text by their first bytes, and names the command that converts them to
// text.
#pragma once
#include <string>
#include <string_view>

namespace command {

// Throws a Failure if `content` is text in UTF-16 or UTF-32, or a file of another program (Parquet, gzip,
// pickle …). The beginning of the file is enough.
void refuse_foreign_file(std::string_view content, const std::string& path);

// Throws a Failure that names the line if `content`, a whole file, is not UTF-8.
void require_utf8_file(std::string_view content, const std::string& path);

// shell_word() writes a word of a shell command, in quotes if needed. python_string() writes a Python string
// inside a shell command in double quotes.
std::string shell_word(const std::string& word);
std::string python_string(const std::string& text);

// The end of a message about a text that is not UTF-8: its likely encoding and how to convert it. `name` is
// its file, if it has one.
std::string encoding_advice(std::string_view text, const std::string& name);

}  // namespace command
