#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

namespace command {
namespace {

__extension__ typedef unsigned __int128 Wide;

struct Unit {
  std::string_view name;  // lower case
  uint64_t bytes;
};

constexpr std::array<Unit, 10> units{{{"", 1},
                                      {"b", 1},
                                      {"kb", 1'000},
                                      {"mb", 1'000'000},
                                      {"gb", 1'000'000'000},
                                      {"tb", 1'000'000'000'000},
                                      {"kib", uint64_t{1} << 10},
                                      {"mib", uint64_t{1} << 20},
                                      {"gib", uint64_t{1} << 30},
                                      {"tib", uint64_t{1} << 40}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  // The number is mantissa / scale. Both stay below 2^64, so that the product with a unit fits 128 bits.
  uint64_t mantissa = 0, scale = 1;
  size_t at = 0, digits = 0;
  bool fraction = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !fraction)); ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    ++digits;
    if (__builtin_mul_overflow(mantissa, 10, &mantissa) ||
        __builtin_add_overflow(mantissa, static_cast<uint64_t>(text[at] - '0'), &mantissa))
      return std::nullopt;
    if (fraction && __builtin_mul_overflow(scale, 10, &scale)) return std::nullopt;
  }
  if (digits == 0 || text[at - 1] == '.') return std::nullopt;
  if (at < text.size() && text[at] == ' ') ++at;
  std::string name(text.substr(at));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.name == name; });
  if (unit == units.end()) return std::nullopt;
  const Wide bytes = Wide{mantissa} * unit->bytes / scale;
  if (bytes > std::numeric_limits<uint64_t>::max()) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::string human_bytes(uint64_t bytes) {
  static constexpr std::array<const char*, 5> names{"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  // From 1023.95 on, a value would be printed as 1024.0.
  for (; value >= 1023.95 && unit + 1 < names.size(); ++unit) value /= 1024;
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, names[unit]);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, names[unit]);
}

std::string exact_bytes(uint64_t bytes) {
  return bytes < 1024 ? human_bytes(bytes) : fmt::format("{} ({} bytes)", human_bytes(bytes), grouped(bytes));
}

std::string grouped(uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string human_count(double count) {
  if (!(count >= 999.5)) return fmt::format("{:.{}f}", count, count < 10 ? 1 : 0);
  static constexpr std::array<char, 4> names{'k', 'M', 'G', 'T'};
  size_t unit = 0;
  for (count /= 1000; count >= 999.5 && unit + 1 < names.size(); ++unit) count /= 1000;
  return fmt::format("{:.{}f}{}", count, count < 100 ? 1 : 0, names[unit]);
}

std::string human_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d {:02}h", whole / 86400, whole / 3600 % 24);
}

}  // namespace command
