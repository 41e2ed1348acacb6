// Finds plans for one numerics and one choice of what lies in host memory: the fastest plan for a number of
// bytes, and the plan that needs the fewest bytes.
//
// The live bytes of a plan are the most bytes that are alive at one instruction. No layout needs fewer. A
// plan is a Pareto point if no other plan of this search beats it in both time and live bytes. The Pareto
// points are the same for every budget. The answer to a budget is the fastest Pareto point whose arena, once
// laid out, fits. So a tighter budget never raises the peak, and a looser budget never slows the plan. If
// something is offloaded and blocks differ from their neighbours, both hold only up to the tolerance of
// stack.h.
//
// If a segment has many variants, and copies run while it computes, Pareto points use only its best variants
// (best_of_kind). The plan with the fewest live bytes may use all variants.
#pragma once
#include <algorithm>
#include <functional>
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
  uint64_t picoseconds = 0;        // time of a step
  uint64_t live_bytes = 0;         // most bytes of the arena that are alive at once; no layout is smaller
  uint64_t bound_picoseconds = 0;  // lower bound: no plan within the same bytes is faster
};

// How thorough a search is. `rough` is for questions about bytes. It offloads the inputs, gradients and
// weights of all blocks or of none, because each number in between needs save-sets of its own. It also tries
// fewer Pareto points for the smallest plan.
enum class Effort { full, rough };

// All searches of a request share this.
struct SearchContext {
  const Graph& graph;
  const Request& request;
  const DeviceProfile& device;
  const Pricing& pricing;
  SegmentChoices& segments;
  const std::vector<int64_t>& micro_batches;  // ascending
  Effort effort = Effort::full;
  std::shared_ptr<KnownHeights> known = std::make_shared<KnownHeights>();
};

class OffloadSearch {
 public:
  OffloadSearch(const SearchContext& context, const Offload& offload);
  // Only for quick_bound. `least_update`: a lower bound of the update's picoseconds.
  OffloadSearch(const SearchContext& context, const Offload& offload, uint64_t least_update);

  // The fastest plan whose arena takes at most this many bytes. Empty if no plan fits, or none takes less
  // time than `to_beat`.
  std::optional<Candidate> fastest(uint64_t arena_bytes, uint64_t to_beat = UINT64_MAX);
  // The same among Pareto points only. Quicker than fastest(), and its plan is seldom slower.
  std::optional<Candidate> fastest_point(uint64_t arena_bytes, uint64_t to_beat);
  // A lower bound of the picoseconds of every plan within the bytes. UINT64_MAX if it is not below `limit`,
  // or no plan fits. Quicker for lower limits.
  uint64_t bound(uint64_t arena_bytes, uint64_t limit = UINT64_MAX);
  // The same by fewer figures, for bytes arena_bytes(micro-batch) that grow with the micro-batch.
  uint64_t quick_bound(const std::function<uint64_t(int64_t)>& arena_bytes, uint64_t limit);
  // A Pareto point: the fastest plan with at most this many live bytes; of equally fast plans the one with
  // the fewest. `ahead`: the caller will then ask for Pareto points that take up to this much more time.
  std::optional<Candidate> fastest_with_live_bytes(uint64_t arena_bytes, uint64_t to_beat = UINT64_MAX,
                                                   uint64_t ahead = 0);
  // The plan with the smallest arena of those that the search tries. Empty if no micro-batch fits into the
  // host memory.
  const std::optional<Candidate>& smallest();
  // Whether the plan of smallest() fits. Ends the search for that plan as soon as this is known.
  bool smallest_fits(uint64_t arena_bytes);
  // For each micro-batch, finds the plan with the fewest live bytes among the plans made of all variants.
  // Returns the one of these plans that has the smallest arena. Requires that some micro-batch fits into the
  // host memory.
  const Candidate& with_fewest_live_bytes();
  // The fewest live bytes of any plan. UINT64_MAX if there is no plan.
  uint64_t fewest_live_bytes();
  // The fewest live bytes of micro-steps, beyond the resident bytes.
  uint64_t fewest_step_bytes();
  // Bytes of a plan's arena after layout.
  uint64_t arena(const Decisions& decisions) { return sizes_.of(decisions); }
  // Whether they are at most this many. Quicker than arena().
  bool within(const Decisions& decisions, uint64_t bytes) { return sizes_.within(decisions, bytes); }
  Programs programs(const Decisions& decisions) const;

