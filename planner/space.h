// All plans of one numerics: for a number of bytes the fastest, and the one that needs the fewest.
//
// What lies in host memory is chosen from a list that no budget changes: states in steps and then masters, each with none,
// half or all of the block inputs, and at the end gradients and weights. Each entry is a level with an answer of its
// own. Of all levels' answers the fastest counts, of equal ones that of the first level, the one that offloads less. Levels
// that cannot be faster are not looked into. The bound holds for every number of parts, also for those that the list leaves
// out: a plan with so many states in host memory or more, but not as many as in the next step, copies at least the former
// and saves at most the latter and everything else that can be offloaded.
//
// Beside adapters blocks keep their narrow tensors whatever else they recompute (tie_choices). What keeps nothing at all is a space of its own
// then, whose plans count too: they need fewer bytes.
#pragma once
#include <algorithm>
#include <array>
#include <compare>
#include <memory>
#include <optional>
#include <vector>

#include "planner/level.h"

namespace stw {

class Space {
 public:
  Space(const GraphSource& source, const Numerics& numerics, const Request& request, const DeviceProfile& device, Effort effort = Effort::full);

  // The fastest plan whose arena takes at most this many bytes.
  std::optional<Candidate> fastest(uint64_t arena_bytes);
  // No micro-batch is small enough to be added up: tensors of more than 2^56 bytes.
  bool is_empty() const { return micro_batches_.empty(); }
  // The plan with the smallest arena. Not of an empty space.
  const Candidate& smallest();
  // Bytes of a plan's arena, laid out.
  uint64_t arena(const Decisions& decisions);
  Programs programs(const Decisions& decisions) const;
  // Levels that had to be looked into: each takes programs and save-sets of its own.
  int64_t levels() const { return std::count_if(rungs_.begin(), rungs_.end(), [](const Rung& r) { return r.level != nullptr; }); }

  const Graph& graph() const { return graph_; }
  const Pricing& pricing() const { return pricing_; }
  const Numerics& numerics() const { return numerics_; }

 private:
  // A point of the grid.
  struct Rung {
    Offload offload;
    uint64_t resident_bytes = 0;      // of the arena before any program
    uint64_t host_bytes = 0;          // without block inputs
    uint64_t update_bytes = 0;        // of it: what the update copies
    uint64_t gradient_bytes = 0;      // of that: what it only reads
    std::unique_ptr<Level> level;
  };
  void make_rungs();
  void measure(Rung& rung) const;
  // Without the plans that keep nothing of blocks with adapters.
  std::optional<Candidate> fastest_of_own(uint64_t arena_bytes);
  const Candidate& smallest_of_own();
  Level& level(size_t rung);
  // What a rung may reach at best, of its time or its bytes. Of those that are least more is found out first, so that no level is made
  // that cannot count; of equal ones the first rung's comes first.
  enum class Known { little, without_level, by_level };
  struct Hope {
    uint64_t least;
    size_t rung;
    Known known;
    auto operator<=>(const Hope&) const = default;
  };
  uint64_t least_update(const Rung& rung);     // picoseconds of the update: no less
  // No plan that copies what `lower` copies and has the memory of `upper` is faster.
  uint64_t bound(const Rung& lower, const Rung& upper, uint64_t arena_bytes);
  uint64_t copying(OpKind kind, uint64_t bytes) const;   // picoseconds

  Numerics numerics_;
  Effort effort_;
  const Request& request_;
  const DeviceProfile& device_;
  Graph graph_;
  Pricing pricing_;
  SegmentChoices segments_;
  std::vector<int64_t> micro_batches_;         // by size
  std::vector<Rung> rungs_;                    // the first one offloads nothing
  struct Cell { size_t lower; Rung upper; };   // `lower`: in rungs_
  std::vector<Cell> cells_;
  std::optional<Candidate> smallest_of_own_, smallest_;
  std::optional<Request> bare_request_;
  std::unique_ptr<Space> bare_;                // of what keeps nothing; null: that is among the own choices
};

}  // namespace stw
