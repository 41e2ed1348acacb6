// The op table: one row per kind of op. To add an op, name its operands (operands.h), and add its row
// (planner/graph/ops), its kernel (kernels/) and the call that connects them (src/execute/execute.cpp).
// Everything else, from liveness to the cost model, follows from the row.
#pragma once
#include <array>
#include <span>

#include "planner/base/result.h"
#include "planner/graph/graph.h"
#include "planner/graph/operands.h"

namespace stw {

class Differentiation;
class Inference;

// The amount of work of one execution of an op. `rows`: of all samples, or of a part of them if `part` is set
// (a tile, a chunk of the loss). `elements`: of a parameter, if an op of the update or a copy works on a part
// of it; 0: the whole parameter. `threads`: of a CPU; 0: CUDA kernels, which need other scratch memory.
struct Extent {
  int64_t samples, rows;
  int threads;
  int64_t elements = 0;
  bool part = false;
};
// `rows`: 0 for all.
Extent extent_of(const Graph& graph, const Op& op, int64_t samples, int64_t rows, int threads,
                 int64_t elements = 0);

// The cost of an op. `launches_before` extra kernels, which move `bytes_before` bytes, run before the op's
// own kernel.
struct Cost {
  uint64_t flops = 0, bytes = 0, bytes_before = 0, launches_before = 0;
  int head = 0;  // numbers of a head of attention; 0: another op
};

// An output that may take the memory of an input that no later op reads. Both are positions in the op's
// operand lists.
struct InPlace {
  int8_t output = -1, input = -1;
};

inline uint64_t no_workspace(const Graph&, const Op&, const Extent&) { return 0; }

struct OpRow {
  OpKind kind;
  const char* name;
  Cost (*cost)(const Graph&, const Op&, const Extent&);
  // Bytes of scratch memory of the CPU kernel and of the CUDA kernel.
  uint64_t (*cpu_workspace)(const Graph&, const Op&, const Extent&) = no_workspace;
  uint64_t (*cuda_workspace)(const Graph&, const Op&, const Extent&) = no_workspace;
  // Checks the shapes of the inputs, and sets the shapes of the outputs that the operand table does not say
  // (infer.h). Null: the operand table says all.
  Status (*infer)(Inference&) = nullptr;
  // Emits the gradient ops. Null: the op is not differentiable.
  void (*backward)(Differentiation&, const Op&) = nullptr;
  std::array<InPlace, 2> in_place{};  // tried in this order
  // Several ops of the kind that follow each other may be one instruction (program.h), as in PyTorch's
  // multi_tensor_apply.
  bool is_multi_tensor = false;
  // A row of outputs depends on that row of inputs alone, and sums over rows may be cut at multiples of
  // tile_unit(graph, part) (feed_forward.h).
  bool is_row_by_row = false;

  uint64_t workspace(const Graph& graph, const Op& op, const Extent& extent) const {
    return (extent.threads == 0 ? cuda_workspace : cpu_workspace)(graph, op, extent);
  }
};

const OpRow& op_row(OpKind kind);

// The rows of each family, planner/graph/ops/<family>.cpp.
extern const std::span<const OpRow> embedding_rows, norm_rows, linear_rows, adapter_rows, attention_rows,
    elementwise_rows, loss_rows, pooling_rows, update_rows, transfer_rows;

// Whether an instruction on a slice of a parameter (Extent::elements) uses only that slice of this tensor. It
// uses tensors of samples, sums of squares and kept rows as a whole.
bool has_slices(const Graph& graph, int tensor);
// Bytes of an operand at this extent. A part of a per-sample tensor counts the part's rows.
uint64_t operand_bytes(const Graph& graph, int tensor, const Extent& extent);
// Cost of an op that is limited by memory: it reads and writes every operand once, with `flops_per_element`
// for each element of the first one.
Cost streaming_cost(const Graph& graph, const Op& op, const Extent& extent, uint64_t flops_per_element);

}  // namespace stw
