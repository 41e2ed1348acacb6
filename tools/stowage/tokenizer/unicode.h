// Classes of characters, as tokenizers define them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace command {

// Throws a Failure that begins with the name.
void require_utf8(std::string_view text, const std::string& name);

// The first character of non-empty UTF-8 text. If the text is not valid UTF-8, U+FFFD with a length of one
// byte.
struct Character {
  uint32_t code;
  size_t bytes;
};
Character first_character(std::string_view text);
// The last character.
Character last_character(std::string_view text);

// Limit on the length of the text that a tokenizer's steps make of `text`. Beyond it, the steps throw. The
// steps of an ordinary tokenizer.json make at most a few times the length.
inline size_t longest_of(std::string_view text) { return 64 * text.size() + 65536; }
struct TooMuchText {};

bool is_all_ascii(std::string_view text);

bool is_numeric(uint32_t code);    // Nd, Nl, No
bool is_space(uint32_t code);      // White_Space
bool is_of_word(uint32_t code);    // letters, marks, digits, connector punctuation
bool is_ideograph(uint32_t code);  // in the blocks that BERT treats as Chinese
// These classes follow the tables of Hugging Face's library, which are those of Unicode 8 and 9.
bool is_punctuation(
    uint32_t code);  // P, and ASCII characters that are neither letters, digits, controls nor space
bool is_control(uint32_t code);     // Cc, Cf, Co
bool is_nonspacing(uint32_t code);  // Mn
bool is_mark(uint32_t code);        // M
// normalization leaves the character alone, although newer tables would change it
bool has_no_form(uint32_t code);
uint32_t lowercase_of(uint32_t code);  // U+0130 has a longer lowercase form; this is its first character
// The text in the form NFKC, without characters that programs ignore, such as those of no width. Text that is
// not UTF-8 stays as it is.
std::string compatible_form(std::string_view text);

}  // namespace command
