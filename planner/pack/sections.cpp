#include "planner/pack/sections.h"

#include <algorithm>

#include "kernels/contract/sizes.h"

namespace stw {

Sections sections_of(const std::vector<Interval>& intervals) {
  struct Event {
    int64_t time;
    bool start;  // intervals are half-open, so ends come first at equal times
    int block;
    bool operator<(const Event& other) const {
      if (time != other.time) return time < other.time;
      if (start != other.start) return !start;
      return block < other.block;
    }
  };
  Sections sections;
  std::vector<Event> events;
  events.reserve(intervals.size() * 2);
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    if (interval.lower >= interval.upper || interval.size == 0) continue;
    const int block = static_cast<int>(sections.blocks.size());
    sections.blocks.push_back({0, 0, std::min(interval.size, size_limit)});
    sections.source.push_back(static_cast<int>(i));
    events.push_back({interval.lower, true, block});
    events.push_back({interval.upper, false, block});
  }
  std::sort(events.begin(), events.end());
  // The set of live intervals is maximal after a start that an end follows.
  bool grown = false;
  for (const Event& event : events) {
    Block& block = sections.blocks[event.block];
    if (event.start) {
      block.first = sections.count;
    } else {
      sections.count += grown;
      block.end = sections.count;
    }
    grown = event.start;
  }
  return sections;
}

std::vector<uint64_t> section_totals(const Sections& sections) {
  // Prefix sums of changes, in 128 bits: sums of up to 2^31 saturated sizes fit.
  std::vector<__int128> change(static_cast<size_t>(sections.count) + 1);
  for (const Block& block : sections.blocks) {
    change[block.first] += block.size;
    change[block.end] -= block.size;
  }
  std::vector<uint64_t> totals(static_cast<size_t>(sections.count));
  __int128 live = 0;
  for (size_t s = 0; s < totals.size(); ++s) {
    live += change[s];
    totals[s] = static_cast<uint64_t>(std::min<__int128>(live, size_limit));
  }
  return totals;
}

std::vector<Sections> components_of(const Sections& sections) {
  // For every section: the largest end of the blocks that start there or earlier.
  std::vector<int> reach(static_cast<size_t>(sections.count));
  for (const Block& block : sections.blocks) {
    int& end = reach[block.first];
    end = std::max(end, block.end);
  }
  std::vector<int> component(reach.size()), begin;
  int furthest = 0;
  for (int s = 0; s < sections.count; ++s) {
    if (s == furthest) begin.push_back(s);
    component[s] = static_cast<int>(begin.size()) - 1;
    furthest = std::max(furthest, reach[s]);
  }
  begin.push_back(sections.count);
  std::vector<Sections> parts(begin.size() - 1);
  for (size_t c = 0; c < parts.size(); ++c) parts[c].count = begin[c + 1] - begin[c];
  for (size_t i = 0; i < sections.blocks.size(); ++i) {
    const Block& block = sections.blocks[i];
    const size_t c = static_cast<size_t>(component[block.first]);
    parts[c].blocks.push_back({block.first - begin[c], block.end - begin[c], block.size});
    parts[c].source.push_back(static_cast<int>(i));
  }
  return parts;
}

}  // namespace stw
