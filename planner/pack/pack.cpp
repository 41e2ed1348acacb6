#include "planner/pack/pack.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "kernels/contract/sizes.h"
#include "planner/pack/greedy.h"
#include "planner/pack/rounds.h"
#include "planner/pack/search.h"
#include "planner/pack/sections.h"
#include "planner/pack/status.h"

namespace stw {

namespace {

using Outcome = PackSearch::Outcome;

// With at most so many blocks, the search is often faster than rounds of passes, and comes first.
constexpr size_t blocks_to_search_first = 512;
// With more blocks, rounds lower a part further than bisection does.
constexpr size_t blocks_to_bisect = 1024;
// With more blocks, the search finds nothing.
constexpr size_t blocks_to_search = 4096;
// Placing blocks in rounds takes as long as this many decisions of the search, or less.
constexpr uint64_t placements_of_a_node = 2;
// Placements in rounds that do not count as decisions, as those of greedy orders do not: of small parts all
// styles of rounds.h. With more than blocks_to_search blocks, all placements count.
constexpr uint64_t free_passes = 16;
constexpr uint64_t free_placements = 8192;

// The part of `whole` that belongs to `count` of `all`.
uint64_t share(uint64_t whole, uint64_t count, uint64_t all) {
  return static_cast<uint64_t>(static_cast<__uint128_t>(whole) * count / all);
}

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

// The methods that lower one part, and the nodes that are left for it.
class Lowering {
 public:
  Lowering(Part& part, uint64_t enough_of_greedy, uint64_t node_limit)
      : part_(part),
        live_bytes_(largest(section_totals(part.sections))),
        enough_(enough_of_greedy),
        node_limit_(node_limit),
        greedy_{part.offsets, part.height} {}

  // Takes the part to `goal` by the search, or to `enough_of_greedy` by rounds and orders. Then bisects
  // between capacities that failed and heights that were found.
  void lower(uint64_t goal) {
    if (blocks() > blocks_to_search_first) {
      pack_in_rounds(0);
      const bool is_large = blocks() > blocks_to_bisect;
      if (is_enough() || search(goal, left() / (is_large ? 8 : 2)) == Outcome::found) return;
      pack_in_rounds(blocks() > blocks_to_search ? left() : left() / (is_large ? 2 : 4));
      if (!is_enough()) repack();
      if (!is_enough()) bisect(goal);
    } else if (search(goal, left() / 2) != Outcome::found) {
      repack();
      if (!is_enough()) bisect(goal);
      if (!is_enough()) pack_in_rounds(0);
    }
  }

  // The same for a capacity: there is nothing to bisect.
  void fit(uint64_t capacity) {
    if (blocks() > blocks_to_search_first) {
      pack_in_rounds(0);
      if (is_enough() || search(capacity, left() / 4 * 3) != Outcome::out_of_nodes) return;
      pack_in_rounds(left());
      if (!is_enough()) repack();
    } else if (search(capacity, left()) == Outcome::out_of_nodes) {
      repack();
      if (!is_enough()) pack_in_rounds(0);
    }
  }

  uint64_t nodes() const { return nodes_; }

 private:
  size_t blocks() const { return part_.sections.blocks.size(); }
  uint64_t left() const { return node_limit_ - std::min(node_limit_, nodes_); }
  bool is_enough() const { return part_.height <= enough_; }

  Outcome search(uint64_t capacity, uint64_t node_limit) {
    if (blocks() > blocks_to_search) return Outcome::out_of_nodes;
    return stw::search(part_, capacity, node_limit, nodes_);
  }

  void bisect(uint64_t goal) {
    if (blocks() > blocks_to_bisect) return;
    uint64_t low = goal / part_.unit + 1;
    while (low * part_.unit < part_.height && left() > 0) {
      const uint64_t target = low + (part_.height / part_.unit - 1 - low) / 2;
      if (search(target * part_.unit, left() / 4 + 1) != Outcome::found) low = target + 1;
    }
  }

  // Learns from the first height, as lower ones teach the orders less.
  void repack() {
    if (blocks() > blocks_to_search) return;
    repack_greedily(part_.sections, live_bytes_, enough_, greedy_);
    keep(greedy_);
  }

