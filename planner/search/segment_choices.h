// What the segments of a graph can choose at each micro-batch, computed once for all searches that ask for it.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "planner/search/stack.h"

namespace stw {

class SegmentChoices {
 public:
  SegmentChoices(const Graph& graph, const Request& request, const Pricing& pricing)
      : graph_(graph), request_(request), pricing_(pricing) {}

  // The number of a segment's kind. Segments of a kind are alike, and so is what lies in host memory of them and of their
  // neighbours.
  size_t kind(const std::shared_ptr<const Arena>& arena, size_t segment);
  // The variants of one segment of that kind, normalised; picoseconds are those of a whole step.
  const SegmentRun& of_kind(size_t kind, int64_t micro_batch);
  // The same; but of a kind with many variants, copies which something is copied, only the best ones (thin). What is offloaded is
  // tried in steps anyway, and mixtures of all variants for each of these steps would take minutes in deep models.
  const SegmentRun& best_of_kind(size_t kind, int64_t micro_batch);
  // The head's variants, numbers of loss chunks; picoseconds are those of all micro-steps of a step without recompute.
  const SegmentRun& of_head(const Arena& arena, int64_t micro_batch);

 private:
  struct Place {
    int segment_class = -1;
    unsigned on_host = 0;       // a bit each: whether its gradients, its weights, its input, its output lie in host memory
    bool overlaps = false;   // copies run copies ops, so that the segment's own are emitted in another order
    auto operator<=>(const Place&) const = default;
  };
  Place place(const Arena& arena, size_t segment) const;

  const Graph& graph_;
  const Request& request_;
  const Pricing& pricing_;
  std::map<std::array<Place, 3>, size_t> kinds_;   // itself and its two neighbours
  struct Profile {
    std::shared_ptr<const SegmentProfile> profile;
    NeighbourCopies copies;
    bool offloads;                                 // whether anything at all lies in host memory
    bool has_copies;                               // whether a micro-step copies something of the segment, or copies it
    std::map<int64_t, SegmentRun> at, best;           // by micro-batch
  };
  std::vector<Profile> profiles_;
  std::map<Place, std::shared_ptr<const SegmentProfile>> traced_;   // by place alone, whatever the neighbours are
  std::vector<std::shared_ptr<const Arena>> arenas_;                // kept alive: the profiles refer to them
  std::map<int64_t, SegmentRun> head_;
};

}  // namespace stw
