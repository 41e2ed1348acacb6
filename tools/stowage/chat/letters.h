// Capitals and small letters, digits, and what Python writes as it is. As Python's methods of str, also where a letter becomes several ("ß").
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
// At least one letter is small (a capital), and none is not. A letter of title case is neither.
bool is_all_lower(const std::string& text);
bool is_all_upper(const std::string& text);

bool is_printable(uint32_t code);
std::optional<int> decimal_value(uint32_t code);   // of digits of any script

}  // namespace command::chat
