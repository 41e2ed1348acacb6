// How well the addresses of a warp fit the memory's sectors and banks.
#include <algorithm>

#include "tests/ptx/machine.h"

namespace ptx {

void count_global(Traffic& traffic, const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  constexpr uint64_t sector = 32;
  std::array<uint64_t, lanes> named = {};
  size_t count = 0;
  for (uint32_t left = mask; left; left &= left - 1) named[count++] = addresses[__builtin_ctz(left)];
  std::sort(named.begin(), named.begin() + count);
  const size_t different =
      static_cast<size_t>(std::unique(named.begin(), named.begin() + count) - named.begin());
  uint64_t sectors = 0, last = ~uint64_t{0};
  for (size_t k = 0; k < different; ++k) {  // Aligned: no access crosses a sector.
    sectors += named[k] / sector != last;
    last = named[k] / sector;
  }
  traffic.sectors += sectors;
  traffic.least_sectors += (different * bytes + sector - 1) / sector;
}

void count_shared(Traffic& traffic, const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  const int together = static_cast<int>(bytes <= 4 ? 32 : 128 / bytes);  // Lanes.
  for (int first = 0; first < lanes; first += together) {
    std::array<std::vector<uint64_t>, 32> words;  // Distinct words of every bank.
    uint64_t turns = 0;
    for (int l = first; l < first + together; ++l) {
      if (!(mask >> l & 1)) continue;
      for (uint64_t word = addresses[l] / 4; word * 4 < addresses[l] + bytes; ++word) {
        auto& bank = words[word % 32];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
        turns = std::max<uint64_t>(turns, bank.size());
      }
    }
    traffic.turns += turns;
    traffic.least_turns += turns > 0;
  }
}

}  // namespace ptx
