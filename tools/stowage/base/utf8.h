// UTF-8 as RFC 3629 defines it, for strings that may be any bytes, such as paths and the output of a model.
// planner/base/utf8.h computes the same lengths. The command cannot use it, because it includes only the
// public header.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace command {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// Bytes of the sequence at the beginning of `text`; 0 if there is none. `text` is not empty.
size_t utf8_length(std::string_view text);
// `code` is at most U+10FFFF and not a surrogate.
void append_utf8(std::string& text, uint32_t code);
// Replaces every byte at which `length_of` finds no sequence with the replacement character.
std::string with_replacements(std::string_view text, size_t (*length_of)(std::string_view));
// Removes complete characters from the beginning of `bytes` and returns them. An incomplete character at the
// end stays, unless `is_all` says that no more bytes will come. Invalid bytes become U+FFFD, one for each
// maximal subpart, as Unicode recommends and Rust does.
std::string take_characters(std::string& bytes, bool is_all);
// The first `most` characters, followed by … if there are more. Messages use it to quote files, whose text
// may be long.
std::string shortened(std::string_view text, size_t most = 40);
inline std::string valid_utf8(std::string_view text) { return with_replacements(text, utf8_length); }

}  // namespace command
