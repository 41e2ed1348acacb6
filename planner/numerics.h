// Numerics are requested, never decided by the planner: they change the trained bits and are hashed into checkpoints.
#pragma once
#include <cstdint>

#include "planner/tensor.h"

namespace stw {

enum class Precision : uint8_t { fp32, bf16 };
enum class Optimizer : uint8_t { adamw };

struct Numerics {
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adamw;
  int state_bits = 32;   // 8: block-wise, for tensors that are large enough (update.h)
  bool exact = true;     // contract E3
  bool operator==(const Numerics&) const = default;
};

inline const char* name_of(Precision p) { return p == Precision::fp32 ? "fp32" : "bf16"; }
inline const char* name_of(Optimizer) { return "adamw"; }
inline Format compute_format(Precision p) { return p == Precision::fp32 ? Format::f32 : Format::bf16; }

}  // namespace stw
