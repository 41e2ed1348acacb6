// What the segments of a graph can choose at each micro-batch, computed once for all levels of a search that ask for it.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "planner/stack.h"

namespace stw {

class SegmentChoices {
 public:
  SegmentChoices(const Graph& graph, const Request& request, const Pricing& pricing)
      : graph_(graph), request_(request), pricing_(pricing) {}

  // One number for segments that are alike, they and what of them and beside them lies in host memory.
  size_t kind(const std::shared_ptr<const Arena>& arena, size_t segment);
  // Normalised, for one segment of that kind; picoseconds are those of a step.
  const Stretch& of_kind(size_t kind, int64_t micro_batch);
  // Of a kind beside which something is copied only the best of many: what is offloaded is tried in steps anyway, and for each of these
  // mixtures of all would take minutes in deep models.
  const Stretch& best_of_kind(size_t kind, int64_t micro_batch);
  // Of the head: its loss chunks; picoseconds are those of a step's micro-steps without recompute.
  const Stretch& of_head(const Arena& arena, int64_t micro_batch);

 private:
  struct Place {
    int segment_class = -1;
    unsigned away = 0;       // a bit each: whether its gradients, its weights, its input, its output lie in host memory
    bool overlaps = false;   // copies run beside ops, so that its own are emitted in another order
    auto operator<=>(const Place&) const = default;
  };
  Place place(const Arena& arena, size_t segment) const;

  const Graph& graph_;
  const Request& request_;
  const Pricing& pricing_;
  std::map<std::array<Place, 3>, size_t> kinds_;   // itself and its two neighbours
  struct Profile {
    std::shared_ptr<const SegmentProfile> profile;
    NeighbourCopies beside;
    bool offloads;                                 // anything at all
    bool has_copies;                               // of its own in a micro-step, or beside it
    std::map<int64_t, Stretch> at, best;           // by micro-batch
  };
  std::vector<Profile> profiles_;
  std::map<Place, std::shared_ptr<const SegmentProfile>> traced_;   // whatever lies beside it
  std::vector<std::shared_ptr<const Arena>> arenas_;                // that the profiles look at
  std::map<int64_t, Stretch> head_;
};

}  // namespace stw
