// Decides whether there is a packing within a capacity: finds one, or proves that there is none.
//
// The state is a skyline: the floor of each section. Everything below a floor is placed or wasted. The search
// considers only packings in which no buffer can move down. A valley is a run of sections with equal floors
// between two higher ones, its walls. For every section of a valley, one of these holds:
// - A buffer that fits between the walls lies on the floor and covers the section.
// - No buffer does. The section is shut: its floor rises to the lower of its neighbours' floors once both
//   are higher.
//
// Only the second case wastes room, and a section can waste no more than its slack: capacity - floor - sizes
// yet to place. So where buffers fill the capacity, only the first case remains, often with one candidate or
// none. Valleys may be processed in any order. The search branches on the section with the fewest choices,
// relative to the failures seen there before.
//
// Other rules make it fast:
// - If all unplaced buffers of a section are also in a neighbour with a higher floor, the section gets that
//   floor. No solution is lost.
// - If no unplaced buffer is alive across a boundary, both sides are solved separately. If one side fails,
//   the whole fails.
// - States without a solution are remembered, across restarts too.
// - Restarts use several orders of the candidates in turn, and keep the counts of failures.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/pack/failed_states.h"
#include "planner/pack/sections.h"

namespace stw {

class PackSearch {
 public:
  enum class Outcome { found, infeasible, out_of_nodes };

  // `capacity` must be below size_limit.
  PackSearch(const Sections& sections, uint64_t capacity);

  Outcome solve(uint64_t node_limit);
  const std::vector<uint64_t>& offsets() const { return offsets_; }  // of the blocks, after Outcome::found
  uint64_t nodes() const { return nodes_; }

 private:
  // The order of the candidates.
  enum class Prefer { size, life, fit_then_area, walls_then_area };
  // The heuristics of a run. Between sections with equally many choices, a run with `least_slack` takes the
  // section with the least slack. Other runs take the section with the lowest floor.
  struct Style {
    Prefer candidate;
    bool least_slack;
  };

  enum : uint8_t {
    shut = 1,     // no buffer lies on this floor
    hanging = 2,  // waste lies below the floor: a buffer here must also rest on another section
  };

  // Sections [begin, end) that share no unplaced buffer with other sections. `parent`: the frame whose choice
  // separated the part, or -1. `next`: the next part on the agenda.
  struct Part {
    int begin, end, parent, next;
  };
  struct Frame {
    Part part;
    StateHash state;
    int section;               // the section that the frame branches on
    bool may_shut;             // whether shutting the section is still to be tried
    size_t first, next, last;  // its candidates, in candidates_
    size_t changes, parts;     // sizes of changes_ and parts_ before its first choice
  };
  // An entry of the undo log: the previous values of a section. section < 0: block ~section was placed.
  struct Change {
    int section;
    uint64_t floor;
    uint8_t flags;
  };
  // `left`, `right`: the floors of its walls, or `no_wall`.
  struct Valley {
    int begin, end;
    uint64_t left, right;
  };
  struct Branch {
    int section = -1;
    Valley valley{};
    bool may_shut = false;
    uint64_t choices = 0, weight = 1, tie = 0;  // the least choices / weight is best, then the least tie
  };

  static constexpr uint64_t no_wall = UINT64_MAX;
  static size_t at(int i) { return static_cast<size_t>(i); }

  uint64_t slack(size_t s) const { return capacity_ - floor_[s] - unplaced_size_[s]; }
  // Whether a block would rest on a section that is not hanging. Uses resting_ of the valley that weigh() or
  // list_candidates() works on.
  bool rests(const Block& block) const { return resting_[at(block.end)] > resting_[at(block.first)]; }

  Outcome run(uint64_t node_limit, Style style, bool varied);
  void place(int block);
  bool raise(int section, uint64_t floor, uint8_t flags);
  void undo(size_t changes);
  bool settle(const Part& part);
  bool follow(int section, int neighbour, bool& changed);
  bool lift_shut(const Part& part, bool& changed);
  void divide(const Part& part, int parent);
  StateHash state_of(const Part& part) const;
  bool next_valley(const Part& part, int from, Valley& valley) const;
  bool weigh(const Valley& valley, Branch& best);
  void list_candidates(const Branch& branch);
  bool open(const Part& part);
  bool advance(int failed_frame);

  std::vector<Block> blocks_;
  uint64_t capacity_;
  std::vector<std::vector<int>> starting_;  // section -> blocks that start there

  // By section; crossing_, starts_ and ends_ by the boundary before each section.
  std::vector<uint64_t> floor_, unplaced_size_;
  std::vector<uint8_t> flags_;
  std::vector<int> unplaced_, starts_, ends_, crossing_;  // counts of unplaced blocks
  std::vector<uint8_t> placed_;
  std::vector<uint64_t> offsets_;

  std::vector<Change> changes_;
  std::vector<Part> parts_;
  int agenda_ = -1;  // the next part to solve, in parts_
  std::vector<Frame> frames_;
  std::vector<int> candidates_;
  FailedStates failed_;

  Style style_{};
  bool varied_ = false;
  uint64_t nodes_ = 0;
  std::vector<uint64_t> weight_;  // failures in a section

  // Scratch memory of one step. resting_: number of earlier sections of the valley that are not hanging.
  std::vector<int> fitting_, resting_;
  std::vector<uint64_t> fitting_size_;
  std::vector<std::pair<__uint128_t, int>> ranked_;
};

}  // namespace stw
