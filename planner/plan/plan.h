// A plan: the request, the planner's decisions, and their costs. Programs are made from a plan; plan files do
// not contain them.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "planner/graph/optimizer.h"
#include "planner/plan/request.h"
#include "planner/program/program.h"

namespace stw {

struct Bytes {
  std::array<uint64_t, class_count> of{};  // at the moment of the peak
  uint64_t padding = 0, arena = 0, reserve = 0, peak = 0, budget = 0, host = 0;
};

// A change of the request that needs less memory. All figures are those of the plan that the changed request
// gets; where that does not fit either, of its smallest plan.
struct Relaxation {
  std::string change;  // "states 8, master split8"
  // How much the relaxation lowers the smallest peak. For host memory: the smallest peak before the
  // relaxation, minus the peak of the plan after it.
  uint64_t saves_bytes = 0;
  // The increase of the time of a token, as a fraction of the time with unlimited memory; negative: faster.
  double costs_fraction = 0;
  bool changes_numerics = false;
  bool fits = false;        // this relaxation makes a plan fit
  std::string flags = {};   // the change as flags of the command: "--states 8 --master split8"
  std::string effect = {};  // what is different in the result; empty: nothing
  double tokens_per_second = 0;
  uint64_t peak_bytes = 0;
  uint64_t host_bytes = 0;        // host memory that the plan takes
  uint64_t least_host_bytes = 0;  // host memory with which some plan fits; slower ones may take less
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
  uint64_t minimum_bytes = 0;  // the smallest budget that works
  std::vector<Relaxation> relaxations;
  std::string shortage;  // a sentence if not even a relaxation fits: what binds, and what would do
  uint64_t step_picoseconds = 0, recompute_picoseconds = 0;
  // Time of a step if all kernels reached the ceiling of libraries (at_ceiling). 0: a calibrated profile
  // predicted the step.
  uint64_t ceiling_picoseconds = 0;
  // By the cost model, no plan of these numerics within the budget is faster.
  uint64_t bound_picoseconds = 0;
  uint64_t unlimited_picoseconds = 0;  // no plan within any budget is faster
  uint64_t next_gib_picoseconds = 0;   // time of a step with one GiB more and the same state format
  uint64_t copied_bytes = 0;           // in a step, between host memory and the device, in both directions
  uint64_t layout_bound = 0;  // lower bound of the arena's bytes: no layout of these programs is smaller
  uint64_t model_hash = 0;
  std::string states_reason;
};

// All programs of a plan, laid out in one arena.
struct Programs {
  Arena arena;
  Program micro_first, micro_next, micro_short, update, evaluate, prefill, decode;
  Program tables, table_gradients, evaluate_tables;  // empty for most models (Graph::table_ops)
  uint64_t arena_bytes = 0;
  uint64_t bound_bytes = 0;
  std::vector<const Program*> all() const;
};

// Builds a differentiated graph with its update, for given numerics. src/models implements it.
using GraphSource = std::function<Graph(const Numerics&)>;

Programs make_programs(const Graph& graph, const Decisions& decisions, int64_t global_batch, int threads,
                       uint64_t alignment);
// The program that reaches the top of the arena, and its instruction with the most live bytes.
struct PeakMoment {
  const Program* program;
  int instruction;
};
PeakMoment peak_moment(const Programs& programs);
// Bytes by class at the moment of the peak.
Bytes account(const Programs& programs);

// Blocks [first, last] that recompute the same tensors.
struct RecomputedBlocks {
  int first, last;
  std::vector<std::string> tensors;
};
std::vector<RecomputedBlocks> recomputed_blocks(const Graph& graph, const Decisions& decisions);

// Blocks [first, last] whose feed-forward part runs in tiles of `rows` rows.
struct TiledBlocks {
  int first, last;
  int64_t rows;
};
std::vector<TiledBlocks> tiled_blocks(const Graph& graph, const Decisions& decisions);

// The tensors of one kind that a plan keeps in host memory: those of blocks 0 to `last` (none if it is
// negative), and with `others` also those of parameters outside of blocks.
struct OffloadedTensors {
  Offloaded what;
  int last;
  bool others;
  uint64_t bytes;
};
std::vector<OffloadedTensors> offloaded_tensors(const Graph& graph, const Decisions& decisions);

// The model that a relaxation offers in place of the request's.
struct ModelChange {
  int64_t adapter_rank = 0;  // of new adapters; 0: none
  std::string preset;        // empty: the request's model
};

// What relaxations may change about the model. src/trainer implements it.
struct Alternatives {
  // The graphs of a changed model for a changed request. Errors: the model does not support the request.
  std::function<Result<GraphSource>(const ModelChange&, const Request&)> source;
  // Smaller presets of the model's family, the largest first.
  std::function<std::vector<std::string>()> smaller_presets;
};

// The fastest plan that fits. If none fits, the smallest plan, with relaxations of the request
// (Plan::relaxations).
Result<Plan> search(const GraphSource& source, const Request& request, const Alternatives& alternatives = {});
// The programs of a plan. Checks them with verify.h, and compares them with the figures of the plan.
Result<Programs> realize(const Graph& graph, const Plan& plan);

}  // namespace stw
