// Numerics are requested, never decided by the planner: they change the trained bits and are hashed into checkpoints.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/tensor.h"

namespace stw {

enum class Precision : uint8_t { fp32, bf16, fp16 };
inline constexpr int precision_count = 3;
enum class Optimizer : uint8_t { adamw, sgd, lion, muon, adafactor };
inline constexpr int optimizer_count = 5;

// Settings of all parameters that a pattern names (parameter_groups.h). What is not set stays as it is.
struct ParameterGroup {
  std::string pattern;
  std::optional<bool> frozen;    // neither gradient nor state, and not updated
  std::optional<double> rate;    // factor of the learning rate
  std::optional<double> decay;   // weight decay
  std::optional<int> state_bits; // 32: although the others' states have 8
  bool operator==(const ParameterGroup&) const = default;
};

struct Numerics {
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adamw;
  int state_bits = 32;   // 8: block-wise, for tensors that are large enough (optimizer.h)
  bool exact = true;     // contract E3
  std::vector<ParameterGroup> groups;   // later ones win
  GraphInputs inputs;    // beside tokens and targets
  bool operator==(const Numerics&) const = default;
};

inline constexpr const char* precision_names[precision_count] = {"fp32", "bf16", "fp16"};
inline const char* name_of(Precision p) { return precision_names[static_cast<size_t>(p)]; }
inline Format compute_format(Precision p) {
  constexpr Format formats[precision_count] = {Format::f32, Format::bf16, Format::f16};
  return formats[static_cast<size_t>(p)];
}
// How the fp32 master of a parameter is kept beside its compute copy.
inline constexpr const char* master_names[precision_count] = {"none", "split", "fp32"};

}  // namespace stw
