// A fixed pseudorandom order, which is the same in every run.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace command {

enum class Order : uint8_t { shuffled, of_file };

// Fisher-Yates shuffle with splitmix64. Does nothing if the order of the file is to stay.
template <class T>
void shuffle(std::vector<T>& list, Order order) {
  if (order == Order::of_file) return;
  uint64_t state = 1337;
  for (size_t i = list.size(); i > 1; --i) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    std::swap(list[i - 1], list[(z ^ (z >> 31)) % i]);
  }
}

}  // namespace command
