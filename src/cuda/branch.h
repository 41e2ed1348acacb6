// Weight gradients on a branch of their own. Nothing needs them before the update or, where gradients add up, the next ones of the same
// parameter: a device may compute them beside the ops that follow, which often leave some of its multiprocessors idle. The arena's layout
// assumes that instructions run one after the other, so the branch has to end before its memory gets another use.
#pragma once
#include <vector>

#include "planner/program/program.h"

namespace stw::cuda {

// Of the instructions [first, end) of a program. What is not on the branch runs in order on the trunk. An instruction on the branch begins
// after all those before it, on the branch and on the trunk.
struct Branch {
  std::vector<bool> has;         // whether an instruction is on the branch
  std::vector<int> waits_for;    // the last instruction on the branch that one on the trunk waits for; -1: none, or an earlier one did
};
Branch weight_gradient_branch(const Graph& graph, const Arena& arena, const Program& program, size_t first, size_t end);

}  // namespace stw::cuda
