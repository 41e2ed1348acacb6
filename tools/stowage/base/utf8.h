// UTF-8 as RFC 3629 defines it, for names that are only bytes: paths, and what a model generates. planner/base/utf8.h tells the same
// lengths; the command includes nothing of the library but its public header, which is no place for them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace command {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// Bytes of the sequence that `text`, which is not empty, begins with; 0 where there is none.
size_t utf8_length(std::string_view text);
// `code` is at most U+10FFFF and no surrogate.
void append_utf8(std::string& text, uint32_t code);
// With the replacement character for every byte at which `length_of` finds no sequence.
std::string with_replacements(std::string_view text, size_t (*length_of)(std::string_view));
// Removes whole characters from the beginning of `bytes` and returns them. A character whose last bytes are missing stays, unless these bytes are
// all that there are. U+FFFD stands for bytes that are no character: once for as many as could begin one, as Unicode recommends and Rust does.
std::string take_characters(std::string& bytes, bool is_all);
// The first so many characters, and … where there are more: what a message quotes of a file that may be all of it.
std::string shortened(std::string_view text, size_t most = 40);
inline std::string valid_utf8(std::string_view text) { return with_replacements(text, utf8_length); }

}  // namespace command
