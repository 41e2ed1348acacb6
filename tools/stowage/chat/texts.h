// String functions of templates, which follow Python's.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/value.h"

namespace command::chat {

bool is_white(uint32_t code);  // Python's isspace
// Strips white space, or the given characters, from the ends.
std::string stripped(std::string_view text, const std::optional<std::string>& given, bool at_begin,
                     bool at_end);
// `most`: the largest number of splits; negative: no limit. Without `by` the text is split at runs of white
// space.
List split(const std::string& text, const std::optional<std::string>& by, int64_t most);
List split_from_end(const std::string& text, const std::optional<std::string>& by, int64_t most);
// Splits at all line ends that Python knows. `keeps_ends` keeps them in the lines.
List lines_of(const std::string& text, bool keeps_ends = false);
std::string replaced(const std::string& text, const std::string& from, const std::string& to, int64_t most);
int64_t count_of(const std::string& part, const std::string& text);
std::string joined(const List& list, const std::string& by);
// Whether the text begins (or ends) with `affix`, or with one of a tuple.
bool any_affix(const std::string& text, const Value& affix, bool at_begin);
// Puts `by` before every line. `first` and `blank` decide on the first line and on blank lines.
std::string indented(const std::string& text, const std::string& by, bool first, bool blank);

}  // namespace command::chat
