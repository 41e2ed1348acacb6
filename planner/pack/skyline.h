// Packs blocks from the bottom up. The skyline has a floor for each section, on which the next block rests.
// The lowest valley of the skyline takes a block that fits between its walls, or, if none does, rises to its
// lower wall (best-fit heuristics for strip packing: Burke, Kendall and Whitwell, 2004; for offsets: Sekiyama
// et al., 2018).
//
// A rise wastes bytes. A section reaches its floor plus its unplaced blocks at least, and only a rise changes
// this. So a pass ends as soon as the waste makes its limit unreachable.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/block_tree.h"
#include "planner/pack/greedy.h"
#include "planner/pack/reach_tree.h"
#include "planner/pack/sections.h"

namespace stw {

// Which block a valley takes. All rules narrow the choice, one after the other. The rank of the blocks
// decides last.
struct SkylineRules {
  enum class Fit : uint8_t {
    any,
    flush,  // begins or ends where the valley does, or both
    level,  // fills the valley from wall to wall, or is flush with a wall and as high as it
  };
  bool over_top;  // takes a block that is alive in the valley's section of the largest reach
  Fit fit;
};

class Skyline {
 public:
  // `sections` must outlive the object.
  explicit Skyline(const Sections& sections);

  // Packs the blocks, the first one in `order` having the highest rank. Blocks that would leave a hole at
  // their side that makes a section reach above `goal` are avoided. False if the packing would reach `limit`,
  // which is at most size_limit; it is then incomplete.
  bool pack(const std::vector<int>& order, SkylineRules rules, uint64_t goal, uint64_t limit,
            GreedyPacking& packing);
  // Of the last pass: the number of blocks placed, whether a block was placed, and the section that reached
  // highest.
  size_t placed() const { return placed_; }
  bool is_placed(int block) const { return !unplaced_.contains(block); }
  int highest_section() const { return reach_.top().section; }

 private:
  // A run of sections with the same floor. `before`, `after`: its neighbours, in valleys_, or -1.
  struct Valley {
    int begin, end;
    uint64_t floor;
    int before, after;
    bool is_gone;
  };
  // A side of a valley: its neighbour there, its sections' end there, and how that neighbour refers to it.
  struct Side {
    int Valley::*neighbour, Valley::*edge, Valley::*back;
  };
  static constexpr Side left_side{&Valley::before, &Valley::begin, &Valley::after},
      right_side{&Valley::after, &Valley::end, &Valley::before};
  struct Lowest {
    uint64_t floor;
    int begin, valley;
    bool operator<(const Lowest& other) const {  // heaps have the largest element on top
      return floor != other.floor ? floor > other.floor : begin > other.begin;
    }
  };

  void push(int valley);
  void join_neighbours(int valley);
  void split_off(int valley, int begin, int end, const Side& side);
  void put(int valley, const Block& block);
  bool rise(int valley);
  uint64_t wall(int neighbour, uint64_t floor) const;
  uint64_t reach_beside(const Valley& valley, const Block& block) const;
  int fitting(const Window& window, const Valley& valley, SkylineRules::Fit fit) const;
  int choose(const Valley& valley, SkylineRules rules, uint64_t goal) const;

  const Sections& sections_;
  const std::vector<uint64_t> totals_;
  BlockTree unplaced_;
  ReachTree reach_;
  std::vector<Valley> valleys_;
  std::vector<Lowest> lowest_;  // a heap; valleys that have changed since are skipped
  size_t placed_ = 0;
};

}  // namespace stw
