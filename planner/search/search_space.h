// All plans of one numerics: for a number of bytes the fastest plan, and the plan that needs the fewest bytes.
//
// An offload choice is one choice of what lies in host memory. The list of offload choices is the same for every budget: optimizer states in steps,
// then masters, each with none, half or all of the block inputs, and at the end gradients and weights. Every offload choice has a search of its own,
// which is only made when it might win, and which gives an answer of its own. The fastest of these answers counts; of equally
// fast ones that of the first offload choice, which offloads less.
//
// The bound also holds for plans between two offload choices, with numbers of parts that the list leaves out. Such a plan lies in a cell:
// in host memory it has at least as many states as the cell's lower offload choice, and fewer than the next offload choice of states. So it copies at
// least what the lower offload choice copies, and saves at most the states of the next offload choice and everything else that can be offloaded.
//
// Beside adapters, blocks keep the adapters' narrow tensors whatever else they recompute (tie_choices). Plans whose blocks keep
// nothing at all are then a search space of their own (full_recompute_). They need fewer bytes, and count in every answer.
#pragma once
#include <algorithm>
#include <array>
#include <compare>
#include <memory>
#include <optional>
#include <vector>

#include "planner/search/offload_search.h"

namespace stw {

class SearchSpace {
 public:
  SearchSpace(const GraphSource& source, const Numerics& numerics, const Request& request, const DeviceProfile& device, Effort effort = Effort::full);

  // The fastest plan whose arena takes at most this many bytes.
  std::optional<Candidate> fastest(uint64_t arena_bytes);
  // No micro-batch is small enough to be added up: tensors of more than 2^56 bytes.
  bool is_empty() const { return micro_batches_.empty(); }
  // The plan with the smallest arena. Not to be asked of an empty space.
  const Candidate& smallest();
  // Bytes of a plan's arena, laid out.
  uint64_t arena(const Decisions& decisions);
  Programs programs(const Decisions& decisions) const;
  // How many searches had to be made: each takes programs and save-sets of its own.
  int64_t searches_made() const { return std::count_if(choices_.begin(), choices_.end(), [](const OffloadChoice& c) { return c.search != nullptr; }); }

  const Graph& graph() const { return graph_; }
  const Pricing& pricing() const { return pricing_; }
  const Numerics& numerics() const { return numerics_; }

 private:
  // One choice of what lies in host memory, and its search once that was asked for.
  struct OffloadChoice {
    Offload offload;
    uint64_t resident_bytes = 0;      // of the arena before any program
    uint64_t host_bytes = 0;          // without block inputs
    uint64_t update_bytes = 0;        // of host_bytes: what the update copies
    uint64_t gradient_bytes = 0;      // of update_bytes: what the update only reads
    std::unique_ptr<OffloadSearch> search;
  };
  void list_choices();
  void measure(OffloadChoice& choice) const;
  // As fastest() and smallest(), without the plans of full_recompute_.
  std::optional<Candidate> fastest_without_full_recompute(uint64_t arena_bytes);
  const Candidate& smallest_without_full_recompute();
  OffloadSearch& search_of(size_t choice);
  // The least time, or the fewest bytes, that a offload choice may reach, as far as that is known. The hope with the least is looked into
  // first, so that no search is made that cannot win; of equal hopes the first offload choice's comes first.
  enum class BoundFrom { sums, first_search, own_search };
  struct Node {
    uint64_t least;
    size_t choice;
    BoundFrom from;
    auto operator<=>(const Node&) const = default;
  };
  uint64_t least_update(const OffloadChoice& choice);     // a lower bound of the update's picoseconds
  // A lower bound of the time of plans that copy at least what `lower` copies, and save at most what `upper` saves.
  uint64_t bound(const OffloadChoice& lower, const OffloadChoice& upper, uint64_t arena_bytes);
  uint64_t copying(OpKind kind, uint64_t bytes) const;   // picoseconds

  Numerics numerics_;
  Effort effort_;
  const Request& request_;
  const DeviceProfile& device_;
  Graph graph_;
  Pricing pricing_;
  SegmentChoices segments_;
  std::vector<int64_t> micro_batches_;         // by size
  std::vector<OffloadChoice> choices_;                    // the first one offloads nothing
  struct Cell { size_t lower; OffloadChoice upper; };   // the plans between two offload choices; `lower`: in choices_
  std::vector<Cell> cells_;
  std::optional<Candidate> smallest_without_full_recompute_, smallest_;
  std::optional<Request> full_recompute_request_;
  std::unique_ptr<SearchSpace> full_recompute_;                // the plans whose blocks keep nothing; null: they are among the own ones
};

}  // namespace stw
