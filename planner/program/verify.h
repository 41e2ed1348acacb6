// The judge of a plan. It knows nothing of how offsets were found: it replays a program and checks every byte claim.
#pragma once
#include "planner/program/program.h"
#include "planner/base/result.h"

namespace stw {

// Every buffer aligned and inside the arena; no two buffers alive at once overlap, persistent ones included; every
// operand and all scratch memory inside its buffer's life and bytes; nothing is read before it was written.
// Nor is a parameter read after the program has updated it. What runs at the same time in a stage has nothing in common
// that any of it changes.
Status verify(const Graph& graph, const Arena& arena, const Program& program, uint64_t arena_bytes);

// Every element of every trained parameter is updated once by the programs of a step.
Status verify_updates(const Graph& graph, const std::vector<const Program*>& step);

}  // namespace stw
