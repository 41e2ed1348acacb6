// UTF-8 as RFC 3629 defines it, for names that are only bytes: paths, and what a model generates.
#pragma once
#include <string>
#include <string_view>

namespace command {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// Bytes of the sequence that `text`, which is not empty, begins with; 0 where there is none.
size_t utf8_length(std::string_view text);
// With the replacement character for every byte that belongs to no sequence.
std::string valid_utf8(std::string_view text);

}  // namespace command
