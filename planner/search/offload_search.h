// The plans of one numerics with one choice of what lies in host memory: for a number of bytes the fastest plan, and the plan
// that needs the fewest bytes.
//
// A plan is a point where no other plan of the search beats it in both time and live bytes, the bytes alive at once, which no
// layout undercuts. All points form one staircase, the same for every budget. The answer to a budget is the fastest point whose
// laid-out arena fits. So a tighter budget never raises the peak, and a looser one never slows the plan; where something is
// offloaded and blocks differ from their neighbours, by less than the tolerance of stack.h. Where a segment has many variants and
// copies run beside it, points are made of its best variants alone (best_of_kind); the plan with the fewest live bytes (with_fewest_live_bytes)
// is made of all of them.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/program/arena_sizes.h"
#include "planner/search/pricing.h"
#include "planner/search/segment_choices.h"

namespace stw {

struct Candidate {
  Decisions decisions;
  uint64_t picoseconds = 0;        // of a step
  uint64_t live_bytes = 0;         // of the arena: no layout is smaller
  uint64_t bound_picoseconds = 0;  // no plan within the same bytes is faster
};

// How hard a search looks. `rough` is for plans that are only told of and never made, such as relaxations: inputs, gradients and
// weights of blocks are offloaded all or not at all, as each further step needs save-sets of its own, and points that do not fit
// are followed by halving instead of one by one.
enum class Effort { full, rough };

// What all searches of a request share.
struct SearchContext {
  const Graph& graph;
  const Request& request;
  const DeviceProfile& device;
  const Pricing& pricing;
  SegmentChoices& segments;
  const std::vector<int64_t>& micro_batches;   // by size
  Effort effort = Effort::full;
};

class OffloadSearch {
 public:
  OffloadSearch(const SearchContext& context, const Offload& offload);

  // The fastest plan whose arena takes at most this many bytes; nothing where no plan fits or is faster than `to_beat`.
  std::optional<Candidate> fastest(uint64_t arena_bytes, uint64_t to_beat = UINT64_MAX);
  // A lower bound of the time of every plan within the bytes, in picoseconds; UINT64_MAX where no plan fits.
  uint64_t bound(uint64_t arena_bytes);
  // A point: the fastest plan with at most so many live bytes, of equally fast plans the one with the fewest.
  // `ahead`: points that take up to so much more time will be asked for next.
  std::optional<Candidate> fastest_with_live_bytes(uint64_t arena_bytes, uint64_t to_beat = UINT64_MAX, uint64_t ahead = 0);
  // The plan with the smallest arena of those that are tried; nothing where no micro-batch fits into the host memory.
  const std::optional<Candidate>& smallest();
  // Whether the plan of smallest() fits. with_fewest_live_bytes() is asked first: it costs less, and is mostly enough to tell.
  bool has_within(uint64_t arena_bytes) { return sizes_.within(with_fewest_live_bytes().decisions, arena_bytes) || sizes_.within(smallest()->decisions, arena_bytes); }
  // Each micro-batch has a plan with the fewest live bytes, by all variants; of these plans the one with the smallest arena.
  // Not to be asked for where no micro-batch fits into the host memory.
  const Candidate& with_fewest_live_bytes();
  // The fewest live bytes of any plan; UINT64_MAX where there is no plan.
  uint64_t fewest_live_bytes();
  // Bytes of a plan's arena, laid out.
  uint64_t arena(const Decisions& decisions) { return sizes_.of(decisions); }
  Programs programs(const Decisions& decisions) const;

  // A lower bound of the time of plans of this micro-batch within the bytes, by the linear relaxation: ops(micro_batch) or more.
  uint64_t relaxed(int64_t micro_batch, uint64_t arena_bytes);
  uint64_t ops(int64_t micro_batch) const { return size_add(context_.pricing.micro_steps(micro_batch, 1, context_.request.global_batch), update_); }
  bool fits(int64_t micro_batch, uint64_t arena_bytes) { return fewest_live_bytes(micro_batch) <= arena_bytes; }
  // The context's micro-batches of which some plan's live bytes fit, by size.
  std::vector<int64_t> fitting(uint64_t arena_bytes);
  uint64_t update_picoseconds() const { return update_; }

 private:
  // What can be chosen at one micro-batch.
  struct Choices {
    StackChoices stack;        // of best_of_kind; the last run is the head
    int64_t fixed_bytes;       // beside all that is chosen: persistent tensors and what a sample brings
  };
  // Bytes that are alive in a plan whose segments have this peak.
  uint64_t live_bytes_of(const Choices& c, int64_t peak) const { return std::max(floor_, static_cast<uint64_t>(c.fixed_bytes + peak)); }
  Choices& choices(int64_t micro_batch);
  std::vector<SegmentRun> runs(int64_t micro_batch, const SegmentRun& (SegmentChoices::*of_kind)(size_t, int64_t));
  int64_t limit_of(int64_t micro_batch, uint64_t arena_bytes);
  uint64_t fewest_live_bytes(int64_t micro_batch);
  // The fastest point of at most `high` live bytes whose arena fits, of the points that halving tries.
  std::optional<Candidate> fastest_of_halves(uint64_t arena_bytes, uint64_t high, uint64_t bound, uint64_t to_beat);
  Candidate candidate(int64_t micro_batch, const std::vector<SegmentRun>& runs, const StackChoice& choice);

  SearchContext context_;
  Offload offload_;
  std::shared_ptr<const Arena> arena_;
  uint64_t update_ = 0;                        // picoseconds
  uint64_t floor_ = 0;                         // live bytes of the programs that no decision changes
  std::vector<std::pair<size_t, int64_t>> runs_;   // kinds of segments but the head, and how many follow each other
  std::vector<int64_t> micro_batches_;         // of the context's, those that fit into the host memory
  std::map<int64_t, Choices> choices_;
  std::map<int64_t, uint64_t> fewest_live_bytes_;
  ArenaSizes sizes_;
  bool knows_smallest_ = false;
  std::optional<Candidate> fewest_, smallest_;
};

// Bytes of the block inputs that lie in host memory.
uint64_t offloaded_input_bytes(const Graph& graph, const Offload& offload, int64_t samples, uint64_t alignment);

}  // namespace stw
