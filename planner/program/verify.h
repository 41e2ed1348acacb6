// An independent check of a plan. It uses none of the code that made the program: it replays the program and
// checks every claim about bytes.
#pragma once
#include "planner/base/result.h"
#include "planner/program/program.h"

namespace stw {

// Checks a program:
// - Every buffer is aligned and lies inside the arena.
// - No two buffers that are alive at the same time overlap, including persistent ones.
// - Every operand and all scratch memory stay inside their buffer's life and bytes.
// - Nothing is read before it is written, or after another tensor took its buffer.
// - No parameter is read after the program has updated it.
// - Instructions of a stage that run at the same time share no memory that one of them changes.
Status verify(const Graph& graph, const Arena& arena, const Program& program, uint64_t arena_bytes);

// Checks that the programs of a step update every element of every trained parameter exactly once.
Status verify_updates(const Graph& graph, const std::vector<const Program*>& step);

// Checks that the programs compute each table that ops on samples read, and then the gradient of each op on
// tables, once and in order; and that a gradient adds to a buffer exactly if the micro-steps fill it.
Status verify_tables(const Graph& graph, const Program& tables, const Program& gradients,
                     const Program& evaluate);

// If the graph has kept rows (kept_rows.h): checks that the micro-steps of a step keep the rows of all
// `samples`, and that one op adds their sums to the gradient of the table, or forms that gradient from them.
Status verify_kept_rows(const Graph& graph, int64_t samples);

}  // namespace stw
