// Case, digits and printable characters, as Python's str methods define them, including letters that map to
// several ("ß").
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace command::chat {

std::string upper(const std::string& text);
std::string lower(const std::string& text);
std::string casefold(const std::string& text);
std::string swapcase(const std::string& text);
std::string capitalize(const std::string& text);
std::string title(const std::string& text);
// True if at least one letter is lowercase (uppercase) and no letter is of the other case. Titlecase letters
// count as neither.
bool is_all_lower(const std::string& text);
bool is_all_upper(const std::string& text);

bool is_printable(uint32_t code);
std::optional<int> decimal_value(uint32_t code);  // digits of any script

}  // namespace command::chat
