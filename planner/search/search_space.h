// Finds plans for one numerics: the fastest plan for a number of bytes, and the plan that needs the fewest
// bytes.
//
// An offload choice says which tensors lie in host memory. The list of offload choices is the same for every
// budget. It begins with growing numbers of optimizer states, then of master weights, each combined with
// none, half or all of the block inputs. Gradients and weights come last. Every offload choice has a search
// of its own (OffloadSearch), which runs only if it might win. The fastest answer of these searches wins.
// Among equally fast answers, the one of the first offload choice wins, because it offloads less.
//
// The bound on the time also covers plans that offload numbers of parts that are not on the list
// (offload_bound.h).
//
// A plan may keep rows instead of a gradient of the token table (kept_rows.h). Such plans are in a second
// search space (keeping_rows_). They take less memory than plans with the same decisions and a little more
// time. Without host memory, every answer considers both. With host memory, searches take long, so plans with
// the gradient are considered only if they offload nothing and no plan is faster.
//
// In a model with adapters, blocks always keep the adapters' narrow tensors (limit_adapter_choices). Plans
// whose blocks keep nothing at all are in a second search space (full_recompute_). They need fewer bytes, and
// every answer considers them.
#pragma once
#include <algorithm>
#include <array>
#include <compare>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "planner/search/offload_bound.h"

namespace stw {

class SearchSpace {
 public:
  SearchSpace(const GraphSource& source, const Numerics& numerics, const Request& request,
              const DeviceProfile& device, Effort effort = Effort::full);
  // Shares what is known with another space for the same batch and device: the traces of segments, the
  // heights of layouts and, if the micro-steps are the same, the variants of segments. That space must live
  // at least as long as this one. Null: shares nothing.
  SearchSpace(const GraphSource& source, const Numerics& numerics, const Request& request,
              const DeviceProfile& device, Effort effort, const SearchSpace* like);
  // From now on the request has only so many bytes of host memory: more than none and fewer than before. If
  // refined() was not called, all answers are those of a new space.
  void limit_host_bytes(uint64_t bytes);

  // Whether both share the variants of segments.
  bool shares_segments(const SearchSpace& other) const { return segments_ == other.segments_; }

  // The fastest plan whose arena takes at most this many bytes. Empty if none fits, or none takes less time
  // than `to_beat`. If tensors may lie in host memory, it has no bound yet: bound_picoseconds is 0.
  std::optional<Candidate> fastest(uint64_t arena_bytes, uint64_t to_beat = UINT64_MAX);
  // Whether bounds leave it open that fastest() takes less than so many picoseconds. Quicker than fastest().
  bool may_beat(uint64_t picoseconds, uint64_t arena_bytes);
  // Returns `best`, an answer of fastest(), or a faster plan if bounds show where to look for one.
  Candidate refined(Candidate best, uint64_t arena_bytes);
  // Returns `best`, an answer of refined(), with its bound.
  Candidate with_bound(Candidate best, uint64_t arena_bytes);
  // Whether every micro-batch is too large: its tensors would take more than 2^56 bytes.
  bool is_empty() const { return micro_batches_.empty(); }
  // The plan with the smallest arena. Requires that the space is not empty.
  const Candidate& smallest();
  // Whether the plan of smallest() fits. Quicker than smallest().
  bool smallest_fits(uint64_t arena_bytes);
  // About as many bytes as smallest() takes, and not fewer. Quicker than smallest().
  uint64_t arena_with_fewest_live_bytes();
  // No plan's arena takes fewer bytes. Quicker than smallest().
  uint64_t fewest_live_bytes();
  // The least host memory with which some plan's arena takes at most this many bytes. Empty if none does.
  std::optional<uint64_t> least_host_bytes(uint64_t arena_bytes);
  // Bytes of a plan's arena after layout.
  uint64_t arena(const Decisions& decisions);
  // Whether they are at most this many. Quicker than arena().
  bool within(const Decisions& decisions, uint64_t bytes);
  Programs programs(const Decisions& decisions);
  // Number of searches that were made, as a measure of the work.
  int64_t searches_made() const {
    return std::count_if(choices_.begin(), choices_.end(),
                         [](const OffloadChoice& c) { return c.search != nullptr; });
  }

  // Picoseconds of the fastest plan within any budget.
  uint64_t unlimited();
  // The space that the plan is from: its graph is the plan's.
  SearchSpace& of(const Decisions& decisions) {
    return decisions.keeps_rows && keeping_rows() ? *keeping_rows() : *this;
  }

  const Graph& graph() const { return graph_; }
  const Pricing& pricing() const { return pricing_; }
  const Numerics& numerics() const { return numerics_; }

