// Is there a placement of buffers with constraints within a capacity? An exact search over choices: of two buffers that are alive
// together, which one lies below. Choices made bound the offsets (by differences, aligned), and bounds make more choices.
// If all buffers can lie at their lower bounds, that is a placement; else the search branches on a pair that overlaps there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stw {

// Of two buffers: offset(first) - offset(second) is `below` at most, or `above` at least. Where gaps leave several ranges of
// differences there is a choice for each that is forbidden.
struct Choice { int first, second; int64_t below, above; };

struct Movable { int64_t size, alignment, lowest, highest; };   // of a given offset, the lowest is the highest

class ChoiceSearch {
 public:
  enum class Outcome { found, infeasible, out_of_nodes };

  ChoiceSearch(std::vector<Movable> buffers, std::vector<Choice> choices);

  // Offsets whose buffers end within `capacity`, which is below size_limit.
  Outcome solve(int64_t capacity, uint64_t node_limit);
  const std::vector<int64_t>& offsets() const { return low_; }   // once found
  uint64_t nodes() const { return nodes_; }                      // of all calls

 private:
  enum State : uint8_t { open, is_below, is_above };
  enum class Kind : uint8_t { low, high, choice };
  struct Change { Kind kind; int index; int64_t before; };
  struct Frame { int choice; State first; bool second_tried; size_t changes; };

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
  std::vector<std::vector<int>> of_buffer_;   // its choices
  std::vector<int64_t> low_, high_;
  std::vector<State> state_;
  std::vector<Change> changes_;
  std::vector<int> moved_, next_;   // buffers whose bounds have changed
  std::vector<uint8_t> is_moved_;
  bool decided_ = false;
  bool interlocks_ = false;   // some buffer may lie above another by less than nothing, within its gaps
  bool gave_up_ = false;
  uint64_t nodes_ = 0;
};

}  // namespace stw
