// How long a program takes on a device whose copies to and from host memory run beside its ops: of every stage the longest
// of its ops, its fetches and its stores, which go in both directions at once.
#pragma once
#include <functional>

#include "planner/program/program.h"

namespace stw {

uint64_t overlapped_picoseconds(const Program& program, const std::function<uint64_t(const Instruction&)>& price);

}  // namespace stw
