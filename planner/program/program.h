// Programs: linear lists of kernel calls whose operands are offsets in one arena. The planner counts the
// bytes of a program, and the runtime executes the same program, so the two cannot disagree about memory.
//
//   0                                                                                           arena_bytes
//   | state, tables, parameters, masters, optimizer states | gradients | transient of training programs   |
//   |<------------------- resident ---------------------->|  transient of evaluate and generate           |
//
// If copies to and from host memory run while ops compute (Offload::overlap), instructions come in stages. A
// stage has its copies first, then its ops. No op of a stage reads a tensor that this stage fetches, or
// changes a tensor that it stores. The buffers of fetched and of stored tensors stay alive through the whole
// stage. The next stage begins when all copies and ops of this one are done.
//
// Gradients live from the first micro-step to the update, so programs that run between two steps reuse their
// memory. Tensors in host memory have no place in the arena: a program fetches them into buffers of its own
// and stores them back.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "planner/graph/feed_forward.h"
#include "planner/graph/offload.h"
#include "planner/graph/op_table.h"

namespace stw {

struct Buffer {
  int tensor = -1;  // the first of the tensors that it holds in turn; -1: scratch memory of one kernel
  uint64_t bytes = 0;
  int first = 0, last = 0;  // first and last instruction of its life, both inclusive
  MemoryClass owner = MemoryClass::transient;
  uint64_t offset = 0;  // from the start of the arena
};

// `buffer` is an index in Arena::persistent if `persistent` is set, otherwise in Program::buffers.
struct Operand {
  int buffer = -1;  // -1: absent
  bool persistent = false;
  uint64_t offset = 0;  // bytes inside the buffer
};

// `generate`: positions start at StepState::position.
enum class Phase : uint8_t { forward, recompute, backward, update, generate };

struct Instruction {
  OpKind kind;
  Phase phase;
  bool accumulate = false;  // a parameter gradient adds to the buffer's contents
  int op = -1;              // index for Graph::op
  // Ops [op, op + ops) run in one kernel call. They are of one kind (OpRow::is_multi_tensor), or fused
  // (fuse.h).
  int ops = 1;
  int first_operand = 0;        // index in Program::operands: inputs, then outputs, for each of `ops`
  int inputs = 0, outputs = 0;  // of the first op
  Operand workspace;
  int64_t samples = 0, rows = 0;
  int64_t first_row = 0;  // position of the first row in its sample
  // The part of a parameter that the instruction works on. 0 elements: the whole parameter.
  int64_t first_element = 0, elements = 0;
  int stage = 0;
};

// op_alone returns the k-th op of an instruction as an instruction of its own. cost_of returns the cost of
// all ops of an instruction. This cost does not include the traffic of tensors between fused ops, except that
// the output of the first of several fused forward ops counts as stored.
Instruction op_alone(const Graph& graph, const Instruction& instruction, int k);
Extent extent_of(const Graph& graph, const Instruction& instruction, int threads);
Cost cost_of(const Graph& graph, const Instruction& instruction, int threads);

struct Program {
  std::string name;
  int64_t samples = 0;
  int threads = 1;  // of the CPU; scratch memory is counted for this number
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Buffer> buffers;
  // Buffers that the runtime fills or reads. -1: none.
  InputIndices inputs;
  int logits = -1;
  int losses = -1;  // of tokens, in evaluations
  // Buffers that keep their contents from run to run, at the start of transient memory.
  std::vector<int> caches;
  uint64_t base = 0;  // start of its transient memory
  uint64_t end = 0;   // end of its transient memory, after layout
};

struct Arena {
  std::vector<Buffer> persistent;
  std::vector<int> of_tensor;                       // tensor -> persistent buffer, or -1
  uint64_t gradients_begin = 0, gradients_end = 0;  // gradients_begin is also the end of the resident tensors
  uint64_t alignment = 64;
  Offload offload;
  std::vector<Buffer> host;         // tensors in host memory, with their offsets there
  std::vector<int> host_of_tensor;  // tensor -> buffer in `host`, or -1
  uint64_t host_bytes = 0;
  bool on_host(int tensor) const { return host_of_tensor[tensor] >= 0; }
};

// `micro_batch`: determines the bytes of block inputs in host memory.
Arena make_arena(const Graph& graph, uint64_t alignment, const Offload& offload = {},
                 int64_t micro_batch = 1);

// The planner's decisions. They change the program, but none of the trained bits.
struct Decisions {
  int64_t micro_batch = 1;
  int64_t loss_chunks = 1;
  std::vector<uint32_t> saved;  // for every segment a set of Segment::saveable
  // For every segment the rows of its feed-forward tiles, 0: all; empty: 0 for all segments.
  std::vector<int64_t> tile_rows;
  Offload offload;
  bool keeps_rows = false;  // the graph is one that keep_rows changed (kept_rows.h)
  int64_t tile_rows_of(size_t segment) const { return tile_rows.empty() ? 0 : tile_rows[segment]; }
  bool operator==(const Decisions&) const = default;
};

inline constexpr int64_t largest_loss_chunks = 1024;
// The rows of a loss chunk are a multiple of this unit. If the head trains a matrix, the unit is
// kernels::chain_terms, so that no chunk cuts a chain of the sum for the matrix's gradient. Otherwise there
// is no sum over rows, and the unit is `frozen_chunk_unit`. If the loss of a text reads the logits of all its
// tokens, the unit is a sample.
int64_t chunk_unit(const Graph& graph);
inline constexpr int64_t frozen_chunk_unit = 16;
// The rows of the largest loss chunk: a multiple of the unit, or all rows.
int64_t chunk_rows(int64_t rows, int64_t chunks, int64_t unit);
// Cuts `rows` (whole samples) into as few chunks as possible of at most chunk_rows() rows. Each chunk begins
// at a multiple of the unit in its sample.
std::vector<Tile> loss_chunks(int64_t rows, int64_t rows_per_sample, int64_t chunks, int64_t unit);
// The same for the rows of the graph's head.
std::vector<Tile> loss_chunks(const Graph& graph, int64_t samples, int64_t chunks);

// Programs before layout. `accumulate`: not the first micro-step of its step.
Program build_micro(const Graph& graph, const Arena& arena, const Decisions& decisions, int64_t samples,
                    int threads, bool accumulate);
Program build_evaluate(const Graph& graph, const Arena& arena, const Decisions& decisions, int threads);
Program build_update(const Graph& graph, const Arena& arena, int threads);
// The ops on tables, which run before the micro-steps of a step, or before an evaluation. Empty if there are
// none, or if those of an evaluation are the same.
Program build_tables(const Graph& graph, const Arena& arena, int threads, bool for_evaluation);
// The gradients of the ops on tables, after the micro-steps. Empty if there are none.
Program build_table_gradients(const Graph& graph, const Arena& arena, int threads);
// The ops on tables that build_table_gradients computes again, in order.
std::vector<int> recomputed_table_ops(const Graph& graph);
// Ops [op, op + ops) of the update, which are one instruction.
struct UpdateRun {
  int op, ops;
};
// Groups the update's ops into runs. An op that reads a formed gradient (kept_rows.h), or for which `alone`
// is true, has a run of its own. Leaves out updates inside the backward pass, and the op that forms a
// gradient.
std::vector<UpdateRun> update_runs(const Graph& graph, const std::function<bool(const Op&)>& alone = {});

// Whether copies run while ops compute. Otherwise each copy comes next to the op that needs it, and the
// program is one stage.
inline bool in_stages(const Program& program) {
  return !program.instructions.empty() && program.instructions.back().stage > 0;
}
// Instructions [first, ops) are copies. They run concurrently with each other and with the ops [ops, end).
struct Stage {
  size_t first = 0, ops = 0, end = 0;
};
std::vector<Stage> stages_of(const Program& program);

// The largest sum of bytes alive at one instruction. No layout is smaller.
uint64_t live_bound(const Program& program, uint64_t alignment);

}  // namespace stw
