// Lower bounds of the time of plans that offload, without a search for their save-sets.
//
// Suppose that a plan offloads at least as much as one choice, `lower`, and at most as much as another,
// `upper`. Its update takes at least as long as the copies of `lower`. Its micro-steps take at least as long
// as the ops of a plan that offloads nothing and has as many more bytes as `upper` saves, and at least as
// long as the copies of `lower`. The plans between two choices are a cell. Smaller cells have closer bounds.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/offload_search.h"

namespace stw {

// An offload choice, and the bytes and times that follow from it alone.
struct OffloadFigures {
  Offload offload;
  uint64_t resident_bytes = 0;  // resident bytes of the arena, without any program
  uint64_t host_bytes = 0;      // without block inputs
  uint64_t update_bytes = 0;    // the part of host_bytes that the update copies
  uint64_t gradient_bytes = 0;  // the part of update_bytes that the update only reads
  // If copies run while ops compute: picoseconds of the copies of gradients and weights in the first
  // micro-step and in each later one.
  uint64_t first_fetches = 0, next_fetches = 0, stores = 0;
  std::vector<int> inputs;  // block inputs, which each micro-step stores and fetches
};

class OffloadBound {
 public:
  // `plain`: the search that offloads nothing.
  OffloadBound(const SearchContext& context, OffloadSearch& plain);

  // The figures of a choice. They are sums over the kinds of tensors, and those of one kind are kept.
  OffloadFigures measure(const Offload& offload);
  // The same at once.
  OffloadFigures measure_whole(const Offload& offload) const;
  uint64_t least_update(const OffloadFigures& choice) const;  // lower bound of the update's picoseconds
  // A lower bound of the picoseconds of the plans in a cell. UINT64_MAX if it is not below `limit`.
  uint64_t of_cell(const OffloadFigures& lower, const OffloadFigures& upper, uint64_t arena_bytes,
                   uint64_t limit = UINT64_MAX);
  // Numbers of offloaded parts: of states and then masters, of gradients, weights and inputs.
  static constexpr size_t dimensions = 4;
  using Corner = std::array<int, dimensions>;
  Offload offload(const Corner& corner) const;
  Corner corner(const Offload& offload) const;

  // A lower bound of the picoseconds of all plans that offload any numbers of parts, all optimizer states
  // before the first master. At most `time`. Cuts cells until none has a lower bound, or many were cut.
  // With full effort, searches then raise a bound that is still lower than `time`.
  uint64_t of_all(uint64_t arena_bytes, uint64_t time);
  // Choices in the cells with the least bounds, after few of those searches. Empty if the bound is close to
  // `time`.
  std::vector<Corner> promising(uint64_t arena_bytes, uint64_t time);
  // A lower bound for a cell from the search of its lower corner. It is close for small cells, and takes
  // longer.
  uint64_t of_cell_by_search(const Corner& lower, const Corner& upper, uint64_t arena_bytes,
                             uint64_t limit = UINT64_MAX);
  // Call this when the request's host memory changes.
  void forget_searches() { searches_.clear(); }
  int most_parts(size_t dimension) const { return dimension == 0 ? most_states() : most_blocks(); }

 private:
  class Cells;
  Cells cut_cells(uint64_t arena_bytes, uint64_t time);
  // Raises the bounds of the cells with the least bounds until the gap is at most `gap`, or the work is done.
  void raise(Cells& cells, double gap, int most) const;
  int most_states() const;
  int most_blocks() const { return context_.graph.blocks(); }
  const OffloadFigures& figures(const Corner& corner);
  uint64_t copying(OpKind kind, uint64_t bytes) const;  // picoseconds
  // A lower bound of the picoseconds of the copies in the micro-steps of a step, in either direction.
  uint64_t copies(const OffloadFigures& choice, const MicroBatches& range) const;

  SearchContext context_;
  OffloadSearch& plain_;
  std::vector<bool> is_updated_;
  OffloadFigures nothing_;
  // By kind, number of parts, and whether copies overlap ops.
  std::map<std::tuple<Offloaded, int, bool>, OffloadFigures> of_kinds_;
  std::map<Corner, OffloadFigures> figures_;
  std::map<Corner, std::unique_ptr<OffloadSearch>> searches_;
};

}  // namespace stw