  // `node_limit`: nodes to spend beyond the free placements.
  void pack_in_rounds(uint64_t node_limit) {
    if (!rounds_) {
      rounds_.emplace(part_.sections, live_bytes_);
      if (blocks() <= blocks_to_search) free_ = std::min(free_placements, free_passes * blocks());
    }
    GreedyPacking packing{part_.offsets, part_.height};
    const uint64_t placements =
        rounds_->run(enough_, size_add(free_, size_mul(node_limit, placements_of_a_node)), packing);
    const uint64_t counted = placements - std::min(free_, placements);
    free_ -= std::min(free_, placements);
    nodes_ += std::min(node_limit, ceil_div(counted, placements_of_a_node));
    keep(packing);
  }

  void keep(GreedyPacking& packing) {
    if (packing.height >= part_.height) return;
    part_.offsets = packing.offsets;
    part_.height = packing.height;
  }

  Part& part_;
  const uint64_t live_bytes_, enough_, node_limit_;
  GreedyPacking greedy_;
  std::optional<Rounds> rounds_;
  uint64_t free_ = 0;  // placements that do not count
  uint64_t nodes_ = 0;
};

}  // namespace

PackStatus status_of(const Packing& packing, uint64_t capacity) {
  if (capacity != 0 && packing.bound > capacity) return PackStatus::infeasible;
  if (packing.height < size_limit && packing.height == packing.bound) return PackStatus::optimal;
  if (packing.height < size_limit && (capacity == 0 || packing.height <= capacity)) return PackStatus::fits;
  return PackStatus::unknown;
}

uint64_t height_by_begin(const std::vector<Interval>& intervals) {
  const Sections sections = sections_of(intervals);
  return sections.blocks.empty() ? 0 : pack_by_begin(sections).height;
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
  GreedyPacking by_begin;
  if (!sections.blocks.empty()) greedy = by_begin = pack_by_begin(sections);
  if (greedy.height > enough_of_greedy) greedy = pack_greedily(sections, enough_of_greedy);
  if (greedy.height == UINT64_MAX) Rounds(sections, packing.bound).run(enough_of_greedy, 1, greedy);
  packing.height = greedy.height;

  const bool reachable = options.capacity == 0 || packing.bound <= options.capacity;
  if (packing.height > enough_of_greedy && packing.height < size_limit && reachable &&
      options.node_limit > 0) {
    std::vector<Part> parts;
    for (Sections& component : components_of(sections))
      parts.push_back(part_of(std::move(component), greedy.offsets));
    // Small parts come first: if one of them cannot be lowered, the whole packing cannot. If there are many
    // blocks, large parts come first: they are seldom lowered to the bound, and small ones then need not be.
    // Each part then gets its share of the nodes.
    const bool has_many = sections.blocks.size() > blocks_to_bisect;
    const bool large_first = has_many && options.capacity == 0;
    std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
      const size_t x = a.sections.blocks.size(), y = b.sections.blocks.size();
      return large_first ? x > y : x < y;
    });
    uint64_t enough = goal;  // lowering a part below this height has no effect on the whole
    uint64_t blocks_left = sections.blocks.size();
    packing.height = 0;
    for (Part& part : parts) {
      const uint64_t blocks = part.sections.blocks.size();
      uint64_t left = options.node_limit - std::min(options.node_limit, packing.nodes);
      if (has_many) left = share(left, blocks, blocks_left);
      blocks_left -= blocks;
      if (part.height > enough) {
        Lowering lowering(part, options.capacity == 0 ? std::max(enough, options.enough) : options.capacity,
                          left);
        if (options.capacity == 0) lowering.lower(enough);
        else if (packing.bound <= options.capacity) lowering.fit(options.capacity);
        packing.nodes += lowering.nodes();
      }
      if (options.capacity == 0) enough = std::max(enough, part.height);
      packing.height = std::max(packing.height, part.height);
      packing.bound = std::max(packing.bound, part.bound);
      for (size_t i = 0; i < part.offsets.size(); ++i)
        greedy.offsets[part.sections.source[i]] = part.offsets[i];
    }
  }

  if (by_begin.height < packing.height) {
    packing.height = by_begin.height;
    greedy = std::move(by_begin);
  }
  for (size_t i = 0; i < sections.blocks.size(); ++i) packing.offsets[sections.source[i]] = greedy.offsets[i];
  packing.status = status_of(packing, options.capacity);
  return packing;
}

}  // namespace stw
