// Remembers states of the search that have no solution, as 128-bit hashes. A collision of two hashes could
// give a wrong answer. For 2^22 states and a million lookups, its probability is about 2^-86.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stw {

// A bijection that mixes all bits (the finalizer of splitmix64).
inline uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

struct StateHash {
  uint64_t low, high;
  bool operator==(const StateHash&) const = default;
};

class FailedStates {
 public:
  bool contains(StateHash state) const { return slots_[slot_of(state)] == state; }

  // Does nothing if the table is full: the state is then searched again.
  void insert(StateHash state) {
    if (count_ * 2 >= slots_.size()) {
      if (slots_.size() >= most_slots) return;
      std::vector<StateHash> old(slots_.size() * 2, empty);
      old.swap(slots_);
      for (const StateHash& s : old)
        if (s != empty) slots_[slot_of(s)] = s;
    }
    StateHash& slot = slots_[slot_of(state)];
    count_ += slot == empty;
    slot = state;
  }

 private:
  static constexpr StateHash empty{0, 0};
  static constexpr size_t most_slots = size_t{1} << 22;  // 64 MiB

  // The slot of the state, or the free slot where it belongs.
  size_t slot_of(StateHash state) const {
    const size_t mask = slots_.size() - 1;
    size_t at = state.low & mask;
    while (slots_[at] != empty && slots_[at] != state) at = (at + 1) & mask;
    return at;
  }

  std::vector<StateHash> slots_ = std::vector<StateHash>(1024, empty);
  size_t count_ = 0;
};

}  // namespace stw
