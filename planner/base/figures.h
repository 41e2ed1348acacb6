// Figures in a form for users, in the report and the pictures. The text does not depend on the host's locale.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace stw {

std::string fixed_point(double value, int decimals);        // "12.30"
std::string shortest(double value);                         // "0.1": parses to the same value
std::string human_bytes(uint64_t bytes);                    // "12.30 MiB"
std::string human_count(uint64_t count);                    // "124.44 M", "22,397"
std::string human_duration(double seconds);                 // "4.20 s", "31.00 ms"
std::string grouped(uint64_t count);                        // "12,897,484"
std::string joined(const std::vector<std::string>& words);  // "a, b, c"

}  // namespace stw
