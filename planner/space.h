// All plans of one numerics: for a number of bytes the fastest, and the one that needs the fewest.
//
// The plans form a staircase, the same for every budget: by time and by the bytes that are alive at once (which no layout
// undercuts) none of them is beaten in both. The answer to a budget is the fastest stair whose laid-out arena fits. So a
// tighter budget never raises the peak and a looser one never slows the plan.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "planner/plan.h"
#include "planner/pricing.h"
#include "planner/stack.h"

namespace stw {

struct Candidate {
  Decisions decisions;
  uint64_t picoseconds = 0;        // of a step
  uint64_t live_bytes = 0;         // of the arena: no layout is smaller
  uint64_t bound_picoseconds = 0;  // no plan within the same bytes is faster
};

class Space {
 public:
  Space(const GraphSource& source, const Numerics& numerics, const Request& request, const DeviceProfile& device);

  // The fastest plan whose arena takes at most this many bytes.
  std::optional<Candidate> fastest(uint64_t arena_bytes);
  // The fastest by the bytes that are alive at once, of equal ones the one with the fewest: a stair.
  std::optional<Candidate> fastest_alive(uint64_t arena_bytes);
  // No micro-batch is small enough to be added up: tensors of more than 2^56 bytes.
  bool is_empty() const { return micro_batches_.empty(); }
  // The plan with the smallest arena. Not of an empty space.
  const Candidate& smallest();
  // Bytes of a plan's arena, laid out.
  uint64_t arena(const Decisions& decisions);
  Programs programs(const Decisions& decisions) const;

  const Graph& graph() const { return graph_; }
  const Pricing& pricing() const { return pricing_; }
  const Numerics& numerics() const { return numerics_; }

 private:
  // What can be chosen at one micro-batch.
  struct Choices {
    std::vector<Stretch> runs;
    int64_t fixed_bytes = 0;       // below them all: persistent tensors, tokens and targets
  };
  const Choices& choices(int64_t micro_batch);
  uint64_t least_bytes(int64_t micro_batch) const;
  bool is_countable(int64_t micro_batch) const;
  Candidate candidate(int64_t micro_batch, const StackChoice& choice);

  Numerics numerics_;
  const Request& request_;
  const DeviceProfile& device_;
  Graph graph_;
  Arena arena_;
  Pricing pricing_;
  uint64_t floor_ = 0;                         // bytes alive in programs that no decision changes
  std::vector<SegmentProfile> profiles_;       // of each class of segments but the head's
  std::vector<std::pair<size_t, int64_t>> runs_;   // class and how many of it follow each other
  std::vector<int64_t> micro_batches_;         // by the time of a step without recompute
  std::map<int64_t, Choices> choices_;
  std::map<std::vector<int64_t>, uint64_t> arenas_;
  std::optional<Candidate> smallest_;
};

}  // namespace stw
