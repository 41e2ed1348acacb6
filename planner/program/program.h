// Programs: linear lists of kernel calls whose operands are offsets in one arena. The planner counts them and the
// runtime runs them; there is no second account of memory.
//
//   arena  0                                                                              arena_bytes
//          | state, tables, parameters, masters, optimizer states | gradients | transient of the training programs |
//          |<---------------- resident ------------------------->|  transient of evaluate and generate             |
//
// Where copies to and from host memory run beside the ops (Offload::overlap), instructions come in stages: first its
// copies, then its ops. No op of a stage needs what the copies of this stage bring or changes what they take away, the
// memory of both lives through the whole stage, and the next stage begins when all of it is done.
//
// Gradients live from the first micro-step to the update, so programs that run between two steps use their place.
// Tensors that lie in host memory have no place here: a program fetches them into buffers of its own, and stores them back.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "planner/graph/feed_forward.h"
#include "planner/graph/offload.h"
#include "planner/graph/op_table.h"

namespace stw {

struct Buffer {
  int tensor = -1;           // what it holds first; -1: scratch memory of one kernel
  uint64_t bytes = 0;
  int first = 0, last = 0;   // instructions it lives through, both included
  Class owner = Class::transient;
  uint64_t offset = 0;       // from the start of the arena
};

// Persistent buffers are the arena's, the others the program's.
struct Operand {
  int buffer = -1;           // -1: absent
  bool persistent = false;
  uint64_t offset = 0;       // bytes inside the buffer
};

// `generate`: positions start at StepState::position.
enum class Phase : uint8_t { forward, recompute, backward, update, generate };

struct Instruction {
  OpKind kind;
  Phase phase;
  bool accumulate = false;   // parameter gradients: continue from the buffer
  int op = -1;               // Graph::op
  int ops = 1;               // from there on, which one kernel call does together: of one kind (OpRow::joins), or fused (fuse.h)
  int first_operand = 0;     // inputs, then outputs, in Program::operands; of `ops` one after the other
  int inputs = 0, outputs = 0;   // of the first op
  Operand workspace;
  int64_t samples = 0, rows = 0;
  int64_t first_row = 0;     // of its sample: where the rows begin
  int64_t first_element = 0, elements = 0;   // of a parameter: the part that this works on; 0 elements: all of it
  int stage = 0;
};

// The k-th op of an instruction as if it were alone, and what all of them cost. What lies between fused ops is not moved, but for what the
// first of forward ones makes, which is counted as stored.
Instruction op_alone(const Graph& graph, const Instruction& instruction, int k);
Extent extent_of(const Graph& graph, const Instruction& instruction, int threads);
Cost cost_of(const Graph& graph, const Instruction& instruction, int threads);

struct Program {
  std::string name;
  int64_t samples = 0;
  int threads = 1;           // that scratch memory was counted for
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Buffer> buffers;
  // Buffers that the runtime fills or reads; -1: none.
  InputIndices inputs;
  int logits = -1;
  int losses = -1;           // of tokens, in evaluations
  std::vector<int> caches;   // buffers that keep their contents from run to run, at the start of transient memory
  uint64_t base = 0;         // where its transient memory begins
  uint64_t end = 0;          // where it ends, after layout
};

struct Arena {
  std::vector<Buffer> persistent;
  std::vector<int> of_tensor;           // tensor -> persistent buffer, or -1
  uint64_t gradients_begin = 0, gradients_end = 0;  // gradients_begin is also the end of what is resident
  uint64_t alignment = 64;
  Offload offload;
  std::vector<Buffer> host;             // what lies in host memory, with its offset there
  std::vector<int> host_of_tensor;      // tensor -> that buffer, or -1
  uint64_t host_bytes = 0;
  bool on_host(int tensor) const { return host_of_tensor[static_cast<size_t>(tensor)] >= 0; }
};

// `micro_batch`: of block inputs that lie in host memory.
Arena make_arena(const Graph& graph, uint64_t alignment, const Offload& offload = {}, int64_t micro_batch = 1);

// What may differ between two programs of equal bits.
struct Decisions {
  int64_t micro_batch = 1;
  int64_t loss_chunks = 1;
  std::vector<uint32_t> saved;          // for every segment a set of Segment::saveable
  std::vector<int64_t> tile_rows;       // for every segment the rows of its feed-forward tiles, 0: all; empty: 0 for every one
  Offload offload;
  int64_t tile_rows_of(size_t segment) const { return tile_rows.empty() ? 0 : tile_rows[segment]; }
  bool operator==(const Decisions&) const = default;
};

inline constexpr int64_t largest_loss_chunks = 1024;
// The unit of a loss chunk's rows: chain_unit where the head trains a matrix, so that no chunk cuts a chain of its gradient; else
// `frozen_chunk_unit`, for which no sum over rows is cut.
int64_t chunk_unit(const Graph& graph);
inline constexpr int64_t frozen_chunk_unit = 16;
// Rows of one loss chunk at most: whole multiples of the unit, or all.
int64_t chunk_rows(int64_t rows, int64_t chunks, int64_t unit);
// The fewest chunks of no more rows than that, each of which begins in its sample at a multiple of the unit. `rows`: whole samples.
std::vector<Tile> loss_chunks(int64_t rows, int64_t rows_per_sample, int64_t chunks, int64_t unit);
std::vector<Tile> loss_chunks(const Graph& graph, int64_t samples, int64_t chunks);   // of the rows that the head has

// Programs before layout. `accumulate`: not the first micro-step of its step.
Program build_micro(const Graph& graph, const Arena& arena, const Decisions& decisions, int64_t samples, int threads,
                    bool accumulate);
Program build_evaluate(const Graph& graph, const Arena& arena, const Decisions& decisions, int threads);
Program build_update(const Graph& graph, const Arena& arena, int threads);
// Runs of the update's ops that are one instruction each, where `alone` does not part them; without those inside the backward pass.
struct UpdateRun { int op, ops; };   // as in Instruction
std::vector<UpdateRun> update_runs(const Graph& graph, const std::function<bool(const Op&)>& alone = {});

// Whether copies run beside ops; else they stand among the ops that they serve, and all is one stage of ops.
inline bool in_stages(const Program& program) { return !program.instructions.empty() && program.instructions.back().stage > 0; }
// Instructions [first, ops) are copies that run beside each other and beside [ops, end).
struct Stage { size_t first = 0, ops = 0, end = 0; };
std::vector<Stage> stages_of(const Program& program);

// Bytes live at the busiest instruction: no layout is smaller.
uint64_t live_bound(const Program& program, uint64_t alignment);

}  // namespace stw
