// Weight gradients on a branch of their own. The update reads them. If gradients accumulate, the next
// gradient of the same parameter reads them, too. Nothing else does. A device may therefore compute them at
// the same time as the ops that follow, which often leave multiprocessors idle. The arena's layout assumes
// that instructions run one after the other. The branch must therefore end before its memory is reused.
#pragma once
#include <vector>

#include "planner/program/program.h"

namespace stw::cuda {

// The branch of the instructions [first, end) of a program. All other instructions run in order on the trunk.
// An instruction on the branch begins after all earlier ones, on the branch and on the trunk.
struct Branch {
  std::vector<bool> has;  // whether an instruction is on the branch
  // For an instruction on the trunk: the last instruction on the branch that it must wait for. -1: none, or
  // an earlier instruction has waited for it.
  std::vector<int> waits_for;
};
Branch weight_gradient_branch(const Graph& graph, const Arena& arena, const Program& program, size_t first,
                              size_t end);

}  // namespace stw::cuda
