#include "planner/pack/search.h"

#include <algorithm>

#include "planner/base/check_in.h"

namespace stw {

namespace {

constexpr uint64_t first_weight = 8;  // initial weight of a section; this many failures double it
constexpr uint64_t first_run_nodes = 500;
constexpr uint64_t sections_of_a_node = 256;  // with more sections, a decision counts as several nodes

}  // namespace

PackSearch::PackSearch(const Sections& sections, uint64_t capacity)
    : blocks_(sections.blocks), capacity_(capacity) {
  const size_t count = at(sections.count);
  starting_.resize(count);
  floor_.resize(count);
  unplaced_size_.resize(count);
  flags_.resize(count);
  unplaced_.resize(count);
  starts_.resize(count + 1);
  ends_.resize(count + 1);
  crossing_.resize(count + 1);
  placed_.resize(blocks_.size());
  offsets_.resize(blocks_.size());
  weight_.assign(count, first_weight);
  fitting_.resize(count + 1);
  fitting_size_.resize(count + 1);
  resting_.resize(count + 1);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& b = blocks_[i];
    starting_[at(b.first)].push_back(static_cast<int>(i));
    ++starts_[at(b.first)];
    ++ends_[at(b.end)];
    unplaced_size_[at(b.first)] += b.size;
    if (at(b.end) < count) unplaced_size_[at(b.end)] -= b.size;  // wraps until the sum is taken
  }
  uint64_t size = 0;
  int alive = 0;
  for (size_t s = 0; s < count; ++s) {
    crossing_[s] = alive - ends_[s];
    unplaced_[s] = alive = crossing_[s] + starts_[s];
    unplaced_size_[s] = size += unplaced_size_[s];
  }
}

PackSearch::Outcome PackSearch::solve(uint64_t node_limit) {
  for (uint64_t size : unplaced_size_)
    if (size > capacity_) return Outcome::infeasible;
  constexpr Style styles[] = {{Prefer::fit_then_area, true},
                              {Prefer::size, true},
                              {Prefer::life, false},
                              {Prefer::walls_then_area, true}};
  uint64_t run_nodes = first_run_nodes;
  for (bool varied = false;; varied = true, run_nodes += run_nodes / 2) {
    for (const Style& style : styles) {
      if (nodes_ >= node_limit) return Outcome::out_of_nodes;
      const Outcome outcome = run(std::min(run_nodes, node_limit - nodes_), style, varied);
      if (outcome != Outcome::out_of_nodes) return outcome;
      // Older failures count for less.
      for (uint64_t& weight : weight_) weight = (weight + first_weight) / 2;
    }
  }
}

PackSearch::Outcome PackSearch::run(uint64_t node_limit, Style style, bool varied) {
  style_ = style;
  varied_ = varied;
  undo(0);
  parts_.clear();
  frames_.clear();
  candidates_.clear();
  agenda_ = -1;
  const uint64_t last_node = nodes_ + node_limit;
  divide({0, static_cast<int>(floor_.size()), -1, -1}, -1);
  while (agenda_ >= 0) {
    const Part part = parts_[at(agenda_)];
    if (part.end - part.begin == 1) {  // one section: blocks stack in any order
      for (int block : starting_[at(part.begin)])
        if (!placed_[at(block)]) place(block);
      agenda_ = part.next;
      continue;
    }
    if (nodes_ >= last_node) return Outcome::out_of_nodes;
    check_in();
    nodes_ += 1 + static_cast<uint64_t>(part.end - part.begin) / sections_of_a_node;
    if (!advance(open(part) ? static_cast<int>(frames_.size()) - 1 : part.parent)) return Outcome::infeasible;
  }
  return Outcome::found;
}

void PackSearch::place(int block) {
  const Block& b = blocks_[at(block)];
  offsets_[at(block)] = floor_[at(b.first)];
  for (int s = b.first; s < b.end; ++s) {
    if (flags_[at(s)]) changes_.push_back({s, floor_[at(s)], flags_[at(s)]});
    flags_[at(s)] = 0;
    floor_[at(s)] += b.size;
    unplaced_size_[at(s)] -= b.size;
    --unplaced_[at(s)];
    crossing_[at(s)] -= s > b.first;
  }
  --starts_[at(b.first)];
  --ends_[at(b.end)];
  placed_[at(block)] = true;
  changes_.push_back({~block, 0, 0});
}

// Raises a section's floor. Fails if its unplaced blocks no longer fit above.
bool PackSearch::raise(int section, uint64_t floor, uint8_t flags) {
  const size_t s = at(section);
  changes_.push_back({section, floor_[s], flags_[s]});
  floor_[s] = floor;
  flags_[s] = flags;
  if (floor + unplaced_size_[s] <= capacity_) return true;
  ++weight_[s];
  return false;
}

void PackSearch::undo(size_t changes) {
  for (; changes_.size() > changes; changes_.pop_back()) {
    const Change& change = changes_.back();
    if (change.section >= 0) {
      floor_[at(change.section)] = change.floor;
      flags_[at(change.section)] = change.flags;
      continue;
    }
    const size_t block = at(~change.section);
    const Block& b = blocks_[block];
    for (int s = b.first; s < b.end; ++s) {
      floor_[at(s)] -= b.size;
      unplaced_size_[at(s)] += b.size;
      ++unplaced_[at(s)];
      crossing_[at(s)] += s > b.first;
    }
    ++starts_[at(b.first)];
    ++ends_[at(b.end)];
    placed_[block] = false;
  }
}

