// Numbers as Python reads, rounds and divides them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace command::chat {

// int(text, base) and float(text): white space around it, underscores between digits, digits of any script. Nothing: Python raises a ValueError.
// Throws a TemplateError if a whole number has more than 64 bits.
std::optional<int64_t> read_whole(const std::string& text, int64_t base);
std::optional<double> read_real(const std::string& text);
// int(number). Throws a TemplateError if it has more than 64 bits, or is infinite; nothing if it is not a number.
std::optional<int64_t> whole_part(double number);

// round(number, digits): to the nearest number of so many decimal digits; of two to the even one.
double rounded(double number, int64_t digits);
int64_t rounded(int64_t number, int64_t digits);

// a // b and a % b of numbers that are not whole.
double floor_quotient(double a, double b);
double floor_remainder(double a, double b);

}  // namespace command::chat
