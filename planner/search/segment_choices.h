// Computes the variants of a graph's segments at each micro-batch, once for all searches of a request.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "planner/search/stack.h"

namespace stw {

// Whether micro-steps of both graphs run the same ops on the same tensors, so that SegmentChoices of one
// graph serve the other too. Their updates may differ.
bool have_same_micro_steps(const Graph& a, const Graph& b);

class SegmentChoices {
 public:
  // `cache` must live at least as long.
  SegmentChoices(const Graph& graph, const Request& request, const Pricing& pricing, TraceCache& cache)
      : graph_(graph), request_(request), pricing_(pricing), cache_(cache), lives_(segment_lives(graph)) {}

  // The index of a segment's kind. Segments of one kind are equal, have the same tensors in host memory, and
  // have neighbours with the same tensors in host memory.
  size_t kind(const std::shared_ptr<const Arena>& arena, size_t segment);
  // The variants of one segment of this kind, normalised. `picoseconds` is the time in a whole step.
  const SegmentRun& of_kind(size_t kind, int64_t micro_batch);
  // Only the best variants (see `thin`), if the kind has many and copies run while its segments compute;
  // otherwise all. A search with all variants for each offload choice would take minutes for deep models, and
  // offload choices are coarse anyway.
  const SegmentRun& best_of_kind(size_t kind, int64_t micro_batch);
  // The head's variants: numbers of loss chunks. `picoseconds` is the time of all micro-steps of a step,
  // without recompute.
  const SegmentRun& of_head(const Arena& arena, int64_t micro_batch);
  // Lower bounds of of_kind and of_head for all micro-batches in a range. The time of a segment includes that
  // of its ops, which of_kind counts in the head.
  const SegmentRun& least_of_kind(size_t kind, const MicroBatches& range);
  const SegmentRun& least_of_head(const Arena& arena, const MicroBatches& range);

 private:
  struct Place {
    int segment_class = -1;
    unsigned on_host = 0;  // bits: whether its gradients, weights, input and output lie in host memory
    // Whether copies run while ops compute: then the segment's own copies are emitted in another order.
    bool overlaps = false;
    auto operator<=>(const Place&) const = default;
  };
  Place place(const Arena& arena, size_t segment) const;

  const Graph& graph_;
  const Request& request_;
  const Pricing& pricing_;
  TraceCache& cache_;
  const std::vector<SegmentLives> lives_;         // by segment
  std::map<std::array<Place, 3>, size_t> kinds_;  // key: the segment and its two neighbours
  // What does not depend on neighbours.
  struct Traced {
    SegmentProfile profile;
    std::map<int64_t, std::vector<OwnFigures>> own, least_bytes;  // by micro-batch
    std::map<MicroBatches, std::vector<OwnFigures>> least;
  };
  struct Profile {
    Traced* traced;
    NeighbourCopies copies;
    bool has_copies;  // whether a micro-step copies tensors of this segment, or others while it computes
    std::map<int64_t, SegmentRun> at, best;  // by micro-batch
    std::map<MicroBatches, SegmentRun> least;
  };
  std::vector<Profile> profiles_;
  std::map<Place, Traced> traced_;
  // By whether something lies in host memory, whether copies overlap ops, and the number of inputs.
  std::map<std::tuple<bool, bool, int>, Arena> arenas_of_traces_;
  std::vector<std::shared_ptr<const Arena>> arenas_;  // kept alive because profiles refer to them
  std::map<int64_t, SegmentRun> head_;
  std::map<MicroBatches, SegmentRun> least_head_;
};

}  // namespace stw
