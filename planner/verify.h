// The judge of a plan. It knows nothing of how offsets were found: it replays a program and checks every byte claim.
#pragma once
#include "planner/program.h"
#include "planner/result.h"

namespace stw {

// Every buffer aligned and inside the arena; no two buffers alive at once overlap, persistent ones included; every
// operand and all scratch memory inside its buffer's life and bytes; nothing is read before it was written.
Status verify(const Graph& graph, const Arena& arena, const Program& program, uint64_t arena_bytes);

}  // namespace stw
