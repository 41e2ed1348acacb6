// UTF-8 for strings that may be any bytes, such as paths and the output of a model.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/utf8.h"

namespace command {

using stw::append_utf8;
using stw::replacement_character;
using stw::utf8_length;

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
