// How files write labels: as names, as numbers, and as lists in one field.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// The word without blanks around it.
std::string_view without_blanks(std::string_view word);
// The word in lower case.
std::string without_case(std::string_view word);
// The word without what a reader does not see: blanks around it, their number, case, Unicode form, and
// invisible characters. Words that look alike give the same text.
std::string as_it_looks(std::string_view word);

// The value of a whole number in digits alone.
std::optional<uint64_t> whole_number_of(std::string_view word);
// The value of a finite number. The word may have quotes and blanks around it, a sign, and a comma as decimal
// sign. A comma that may also separate thousands, as in "1,234", gives nothing.
std::optional<double> real_number_of(std::string_view word);
// Whether the word is a number for people: real_number_of, or with commas between thousands, or in percent.
bool looks_like_number(std::string_view word);
// Why real_number_of gives nothing for a word that looks like a number, and what to write. Else empty.
std::string why_unread(std::string_view word);
// Whether programs write this word in place of a missing number.
bool stands_for_no_number(std::string_view word);
// The truth of 0, 1, false or true.
std::optional<bool> truth_of_word(std::string_view word);

// The elements of a list that is written in one field, as Python, JSON or NumPy writes it: ["a", "b"],
// ('a', 'b') or [1 0 1]. Names have quotes. Nothing if the field is no such list.
std::optional<std::vector<std::string>> written_list(std::string_view field);

}  // namespace command
