// The plans of one numerics with one choice of what is offloaded: for a number of bytes the fastest, and the one that needs
// the fewest.
//
// The plans form a staircase, the same for every budget: by time and by the bytes that are alive at once (which no layout
// undercuts) none of them is beaten in both. The answer to a budget is the fastest stair whose laid-out arena fits. So a
// tighter budget never raises the peak and a looser one never slows the plan. Where something is copied beside many choices, stairs are made of
// the best of them, and the plan with the fewest bytes of all.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "planner/arena_sizes.h"
#include "planner/plan.h"
#include "planner/pricing.h"
#include "planner/segment_choices.h"

namespace stw {

struct Candidate {
  Decisions decisions;
  uint64_t picoseconds = 0;        // of a step
  uint64_t live_bytes = 0;         // of the arena: no layout is smaller
  uint64_t bound_picoseconds = 0;  // no plan within the same bytes is faster
};

// `rough` is for what is only told of, and not made: with larger steps of what may be offloaded of blocks (all or none: each new one takes
// save-sets of its own), and not all stairs tried.
enum class Effort { full, rough };

// What all levels of a search share.
struct SearchContext {
  const Graph& graph;
  const Request& request;
  const DeviceProfile& device;
  const Pricing& pricing;
  SegmentChoices& segments;
  const std::vector<int64_t>& micro_batches;   // by size
  Effort effort = Effort::full;
};

class Level {
 public:
  Level(const SearchContext& context, const Offload& offload);

  // The fastest plan whose arena takes at most this many bytes; nothing where it would take `known` or longer.
  std::optional<Candidate> fastest(uint64_t arena_bytes, uint64_t known = UINT64_MAX);
  // None is faster.
  uint64_t bound(uint64_t arena_bytes);
  // The fastest by the bytes that are alive at once, of equal ones the one with the fewest: a stair.
  // `ahead`: stairs of so much more time will be asked for next.
  std::optional<Candidate> fastest_alive(uint64_t arena_bytes, uint64_t known = UINT64_MAX, uint64_t ahead = 0);
  // The plan with the smallest arena of those that are tried; nothing where no micro-batch fits into the host memory.
  const std::optional<Candidate>& smallest();
  // Whether smallest() takes at most so many bytes, which the leanest mostly tells.
  bool has_within(uint64_t arena_bytes) { return sizes_.within(leanest().decisions, arena_bytes) || sizes_.within(smallest()->decisions, arena_bytes); }
  // The smallest arena among plans that have the fewest bytes alive at a micro-batch, by all variants. Not where no micro-batch fits.
  const Candidate& leanest();
  // No plan has fewer bytes alive; UINT64_MAX where there is none.
  uint64_t least_alive();
  // Bytes of a plan's arena, laid out.
  uint64_t arena(const Decisions& decisions) { return sizes_.of(decisions); }
  Programs programs(const Decisions& decisions) const;

  // No plan of this micro-batch within the bytes is faster. At least what its ops take without recompute.
  uint64_t relaxed(int64_t micro_batch, uint64_t arena_bytes);
  uint64_t ops(int64_t micro_batch) const { return size_add(context_.pricing.micro_steps(micro_batch, 1, context_.request.global_batch), update_); }
  bool fits(int64_t micro_batch, uint64_t arena_bytes) { return least_alive(micro_batch) <= arena_bytes; }
  // Of the context's micro-batches those that fit, by size.
  std::vector<int64_t> fitting(uint64_t arena_bytes);
  uint64_t update_picoseconds() const { return update_; }

 private:
  // What can be chosen at one micro-batch.
  struct Choices {
    StackChoices stack;        // the last stretch is the head; best_of_kind
    int64_t fixed_bytes;       // below them all: persistent tensors, tokens and targets
  };
  // Bytes that are alive in a plan whose segments have this peak.
  uint64_t alive(const Choices& c, int64_t peak) const { return std::max(floor_, static_cast<uint64_t>(c.fixed_bytes + peak)); }
  Choices& choices(int64_t micro_batch);
  std::vector<Stretch> runs(int64_t micro_batch, const Stretch& (SegmentChoices::*of_kind)(size_t, int64_t));
  int64_t limit_of(int64_t micro_batch, uint64_t arena_bytes);
  uint64_t least_alive(int64_t micro_batch);
  // The fastest stair up to `high` whose arena takes at most so many bytes, of those that are tried.
  std::optional<Candidate> fastest_of_halves(uint64_t arena_bytes, uint64_t high, uint64_t bound, uint64_t known);
  Candidate candidate(int64_t micro_batch, const std::vector<Stretch>& runs, const StackChoice& choice);

  SearchContext context_;
  Offload offload_;
  std::shared_ptr<const Arena> arena_;
  uint64_t update_ = 0;                        // picoseconds
  uint64_t floor_ = 0;                         // bytes alive in programs that no decision changes
  std::vector<std::pair<size_t, int64_t>> runs_;   // kinds of segments but the head, and how many follow each other
  std::vector<int64_t> micro_batches_;         // of the context's, those that fit into the host memory
  std::map<int64_t, Choices> choices_;
  std::map<int64_t, uint64_t> least_alive_;
  ArenaSizes sizes_;
  bool knows_smallest_ = false;
  std::optional<Candidate> leanest_, smallest_;
};

// Bytes of the block inputs that lie in host memory.
uint64_t offloaded_input_bytes(const Graph& graph, const Offload& offload, int64_t samples, uint64_t alignment);

}  // namespace stw
