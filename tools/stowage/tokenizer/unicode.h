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

bool is_all_ascii(std::string_view text);

bool is_numeric(uint32_t code);    // Nd, Nl, No
bool is_space(uint32_t code);      // White_Space
bool is_of_word(uint32_t code);    // letters, marks, digits, what connects them
bool is_ideograph(uint32_t code);  // in the blocks that BERT treats as Chinese
// By the tables of Hugging Face's library, which are those of Unicode 8 and 9.
bool is_punctuation(uint32_t code);    // P, and ASCII characters that are neither letters, digits, controls nor space
bool is_control(uint32_t code);        // Cc, Cf, Co
bool is_nonspacing(uint32_t code);     // Mn
bool is_mark(uint32_t code);           // M
bool has_no_form(uint32_t code);       // normalization leaves the character alone, although newer tables would not
uint32_t lowercase_of(uint32_t code);  // U+0130 has a longer lowercase, of which this is the first character

}  // namespace command
