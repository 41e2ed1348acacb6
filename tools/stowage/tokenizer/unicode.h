// Classes of characters, as tokenizers mean them.
#pragma once
#include <cstdint>
#include <string_view>

namespace command {

// The character that UTF-8 text, which is not empty, begins with.
struct Character {
  uint32_t code;
  size_t bytes;
};
Character first_character(std::string_view text);
// The one that it ends with.
Character last_character(std::string_view text);

bool is_numeric(uint32_t code);    // Nd, Nl, No
bool is_space(uint32_t code);      // White_Space
bool is_of_word(uint32_t code);    // letters, marks, digits, what connects them

}  // namespace command
