// Decides whether buffers with constraints can be placed within a capacity. The search is exact. A choice
// says which buffer of a pair lies below the other; there is one for each pair of buffers that are alive
// together. Choices bound the offsets, and bounds force more choices. If all buffers can lie at their lower
// bounds, these are a placement. Otherwise the search branches on a pair that overlaps there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stw {

// For a pair of buffers: offset(first) - offset(second) is at most `below`, or at least `above`. The values
// between the two are forbidden. A pair with gaps may have several forbidden ranges, and a choice for each.
struct Choice {
  int first, second;
  int64_t below, above;
};

// A buffer and the bounds of its offset. They are equal if the offset is given.
struct Movable {
  int64_t size, alignment, lowest, highest;
};

class ChoiceSearch {
 public:
  enum class Outcome { found, infeasible, out_of_nodes };

  ChoiceSearch(std::vector<Movable> buffers, std::vector<Choice> choices);

  // Searches for offsets such that all buffers end within `capacity`, which must be below size_limit.
  Outcome solve(int64_t capacity, uint64_t node_limit);
  const std::vector<int64_t>& offsets() const { return low_; }  // after Outcome::found
  uint64_t nodes() const { return nodes_; }                     // in all calls

 private:
  enum State : uint8_t { open, is_below, is_above };
  enum class Kind : uint8_t { low, high, choice };
  struct Change {
    Kind kind;
    int index;
    int64_t before;
  };
  struct Frame {
    int choice;
    State first;
    bool second_tried;
    size_t changes;
  };

  bool raise(int buffer, int64_t low);
  bool lower(int buffer, int64_t high);
  bool decide(int choice, State state);
  bool apply(const Choice& choice, State state);
  bool propagate();
  int branch(State& first) const;
  void undo(size_t changes);

  static size_t at(int i) { return static_cast<size_t>(i); }

  std::vector<Movable> buffers_;
  std::vector<Choice> choices_;
  std::vector<std::vector<int>> of_buffer_;  // buffer -> its choices
  std::vector<int64_t> low_, high_;
  std::vector<State> state_;
  std::vector<Change> changes_;
  std::vector<int> moved_, next_;  // buffers whose bounds have changed
  std::vector<uint8_t> is_moved_;
  bool decided_ = false;
  bool interlocks_ = false;  // some choice allows a buffer to lie inside the gaps of another
  bool gave_up_ = false;
  uint64_t nodes_ = 0;
};

}  // namespace stw
