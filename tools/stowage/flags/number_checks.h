// Checks of the numbers that flags accept. CLI11 wraps, saturates or rounds numbers that do not fit; these
// checks refuse them and say what was expected.
#pragma once
#include <cstdint>

namespace CLI {  // not included: CLI11's headers take most of the time to compile
class Validator;
}

namespace command {

// Digits only; from `low` to `high`, both inclusive.
CLI::Validator whole_number(uint64_t low, uint64_t high = UINT64_MAX);
inline constexpr uint32_t any_uint32 = UINT32_MAX;
CLI::Validator positive();  // a whole number of at least 1

// From `low` to `high`, both inclusive.
CLI::Validator number_in(double low, double high);
// not_negative accepts numbers from zero to `most`, above_zero those above zero. The number must be finite in
// fp32, in which the kernels compute. For above_zero, it must also not round to zero there.
inline constexpr double any_fp32 = 0x1.fffffep127;
CLI::Validator not_negative(double most = any_fp32);
CLI::Validator above_zero(double most = any_fp32);

// The library's limit for learning rates and weight decays.
inline constexpr double largest_rate = 1e6;

}  // namespace command
