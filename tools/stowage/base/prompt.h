// Prompts and answers as people write them: text or token numbers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// The bytes of `text`, or the numbers in it, separated by spaces or commas. Throws a Failure if there are
// none, or if one is not below `vocabulary`.
std::vector<int32_t> parse_prompt(std::string_view text, bool bytes, uint64_t vocabulary);

// The text made safe for a terminal: control characters except line ends and tabs, and bytes that are not
// UTF-8, become U+FFFD.
std::string printable(std::string_view text);

}  // namespace command
