// The optimizers: one row each. A row says which rule updates a parameter. A rule says which states it keeps,
// and which kernel computes it. To add an optimizer, add its row here, its ops to planner/graph/op.h and
// planner/graph/ops/update.cpp, its kernels, and the calls that connect them in src/execute/execute.cpp.
#pragma once
#include <array>
#include <cstdint>

#include "planner/graph/numerics.h"
#include "planner/graph/op.h"
#include "planner/graph/parameter_groups.h"

namespace stw {

inline constexpr uint64_t smallest_8bit_tensor = 4096;

// The part of a parameter that one number of a state belongs to.
enum class StateShape : uint8_t { none, element, block, row, column };
struct StateTensor {
  const char* suffix = "";  // appended to the parameter's name
  Format format = Format::f32;
  StateShape shape = StateShape::none;
};

struct UpdateRule {
  OpKind kind;
  // In the order of the op's outputs after parameter and master. That is the order of the kernel's arguments:
  // UpdateArgs::first, then UpdateArgs::second, if they are 32-bit numbers. A rule that has only the second
  // leaves the first one empty.
  std::array<StateTensor, 4> states{};
  bool is_elementwise =
      true;  // a parameter may be updated in parts, cut at multiples of kernels::quantile_block
};

// A run's settings if the user sets none.
struct OptimizerDefaults {
  double learning_rate, beta1, beta2, momentum, weight_decay;
};

struct OptimizerRow {
  Optimizer optimizer;
  const char* name;
  bool has_8bit_states;
  OptimizerDefaults defaults;
  const UpdateRule& (*rule)(const Tensor& parameter, const ParameterUse& use, bool is_8bit);
};

const OptimizerRow& optimizer_row(Optimizer optimizer);
inline const char* name_of(Optimizer optimizer) { return optimizer_row(optimizer).name; }
// Whether the op updates a parameter.
bool is_update(OpKind kind);
// The rule of such an op.
const UpdateRule& update_rule(OpKind kind);

// 8-bit states are kept for matrices of hidden layers only. The states of small tensors and embeddings stay
// in 32 bits.
bool keeps_8bit_states(const Tensor& parameter, const ParameterUse& use, const Numerics& numerics);

}  // namespace stw
