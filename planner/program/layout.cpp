#include "planner/program/layout.h"

#include "kernels/contract/sizes.h"

namespace stw {

namespace {

constexpr uint64_t search_nodes = 1500;  // a few microseconds each
// More buffers are not searched, but packed in passes over all of them. This many nodes are eight passes.
constexpr size_t buffers_to_search = 4096;
constexpr uint64_t nodes_of_a_buffer = 4;

}  // namespace

Placement place(const std::vector<Interval>& intervals, uint64_t enough) {
  const uint64_t nodes =
      intervals.size() <= buffers_to_search ? search_nodes : nodes_of_a_buffer * intervals.size();
  Packing packing = pack(intervals, {.capacity = 0, .node_limit = nodes, .enough = enough});
  return {std::move(packing.offsets), packing.height, packing.bound};
}

namespace {

// The buffers of a program that are packed.
struct Packed {
  uint64_t base;  // where they begin: above the caches
  std::vector<Interval> intervals;
  std::vector<size_t> index;  // for each interval: its buffer
};

Packed packed_buffers(const Program& program, uint64_t alignment) {
  Packed packed{program.base, {}, {}};
  std::vector<bool> is_cache(program.buffers.size());
  for (int c : program.caches) {
    packed.base = size_add(packed.base, round_up(program.buffers[c].bytes, alignment));
    is_cache[c] = true;
  }
  packed.intervals.reserve(program.buffers.size());
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (is_cache[i]) continue;
    const Buffer& b = program.buffers[i];
    packed.intervals.push_back({b.first, b.last + 1, round_up(b.bytes, alignment)});
    packed.index.push_back(i);
  }
  return packed;
}

}  // namespace

void lay_out(Program& program, uint64_t alignment, uint64_t enough) {
  // Caches come first, below everything else, and in the same order in every program that shares them.
  uint64_t base = program.base;
  for (int c : program.caches) {
    program.buffers[c].offset = base;
    base = size_add(base, round_up(program.buffers[c].bytes, alignment));
  }
  const Packed packed = packed_buffers(program, alignment);
  const Placement placement = place(packed.intervals, enough > base ? enough - base : 0);
  for (size_t i = 0; i < packed.index.size(); ++i)
    program.buffers[packed.index[i]].offset = size_add(base, placement.offsets[i]);
  program.end = size_add(base, placement.height);
}

uint64_t most_end(const Program& program, uint64_t alignment) {
  const Packed packed = packed_buffers(program, alignment);
  return size_add(packed.base, height_by_begin(packed.intervals));
}

}  // namespace stw
