// What numbers a flag takes. CLI11 wraps, saturates or rounds what does not fit; these refuse it and say what was expected.
#pragma once
#include <cstdint>

namespace CLI {   // its headers cost more to compile than all else here
class Validator;
}

namespace command {

// Digits, from `low` to `high`, both included.
CLI::Validator whole_number(uint64_t low, uint64_t high = UINT64_MAX);
inline constexpr uint32_t any_uint32 = UINT32_MAX;
CLI::Validator positive();   // a whole number from 1

// From `low` to `high`, both included.
CLI::Validator number_in(double low, double high);
// Zero or more, and above zero: finite and not zero also in fp32, which the kernels compute in; at most `most`.
inline constexpr double any_fp32 = 0x1.fffffep127;
CLI::Validator not_negative(double most = any_fp32);
CLI::Validator above_zero(double most = any_fp32);

// Of learning rates and weight decays, as the library has it.
inline constexpr double largest_rate = 1e6;

}  // namespace command
