// Classes of characters, as tokenizers mean them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace command {

// Throws a Failure that begins with the name.
void require_utf8(std::string_view text, const std::string& name);

// The character that UTF-8 text, which is not empty, begins with; of other text U+FFFD, a byte long.
struct Character {
  uint32_t code;
  size_t bytes;
};
Character first_character(std::string_view text);
// The one that it ends with.
Character last_character(std::string_view text);

// What a tokenizer's steps may make of a text, or throw: no file makes more than a few times as much, unless it means harm.
inline size_t longest_of(std::string_view text) { return 64 * text.size() + 65536; }
struct TooMuchText {};

bool is_numeric(uint32_t code);    // Nd, Nl, No
bool is_space(uint32_t code);      // White_Space
bool is_of_word(uint32_t code);    // letters, marks, digits, what connects them

}  // namespace command
