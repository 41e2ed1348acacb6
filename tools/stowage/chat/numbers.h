// Reads, rounds and divides numbers as Python does.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace command::chat {

// int(text, base) and float(text). The text may have white space around the number, underscores between
// digits, and digits of any script. Returns nothing where Python raises a ValueError. Throws a TemplateError
// if an integer needs more than 64 bits.
std::optional<int64_t> read_integer(const std::string& text, int64_t base);
std::optional<double> read_real(const std::string& text);
// int(number). Throws a TemplateError if the result needs more than 64 bits or the number is infinite.
// Returns nothing for NaN.
std::optional<int64_t> whole_part(double number);

// round(number, digits): rounds to the given number of decimal digits, ties to even.
double rounded(double number, int64_t digits);
int64_t rounded(int64_t number, int64_t digits);

// a // b and a % b of floats.
double floor_quotient(double a, double b);
double floor_remainder(double a, double b);

}  // namespace command::chat
