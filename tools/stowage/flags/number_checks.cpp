#include "flags/number_checks.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace command {
namespace {

std::string expected(const std::string& what, const std::string& found) {
  return fmt::format("expected {}, found \"{}\"", what, found);
}

std::optional<double> read_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

CLI::Validator fp32_number(const std::string& what, bool zero, double most) {
  return CLI::Validator(
      [what, zero, most](std::string& text) -> std::string {
        const auto value = read_number(text);
        if (!value || *value < 0 || (*value == 0 && !zero)) return expected(what, text);
        if (most<any_fp32&& * value> most) return expected(fmt::format("{}, at most {}", what, most), text);
        const float kept = static_cast<float>(*value);
        return std::isfinite(kept) && (kept > 0 || *value == 0)
                   ? ""
                   : expected(what + " that fp32 can hold", text);
      },
      "", "");
}

}  // namespace

CLI::Validator whole_number(uint64_t low, uint64_t high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        uint64_t value = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool digits = !text.empty() && end == text.data() + text.size();
        if (digits && problem == std::errc() && value >= low && value <= high) return "";
        const bool bounded = high != UINT64_MAX || (digits && problem == std::errc::result_out_of_range);
        return expected(
            fmt::format("a whole number from {}{}", low, bounded ? fmt::format(" to {}", high) : ""), text);
      },
      "", "");
}

CLI::Validator positive() { return whole_number(1); }

CLI::Validator number_in(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        const auto value = read_number(text);
        return value && *value >= low && *value <= high
                   ? ""
                   : expected(fmt::format("a number from {} to {}", low, high), text);
      },
      "", "");
}

CLI::Validator not_negative(double most) { return fp32_number("a number from 0 on", true, most); }

CLI::Validator above_zero(double most) { return fp32_number("a number above 0", false, most); }

}  // namespace command