// Gives `section` the floor of a neighbour in which all of its unplaced blocks are alive too.
bool PackSearch::follow(int section, int neighbour, bool& changed) {
  const size_t s = at(section), n = at(neighbour);
  if (floor_[s] > floor_[n]) return true;
  const uint8_t taken = flags_[n] & shut;
  if (floor_[s] == floor_[n]) {
    if (!taken || (flags_[s] & shut)) return true;
    changed = true;
    return raise(section, floor_[s], flags_[s] | shut);
  }
  changed = true;
  return raise(section, floor_[n], taken | hanging);
}

// Raises runs of shut sections between higher neighbours to the floor of the lower neighbour. Fails if an
// unplaced block lies wholly inside such a run: it would have nothing to rest on.
bool PackSearch::lift_shut(const Part& part, bool& changed) {
  for (int begin = part.begin, end; begin < part.end; begin = end) {
    end = begin + 1;
    if (!(flags_[at(begin)] & shut) || unplaced_[at(begin)] == 0) continue;
    const uint64_t floor = floor_[at(begin)];
    while (end < part.end && crossing_[at(end)] > 0 && (flags_[at(end)] & shut) && floor_[at(end)] == floor)
      ++end;
    const uint64_t left = begin > part.begin && crossing_[at(begin)] > 0 ? floor_[at(begin - 1)] : no_wall;
    const uint64_t right = end < part.end && crossing_[at(end)] > 0 ? floor_[at(end)] : no_wall;
    const uint64_t to = std::min(left, right);
    if (to == no_wall) return false;
    if (to <= floor) continue;
    changed = true;
    for (int s = begin; s < end; ++s)
      if (!raise(s, to, hanging)) return false;
  }
  return true;
}

// Derives the consequences of a choice. False if the choice cannot lead to a solution.
bool PackSearch::settle(const Part& part) {
  for (bool changed = true; changed;) {
    changed = false;
    auto boundary = [&](int s) {
      if (crossing_[at(s)] == 0) return true;
      return (ends_[at(s)] > 0 || follow(s - 1, s, changed)) &&
             (starts_[at(s)] > 0 || follow(s, s - 1, changed));
    };
    for (int s = part.begin + 1; s < part.end; ++s)
      if (!boundary(s)) return false;
    for (int s = part.end - 1; s > part.begin; --s)
      if (!boundary(s)) return false;
    if (!lift_shut(part, changed)) return false;
  }
  return true;
}

// Puts the rest of a part on the agenda, cut at boundaries that no unplaced block crosses. The smallest piece
// comes first.
void PackSearch::divide(const Part& part, int parent) {
  const size_t first = parts_.size();
  for (int begin = part.begin, end; begin < part.end; begin = end) {
    end = begin + 1;
    if (unplaced_[at(begin)] == 0) continue;
    while (end < part.end && crossing_[at(end)] > 0) ++end;
    parts_.push_back({begin, end, parent, -1});
  }
  std::stable_sort(parts_.begin() + static_cast<ptrdiff_t>(first), parts_.end(),
                   [](const Part& a, const Part& b) { return a.end - a.begin > b.end - b.begin; });
  for (size_t i = first; i < parts_.size(); ++i) {
    parts_[i].next = agenda_;
    agenda_ = static_cast<int>(i);
  }
}

// Hashes the state that decides whether a part has a solution: its floors and its unplaced blocks.
StateHash PackSearch::state_of(const Part& part) const {
  StateHash hash{mixed(static_cast<uint64_t>(part.begin)), mixed(~static_cast<uint64_t>(part.end))};
  for (int s = part.begin; s < part.end; ++s) {
    const uint64_t here = mixed(floor_[at(s)] << 2 | flags_[at(s)]);
    hash.low = mixed(hash.low ^ here);
    hash.high = (hash.high + here) * 0x94d049bb133111eb;
    hash.high ^= hash.high >> 31;
    for (int block : starting_[at(s)]) {
      if (placed_[at(block)]) continue;
      const uint64_t which = mixed(static_cast<uint64_t>(block));
      hash.low += which;
      hash.high ^= which * 0xbf58476d1ce4e5b9;
    }
  }
  return hash;
}

// Takes a part off the agenda and pushes a frame with its choices. False if it has no choice.
bool PackSearch::open(const Part& part) {
  const StateHash state = state_of(part);
  if (failed_.contains(state)) return false;
  Branch branch;
  bool possible = true;
  Valley valley;
  for (int from = part.begin; possible && next_valley(part, from, valley); from = valley.end)
    possible = weigh(valley, branch);
  if (!possible || branch.section < 0) {
    failed_.insert(state);
    return false;
  }
  const size_t first = candidates_.size();
  list_candidates(branch);
  frames_.push_back({part, state, branch.section, branch.may_shut, first, first, candidates_.size(),
                     changes_.size(), parts_.size()});
  return true;
}

// Goes back to `frame` and makes its next choice that does not fail at once. If it has none left, its part
// has failed, and so has the current choice of the parent frame. Then goes on with the next choice of the
// parent frame. False if no choice is left at all.
bool PackSearch::advance(int frame) {
  while (frame >= 0) {
    frames_.resize(at(frame) + 1);
    Frame& f = frames_.back();
    candidates_.resize(f.last);
    undo(f.changes);
    parts_.resize(f.parts);
    agenda_ = f.part.next;
    bool chosen = true;
    if (f.next < f.last) {
      place(candidates_[f.next++]);
    } else if (f.may_shut) {
      f.may_shut = false;
      const size_t s = at(f.section);
      chosen = raise(f.section, floor_[s], flags_[s] | shut);
    } else {
      failed_.insert(f.state);
      ++weight_[at(f.section)];
      candidates_.resize(f.first);
      frame = f.part.parent;
      continue;
    }
    if (!chosen || !settle(f.part)) continue;
    divide(f.part, frame);
    return true;
  }
  return false;
}

}  // namespace stw
