#include "planner/base/figures.h"

#include <charconv>

namespace stw {

std::string fixed_point(double value, int decimals) {
  char text[400];  // the largest double has 309 digits
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals).ptr};
}

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string human_bytes(uint64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 40) return fixed_point(b / static_cast<double>(uint64_t{1} << 40), 2) + " TiB";
  if (bytes >= uint64_t{1} << 30) return fixed_point(b / (1u << 30), 2) + " GiB";
  if (bytes >= 1u << 20) return fixed_point(b / (1u << 20), 2) + " MiB";
  if (bytes >= 1u << 10) return fixed_point(b / 1024, 1) + " KiB";
  return std::to_string(bytes) + " B";
}

std::string human_count(uint64_t count) {
  const double d = static_cast<double>(count);
  if (count >= 1000000000) return fixed_point(d / 1e9, 2) + " B";
  if (count >= 1000000) return fixed_point(d / 1e6, 2) + " M";
  return grouped(count);
}

std::string human_duration(double seconds) {
  return seconds >= 1 ? fixed_point(seconds, 2) + " s" : fixed_point(seconds * 1000, 2) + " ms";
}

std::string grouped(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace stw
