// Numbers in the form that people write and read: bytes, counts, durations. Pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace command {

// "8GiB", "8 GB", "1.5GiB", "8589934592": whole bytes, rounded down. Units: B, KB to TB (powers of 1000), KiB
// to TiB (powers of 1024), in either case. Empty for other text, and if the result exceeds 64 bits.
std::optional<uint64_t> parse_bytes(std::string_view text);

std::string human_bytes(uint64_t bytes);    // "12.3 MiB"
std::string exact_bytes(uint64_t bytes);    // "12.3 MiB (12,897,484 bytes)"
std::string grouped(uint64_t count);        // "12,897,484"
std::string human_count(double count);      // "124.4M"
std::string human_seconds(double seconds);  // "1h 02m", "3m 20s", "4.2 s"

}  // namespace command
