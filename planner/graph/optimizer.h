// The table of optimizers. A row says which rule updates a parameter. A rule says which op computes the
// update, and which states the update keeps. To add an optimizer, add its row here, its ops to
// planner/graph/operands.h and planner/graph/ops/update.cpp, its kernels, and the calls that connect them in
// src/execute/execute.cpp.
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
  // In the order of the op's outputs after parameter and master. 32-bit states become the kernel's arguments
  // in this order: UpdateArgs::first, UpdateArgs::second. A rule that has only a second state leaves the
  // first entry empty.
  std::array<StateTensor, 4> states{};
  // A parameter may be updated in parts, cut at multiples of kernels::quantile_block.
  bool is_elementwise = true;
};

// The settings of a run, unless the user gives others.
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

// Whether the states of a parameter have 8 bits. The states of small tensors and of embeddings always have 32
// bits.
bool keeps_8bit_states(const Tensor& parameter, const ParameterUse& use, const Numerics& numerics);

}  // namespace stw
