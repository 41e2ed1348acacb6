// A plan: what was asked, what was decided, and what it costs. The programs follow from it and are never stored.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "planner/graph/optimizer.h"
#include "planner/program/program.h"
#include "planner/plan/request.h"

namespace stw {

struct Bytes {
  std::array<uint64_t, class_count> of{};   // at the moment of the peak
  uint64_t padding = 0, arena = 0, reserve = 0, peak = 0, budget = 0, host = 0;
};

struct Relaxation {
  std::string change;
  // By how much the smallest peak gets smaller; with host memory that is enough: by how much the plan within the budget is.
  uint64_t saves_bytes = 0;
  // Of the step time at the smallest peak; negative: faster. The relaxed plan is the one within the budget where the relaxation
  // is enough, else the one at its own smallest peak.
  double costs_fraction = 0;
  bool changes_numerics = false;
  bool fits = false;                // this relaxation alone is enough
};

struct Plan {
  std::string architecture;
  uint64_t parameters = 0, trainable = 0;
  int layers = 0;
  Request request;
  Numerics numerics;
  Decisions decisions;
  int64_t accumulation_steps = 0, last_micro_batch = 0;
  Bytes bytes;
  bool fits = false;
  uint64_t minimum_bytes = 0;       // smallest budget that works
  std::vector<Relaxation> relaxations;
  uint64_t step_picoseconds = 0, recompute_picoseconds = 0;
  uint64_t bound_picoseconds = 0;       // no plan of these numerics within the budget is faster, by the cost model
  uint64_t unlimited_picoseconds = 0;   // no plan within any budget is faster
  uint64_t next_gib_picoseconds = 0;    // a step with one GiB more, and the same state format
  uint64_t copied_bytes = 0;        // between host memory and the device in a step, both ways
  uint64_t layout_bound = 0;        // arena bytes that no layout of these programs undercuts
  uint64_t model_hash = 0;
  std::string states_reason;
};

// All programs of a plan, laid out in one arena.
struct Programs {
  Arena arena;
  Program micro_first, micro_next, micro_short, update, evaluate, prefill, decode;
  uint64_t arena_bytes = 0;
  uint64_t bound_bytes = 0;
  std::vector<const Program*> all() const;
};

// Builds a graph for given numerics: differentiated, with its update. The model's business (src/models).
using GraphSource = std::function<Graph(const Numerics&)>;

Programs make_programs(const Graph& graph, const Decisions& decisions, int64_t global_batch, int threads,
                       uint64_t alignment);
// The program that reaches the top of the arena, and its busiest instruction.
struct PeakMoment { const Program* program; int instruction; };
PeakMoment peak_moment(const Programs& programs);
// Bytes by class at the moment of the peak.
Bytes account(const Programs& programs);

// Runs of blocks that compute the same tensors again.
struct RecomputedBlocks { int first, last; std::vector<std::string> tensors; };
std::vector<RecomputedBlocks> recomputed_blocks(const Graph& graph, const Decisions& decisions);

// Runs of blocks whose feed-forward part runs in tiles of so many rows.
struct TiledBlocks { int first, last; int64_t rows; };
std::vector<TiledBlocks> tiled_blocks(const Graph& graph, const Decisions& decisions);

// What a plan keeps in host memory: `last` < 0: nothing of blocks; `others`: what belongs to parameters outside of blocks.
struct OffloadedTensors { Offloaded what; int last; bool others; uint64_t bytes; };
std::vector<OffloadedTensors> offloaded_tensors(const Graph& graph, const Decisions& decisions);

// The fastest plan that fits; where none does, the smallest one, and what could be given up (Plan::relaxations).
Result<Plan> search(const GraphSource& source, const Request& request);
// The programs of a plan, checked by the judge and against the plan's own figures.
Result<Programs> realize(const Graph& graph, const Plan& plan);

}  // namespace stw
