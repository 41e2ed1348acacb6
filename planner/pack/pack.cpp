#include "planner/pack/pack.h"

#include <algorithm>
#include <numeric>

#include "kernels/contract/sizes.h"
#include "planner/pack/greedy.h"
#include "planner/pack/search.h"
#include "planner/pack/sections.h"
#include "planner/pack/status.h"

namespace stw {

namespace {

using Outcome = PackSearch::Outcome;

// A component and its best placement so far. Sizes, and so all heights, are multiples of `unit`.
struct Part {
  Sections sections;
  std::vector<uint64_t> offsets;
  uint64_t height = 0;
  uint64_t bound = 0;
  uint64_t unit = 1;
};

uint64_t height_of(const std::vector<Block>& blocks, const std::vector<uint64_t>& offsets) {
  uint64_t height = 0;
  for (size_t i = 0; i < blocks.size(); ++i) height = std::max(height, size_add(offsets[i], blocks[i].size));
  return height;
}

uint64_t largest(const std::vector<uint64_t>& sizes) {
  return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

Part part_of(Sections component, const std::vector<uint64_t>& offsets) {
  Part part;
  part.unit = 0;
  for (const Block& b : component.blocks) part.unit = std::gcd(part.unit, b.size);
  for (int i : component.source) part.offsets.push_back(offsets[i]);
  part.height = height_of(component.blocks, part.offsets);
  part.bound = largest(section_totals(component));
  part.sections = std::move(component);
  return part;
}

// Searches for a placement of the part within `capacity`, or for a proof that there is none.
Outcome search(Part& part, uint64_t capacity, uint64_t node_limit, uint64_t& nodes) {
  // A placement takes about one decision for each buffer. With far fewer nodes the search cannot succeed.
  if (node_limit < part.sections.blocks.size() / 2) return Outcome::out_of_nodes;
  Sections scaled = part.sections;
  for (Block& b : scaled.blocks) b.size /= part.unit;
  PackSearch search(scaled, capacity / part.unit);
  const Outcome outcome = search.solve(node_limit);
  nodes += search.nodes();
  if (outcome == Outcome::infeasible)
    part.bound = std::max(part.bound, (capacity / part.unit + 1) * part.unit);
  if (outcome == Outcome::found) {
    for (size_t i = 0; i < part.offsets.size(); ++i) part.offsets[i] = search.offsets()[i] * part.unit;
    part.height = height_of(part.sections.blocks, part.offsets);
  }
  return outcome;
}

void repack(Part& part, uint64_t enough) {
  GreedyPacking again{std::move(part.offsets), part.height};
  repack_greedily(part.sections, largest(section_totals(part.sections)), enough, again);
  part.offsets = std::move(again.offsets);
  part.height = again.height;
}

// Lowers a part. Half of the nodes go into an attempt to reach `enough`. After that, bisects between
// capacities that failed and heights that were found.
void lower(Part& part, uint64_t enough, uint64_t enough_of_greedy, uint64_t node_limit, uint64_t& nodes) {
  const uint64_t before = nodes;
  auto left = [&] { return node_limit - std::min(node_limit, nodes - before); };
  if (search(part, enough, node_limit / 2, nodes) == Outcome::found) return;
  repack(part, enough_of_greedy);
  if (part.height <= enough_of_greedy) return;
  uint64_t low = enough / part.unit + 1;
  while (low * part.unit < part.height && left() > 0) {
    const uint64_t target = low + (part.height / part.unit - 1 - low) / 2;
    if (search(part, target * part.unit, left() / 4 + 1, nodes) != Outcome::found) low = target + 1;
  }
}

}  // namespace

PackStatus status_of(const Packing& packing, uint64_t capacity) {
  if (capacity != 0 && packing.bound > capacity) return PackStatus::infeasible;
  if (packing.height < size_limit && packing.height == packing.bound) return PackStatus::optimal;
  if (packing.height < size_limit && (capacity == 0 || packing.height <= capacity)) return PackStatus::fits;
  return PackStatus::unknown;
}

Packing pack(const std::vector<Interval>& intervals, const PackOptions& options) {
  const Sections sections = sections_of(intervals);
  Packing packing;
  packing.offsets.resize(intervals.size());
  packing.bound = largest(section_totals(sections));
  const uint64_t goal = std::max(packing.bound, std::min(options.capacity, size_limit));
  GreedyPacking greedy;
  greedy.height = 0;
  const uint64_t enough_of_greedy = options.capacity == 0 ? std::max(goal, options.enough) : goal;
  if (!sections.blocks.empty()) greedy = pack_greedily(sections, enough_of_greedy);
  packing.height = greedy.height;

  const bool reachable = options.capacity == 0 || packing.bound <= options.capacity;
  if (packing.height > enough_of_greedy && packing.height < size_limit && reachable &&
      options.node_limit > 0) {
    std::vector<Part> parts;
    for (Sections& component : components_of(sections))
      parts.push_back(part_of(std::move(component), greedy.offsets));
    // Small parts come first: if one of them cannot be lowered, the whole packing cannot.
    std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return a.sections.blocks.size() < b.sections.blocks.size();
    });
    uint64_t enough = goal;  // lowering a part below this height has no effect on the whole
    packing.height = 0;
    for (Part& part : parts) {
      const uint64_t left = options.node_limit - std::min(options.node_limit, packing.nodes);
      if (part.height > enough) {
        if (options.capacity == 0) lower(part, enough, std::max(enough, options.enough), left, packing.nodes);
        else if (packing.bound <= options.capacity &&
                 search(part, options.capacity, left, packing.nodes) == Outcome::out_of_nodes)
          repack(part, options.capacity);
      }
      if (options.capacity == 0) enough = std::max(enough, part.height);
      packing.height = std::max(packing.height, part.height);
      packing.bound = std::max(packing.bound, part.bound);
      for (size_t i = 0; i < part.offsets.size(); ++i)
        greedy.offsets[part.sections.source[i]] = part.offsets[i];
    }
  }

  for (size_t i = 0; i < sections.blocks.size(); ++i) packing.offsets[sections.source[i]] = greedy.offsets[i];
  packing.status = status_of(packing, options.capacity);
  return packing;
}

}  // namespace stw