  // A lower bound of the picoseconds of plans with this micro-batch within the bytes, by the linear
  // relaxation. At least ops(micro_batch).
  uint64_t relaxed(int64_t micro_batch, uint64_t arena_bytes);
  uint64_t ops(int64_t micro_batch) const {
    return size_add(context_.pricing.micro_steps(micro_batch, 1, context_.request.global_batch), update_);
  }
  bool fits(int64_t micro_batch, uint64_t arena_bytes) {
    return fewest_live_bytes(micro_batch) <= arena_bytes;
  }
  // Whether a plan with a single micro-step may fit.
  bool fits_in_one_step(uint64_t arena_bytes) {
    const int64_t batch = context_.request.global_batch;
    return !micro_batches_.empty() && micro_batches_.back() == batch && fits(batch, arena_bytes);
  }
  // A lower bound of `relaxed` for a range of micro-batches. UINT64_MAX if no plan with them fits.
  uint64_t least(const MicroBatches& range, uint64_t arena_bytes);
  uint64_t update_picoseconds() const { return update_; }

 private:
  // The choices at one micro-batch.
  struct Choices {
    StackChoices stack;   // made of best_of_kind; the last run is the head
    int64_t fixed_bytes;  // bytes that no choice changes: persistent tensors and a sample's inputs
  };
  // Live bytes of a plan whose segments have this peak.
  uint64_t live_bytes_of(const Choices& c, int64_t peak) const {
    return std::max(fixed_program_bytes_, static_cast<uint64_t>(c.fixed_bytes + peak));
  }
  Choices& choices(int64_t micro_batch);
  std::vector<SegmentRun> runs(int64_t micro_batch,
                               const SegmentRun& (SegmentChoices::*of_kind)(size_t, int64_t));
  int64_t limit_of(int64_t micro_batch, uint64_t arena_bytes);
  int64_t fixed_bytes(int64_t micro_batch) const;
  uint64_t fewest_live_bytes(int64_t micro_batch);
  // Bisects between `best`, which fits, and `high` live bytes for a faster Pareto point that fits.
  void improve(Candidate& best, uint64_t arena_bytes, uint64_t high, uint64_t ahead);
  // Sets `bound` to that of the first Pareto point. Leaves it empty if there is none.
  std::optional<Candidate> fastest_point(uint64_t arena_bytes, uint64_t to_beat,
                                         std::optional<uint64_t>& bound);
  // Tries to improve smallest_ by one more Pareto point. False if no more are tried.
  bool improve_smallest();
  Candidate candidate(int64_t micro_batch, const std::vector<SegmentRun>& runs, const StackChoice& choice);

  SearchContext context_;
  Offload offload_;
  std::shared_ptr<const Arena> arena_;
  uint64_t update_ = 0;  // picoseconds
  // The most live bytes of the programs that do not depend on decisions.
  uint64_t fixed_program_bytes_ = 0;
  // Runs of segments of the same kind, without the head: the kind, and the number of segments.
  std::vector<std::pair<size_t, int64_t>> runs_;
  std::vector<int64_t> micro_batches_;  // those of the context that fit into the host memory
  std::map<int64_t, Choices> choices_;
  std::map<MicroBatches, std::vector<SegmentRun>> least_;
  std::map<int64_t, uint64_t> fewest_live_bytes_;
  ArenaSizes sizes_;
  std::optional<Candidate> fewest_, smallest_;
  // The search for smallest(). Pareto points with live bytes from `low` to `high` may improve it.
  struct Improvement {
    uint64_t first, gap;  // `low` at first, and `high` minus it
    uint64_t low, high;
    uint64_t points = 0;  // number of points that were tried, until one was better
    int halvings = 0;     // number of times that the rest was bisected
    bool is_bisected = false;
  };
  std::optional<Improvement> improvement_;
};

// Bytes of the block inputs that lie in host memory.
uint64_t offloaded_input_bytes(const Graph& graph, const Offload& offload, int64_t samples,
                               uint64_t alignment);

}  // namespace stw
