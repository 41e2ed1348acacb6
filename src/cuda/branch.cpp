#include "src/cuda/branch.h"

#include <algorithm>

namespace stw::cuda {

namespace {

struct Span {
  uint64_t begin, end;
};  // byte range of the arena
using Spans = std::vector<Span>;

// The parts of the arena that an instruction reads and writes. A tensor that is cut into chunks counts as a
// whole.
struct Accesses {
  Spans reads, writes;
};

Accesses accesses_of(const Graph& graph, const Arena& arena, const Program& program, const Instruction& i) {
  Accesses a;
  const auto add = [&](const Operand& o, Spans& to) {
    if (o.buffer < 0) return;
    const Buffer& b = (o.persistent ? arena.persistent : program.buffers)[o.buffer];
    to.push_back({b.offset + o.offset, b.offset + b.bytes});
  };
  for (int k = 0; k < i.ops; ++k) {
    const Instruction one = op_alone(graph, i, k);
    for (int n = 0; n < one.inputs + one.outputs; ++n)
      add(program.operands[one.first_operand + n], n < one.inputs ? a.reads : a.writes);
  }
  add(i.workspace, a.writes);
  return a;
}

bool overlap(const Spans& some, const Spans& others) {
  return std::any_of(some.begin(), some.end(), [&](const Span& a) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Span& b) { return a.begin < b.end && b.begin < a.end; });
  });
}

// Whether the op changes the step's state, which is no operand. Weight gradients in bf16 read its seed and
// step number.
bool changes_state(OpKind kind) {
  return kind == OpKind::loss_sum || kind == OpKind::hit_count || kind == OpKind::value_hits ||
         kind == OpKind::preference || kind == OpKind::finish_step;
}

}  // namespace

Branch weight_gradient_branch(const Graph& graph, const Arena& arena, const Program& program, size_t first,
                              size_t end) {
  Branch branch{std::vector<bool>(end), std::vector<int>(end, -1)};
  struct Running {
    int instruction;
    Accesses accesses;
  };
  std::vector<Running> running;  // on the branch, in order, and not waited for yet
  for (size_t k = first; k < end; ++k) {
    const Instruction& i = program.instructions[k];
    Accesses mine = accesses_of(graph, arena, program, i);
    if (i.kind == OpKind::linear_weight_gradient) {
      branch.has[k] = true;
      running.push_back({static_cast<int>(k), std::move(mine)});
      continue;
    }
    const auto last = std::find_if(running.rbegin(), running.rend(), [&](const Running& r) {
      return changes_state(i.kind) || overlap(mine.writes, r.accesses.reads) ||
             overlap(mine.writes, r.accesses.writes) || overlap(mine.reads, r.accesses.writes);
    });
    if (last == running.rend()) continue;
    branch.waits_for[k] = last->instruction;
    running.erase(running.begin(), last.base());
  }
  return branch;
}

}  // namespace stw::cuda
