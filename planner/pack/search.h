// Is there a packing within a capacity? A search that finds one or proves that there is none.
//
// The state is a skyline: the floor of each section, below which everything is placed or wasted. Packings are settled
// (no buffer could move down), so wherever the floor is lowest between two walls, in a valley, and whichever section of
// the valley one looks at, one of these holds:
//  - a buffer that fits between the walls lies on that floor and covers the section, or
//  - nothing does: the section is shut, and its floor rises to the lower of its neighbours' once both are higher.
// Only the second wastes room, and a section has no more of it than its slack: capacity - floor - sizes yet to place.
// So where buffers fill the capacity there is nothing but the first, often with one candidate or none. Valleys may be
// taken in any order: the search branches where there are fewest choices for the failures seen there before.
//
// What makes it fast beside that:
//  - a section all of whose unplaced buffers are also in a neighbour with a higher floor takes over that floor, at no
//    cost;
//  - where no unplaced buffer is alive across a boundary both sides are solved apart; one that fails fails the whole;
//  - states without a solution are remembered, across restarts too;
//  - restarts, with several orders of the candidates in turn and what was learnt about where failures arise.
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

  // `capacity` is below size_limit.
  PackSearch(const Sections& sections, uint64_t capacity);

  Outcome solve(uint64_t node_limit);
  const std::vector<uint64_t>& offsets() const { return offsets_; }  // of the blocks, once found
  uint64_t nodes() const { return nodes_; }

 private:
  // Which candidate first, and among sections with as many choices which one to branch on.
  enum class Prefer { size, life, fit_then_area, walls_then_area };
  struct Style { Prefer candidate; bool least_slack; };  // else the lowest floor

  enum : uint8_t {
    shut = 1,      // no buffer lies on this floor
    hanging = 2,   // the floor was raised over waste: a buffer must rest on something else too
  };

  // Sections [begin, end) that share no unplaced buffer with others.
  struct Part { int begin, end, parent, next; };  // parent: the frame that cut it off, or -1; next: on the agenda
  struct Frame {
    Part part;
    StateHash state;
    int section;                            // that the frame branches on
    bool may_shut;                          // not tried yet
    size_t first, next, last;               // its candidates, in candidates_
    size_t changes, parts;                  // as they were before the first choice
  };
  struct Change { int section; uint64_t floor; uint8_t flags; };  // what was; section < 0: block ~section was placed
  struct Valley { int begin, end; uint64_t left, right; };  // left, right: the floors of its walls, or `no_wall`
  struct Branch {
    int section = -1;
    Valley valley{};
    bool may_shut = false;
    uint64_t choices = 0, weight = 1, tie = 0;  // the least of choices / weight is best, then the least tie
  };

  static constexpr uint64_t no_wall = UINT64_MAX;
  static size_t at(int i) { return static_cast<size_t>(i); }

  uint64_t slack(size_t s) const { return capacity_ - floor_[s] - unplaced_size_[s]; }
  // Of a block within a valley that weigh() or list_candidates() looks at.
  bool rests(const Block& block) const {
    return resting_[at(block.end)] > resting_[at(block.first)];
  }

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
  std::vector<std::vector<int>> starting_;  // blocks by their first section

  // State, of sections and of the boundaries before them.
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
  std::vector<uint64_t> weight_;  // failures seen in a section

  // Scratch of one step. resting_: sections of the valley before this one that do not hang.
  std::vector<int> fitting_, resting_;
  std::vector<uint64_t> fitting_size_;
  std::vector<std::pair<__uint128_t, int>> ranked_;
};

}  // namespace stw