 private:
  // An offload choice, and its search, which is made when it is needed.
  struct OffloadChoice {
    OffloadFigures figures;
    std::unique_ptr<OffloadSearch> search;
  };
  SearchContext context() {
    return {graph_, request_, device_, pricing_, *segments_, micro_batches_, effort_, known_};
  }
  // What is known about the programs of `graph`: as much of what `like` knows as holds for it.
  static std::shared_ptr<KnownHeights> known_heights(const SearchSpace* like, const Graph& graph);
  void list_choices();
  // The space of plans that keep rows. Null if there are none.
  SearchSpace* keeping_rows();
  // fastest() without the plans of keeping_rows_.
  std::optional<Candidate> fastest_without_kept_rows(uint64_t arena_bytes, uint64_t to_beat);
  // A lower bound of the time of all plans within the bytes, if fastest() finds none that beats this time.
  uint64_t bound_of_slower(uint64_t arena_bytes, uint64_t to_beat);
  // fastest() and smallest() without the plans of full_recompute_.
  std::optional<Candidate> fastest_without_full_recompute(uint64_t arena_bytes, uint64_t to_beat);
  const Candidate& smallest_without_full_recompute();
  bool smallest_fits_without_full_recompute(uint64_t arena_bytes);
  bool may_beat_without_full_recompute(uint64_t picoseconds, uint64_t arena_bytes);
  // Whether the search of smallest_choice() has a plan within the bytes without the Pareto points that only
  // smallest_without_full_recompute() tries.
  bool smallest_is_searched(uint64_t arena_bytes);
  // Whether smallest_without_full_recompute(), which fits, may take less than so many picoseconds.
  bool smallest_may_beat(uint64_t picoseconds, uint64_t arena_bytes);
  // The choice whose plan with the fewest live bytes has the smallest arena.
  size_t smallest_choice();
  // A lower bound of the arenas of all plans but those of full_recompute_.
  uint64_t least_arena();
  OffloadSearch& search_of(size_t choice);
  OffloadSearch* search_with(const Offload& offload);  // null if the choice is not on the list
  // Tries a choice that is not on the list. If its plan is faster than `best` by enough, it replaces `best`,
  // and the result is true.
  bool improves(const OffloadBound::Corner& to, uint64_t arena_bytes, Candidate& best);
  // Tries choices between that of `best` and another one, and then the neighbours of the best. Where one
  // gains, the next lies twice as far.
  void refine(const OffloadBound::Corner& promising, uint64_t arena_bytes, Candidate& best);
  // How the bound of a node was computed. sums: from sums of times or bytes. first_search: by the relaxation
  // in the search that offloads nothing. own_search: by the choice's own search.
  enum class BoundFrom { sums, first_search, own_search };
  // An open node of the best-first search over offload choices. `least` is a lower bound of the time, or of
  // the bytes, of the choice's plans. The node with the least bound is refined first, so that no search runs
  // that cannot win. If bounds are equal, the first offload choice comes first.
  struct Node {
    uint64_t least;
    size_t choice;
    BoundFrom from;
    auto operator<=>(const Node&) const = default;
  };
  // The offload choices within the host memory, with lower bounds of live bytes from sums.
  std::set<Node> choices_by_live_bytes();
  // The offload choices that may fit, with lower bounds of picoseconds from sums.
  std::set<Node> choices_by_sums(uint64_t arena_bytes);

  Numerics numerics_;
  Effort effort_;
  Request request_;
  const DeviceProfile& device_;
  Graph graph_;
  Pricing pricing_;
  std::shared_ptr<TraceCache> traces_;
  std::shared_ptr<SegmentChoices> segments_;
  std::shared_ptr<KnownHeights> known_;
  std::vector<int64_t> micro_batches_;   // ascending
  std::vector<OffloadChoice> choices_;   // the first one offloads nothing
  std::unique_ptr<OffloadBound> bound_;  // if tensors may lie in host memory
  std::optional<size_t> smallest_choice_;
  std::optional<Candidate> smallest_without_full_recompute_, smallest_;
  const SearchSpace* like_;
  std::optional<bool> has_kept_rows_;
  std::unique_ptr<SearchSpace> keeping_rows_;  // made when it is needed
  // Plans whose blocks keep nothing; null if this space contains them.
  std::unique_ptr<SearchSpace> full_recompute_;
};

// Errors: unsupported_shape, unsupported if no kernel of the device computes the graph's attention.
Status check_graph(const Graph& graph, const Request& request, const DeviceProfile& device);

}  // namespace stw
