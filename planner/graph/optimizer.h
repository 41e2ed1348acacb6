// The optimizers: one row each. A row says which rule updates a parameter; a rule, which states it keeps and which kernel
// it is. Whoever adds an optimizer adds its row here, its ops to planner/graph/op.h and planner/graph/ops/update.cpp, its kernels, and
// the calls that join both in src/execute/execute.cpp.
#pragma once
#include <array>
#include <cstdint>

#include "planner/graph/numerics.h"
#include "planner/graph/op.h"
#include "planner/graph/parameter_groups.h"

namespace stw {

inline constexpr int64_t state_block = 256;          // elements that share one absmax in 8-bit states
inline constexpr uint64_t smallest_8bit_tensor = 4096;

// What a state has one number for.
enum class StateShape : uint8_t { none, element, block, row, column };
struct StateTensor {
  const char* suffix = "";   // of the parameter's name
  Format format = Format::f32;
  StateShape shape = StateShape::none;
};

struct UpdateRule {
  OpKind kind;
  // In the order of the op's outputs behind parameter and master, which is that of the kernel's arguments: UpdateArgs::first, then second, wherever
  // there are numbers of 32 bits. A rule without the first has a hole there.
  std::array<StateTensor, 4> states{};
  bool is_elementwise = true;            // a parameter may be updated part by part, cut at multiples of state_block
};

// What a run takes where nothing is said.
struct OptimizerDefaults { double learning_rate, beta1, beta2, momentum, weight_decay; };

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
// The rule of an op that does.
const UpdateRule& update_rule(OpKind kind);

// 8-bit states are kept for matrices of hidden layers only: small tensors and embeddings stay in 32 bits.
bool keeps_8bit_states(const Tensor& parameter, const ParameterUse& use, const Numerics& numerics);

}  // namespace stw
