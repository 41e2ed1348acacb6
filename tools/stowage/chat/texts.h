// What templates do to texts, as Python does.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/value.h"

namespace command::chat {

bool is_white(uint32_t code);   // as Python's isspace
// Without white space at its ends, or without the characters that are given.
std::string stripped(std::string_view text, const std::optional<std::string>& given, bool at_begin, bool at_end);
// `most`: how often; below 0: as often as there is something to do. By nothing: by white space, of which any amount is one.
List split(const std::string& text, const std::optional<std::string>& by, int64_t most);
List split_from_end(const std::string& text, const std::optional<std::string>& by, int64_t most);
// By all line ends that Python knows, which stay where `keeps_ends`.
List lines_of(const std::string& text, bool keeps_ends = false);
std::string replaced(const std::string& text, const std::string& from, const std::string& to, int64_t most);
int64_t count_of(const std::string& part, const std::string& text);
std::string joined(const List& list, const std::string& by);
// Whether it begins, or ends, with that, or with one of a tuple.
bool any_affix(const std::string& text, const Value& affix, bool at_begin);
// Every line begins with `by`; the first one, and blank ones, only where that is said.
std::string indented(const std::string& text, const std::string& by, bool first, bool blank);

}  // namespace command::chat
