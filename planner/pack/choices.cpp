#include "planner/pack/choices.h"

#include <algorithm>

namespace stw {

namespace {

constexpr size_t most_rounds = 10000;  // of propagate(), for buffers that interlock

}  // namespace

ChoiceSearch::ChoiceSearch(std::vector<Movable> buffers, std::vector<Choice> choices)
    : buffers_(std::move(buffers)),
      choices_(std::move(choices)),
      of_buffer_(buffers_.size()),
      is_moved_(buffers_.size()) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    of_buffer_[at(choices_[i].first)].push_back(static_cast<int>(i));
    of_buffer_[at(choices_[i].second)].push_back(static_cast<int>(i));
    interlocks_ |= choices_[i].below >= 0 || choices_[i].above <= 0;
  }
}

ChoiceSearch::Outcome ChoiceSearch::solve(int64_t capacity, uint64_t node_limit) {
  const size_t count = buffers_.size();
  low_.assign(count, 0);
  high_.assign(count, 0);
  state_.assign(choices_.size(), open);
  changes_.clear();
  moved_.clear();
  std::fill(is_moved_.begin(), is_moved_.end(), uint8_t{0});
  for (size_t i = 0; i < count; ++i) {
    const Movable& b = buffers_[i];
    const int64_t high = std::min(b.highest, capacity - b.size);
    if (high < 0) return Outcome::infeasible;
    low_[i] = b.lowest;
    high_[i] = high / b.alignment * b.alignment;
    if (low_[i] > high_[i]) return Outcome::infeasible;
    moved_.push_back(static_cast<int>(i));
    is_moved_[i] = 1;
  }
  std::vector<Frame> frames;
  const uint64_t most = nodes_ + node_limit;
  gave_up_ = false;
  bool possible = propagate();
  while (true) {
    if (gave_up_) return Outcome::out_of_nodes;
    if (possible) {
      State first = open;
      const int choice = branch(first);
      if (choice < 0) return Outcome::found;
      if (nodes_ >= most) return Outcome::out_of_nodes;
      ++nodes_;
      frames.push_back({choice, first, false, changes_.size()});
      possible = decide(choice, first) && propagate();
      continue;
    }
    while (!frames.empty() && frames.back().second_tried) frames.pop_back();
    if (frames.empty()) return Outcome::infeasible;
    Frame& frame = frames.back();
    undo(frame.changes);
    if (nodes_ >= most) return Outcome::out_of_nodes;
    ++nodes_;
    frame.second_tried = true;
    possible = decide(frame.choice, frame.first == is_below ? is_above : is_below) && propagate();
  }
}

void ChoiceSearch::undo(size_t changes) {
  for (; changes_.size() > changes; changes_.pop_back()) {
    const Change& c = changes_.back();
    if (c.kind == Kind::low) low_[at(c.index)] = c.before;
    else if (c.kind == Kind::high) high_[at(c.index)] = c.before;
    else state_[at(c.index)] = open;
  }
  for (const int buffer : moved_) is_moved_[at(buffer)] = 0;
  moved_.clear();
}

bool ChoiceSearch::raise(int buffer, int64_t low) {
  int64_t& now = low_[at(buffer)];
  if (low <= now) return true;
  const int64_t alignment = buffers_[at(buffer)].alignment;
  const int64_t over = low % alignment;  // low is positive
  if (low > high_[at(buffer)] || (over != 0 && alignment - over > high_[at(buffer)] - low)) return false;
  changes_.push_back({Kind::low, buffer, now});
  now = over == 0 ? low : low + (alignment - over);
  if (!is_moved_[at(buffer)]) moved_.push_back(buffer);
  is_moved_[at(buffer)] = 1;
  return true;
}

bool ChoiceSearch::lower(int buffer, int64_t high) {
  int64_t& now = high_[at(buffer)];
  if (high >= now) return true;
  if (high < low_[at(buffer)]) return false;
  const int64_t aligned = high / buffers_[at(buffer)].alignment * buffers_[at(buffer)].alignment;
  if (aligned < low_[at(buffer)]) return false;
  changes_.push_back({Kind::high, buffer, now});
  now = aligned;
  if (!is_moved_[at(buffer)]) moved_.push_back(buffer);
  is_moved_[at(buffer)] = 1;
  return true;
}

bool ChoiceSearch::apply(const Choice& c, State state) {
  if (state == is_below)
    return raise(c.second, low_[at(c.first)] - c.below) && lower(c.first, high_[at(c.second)] + c.below);
  return raise(c.first, low_[at(c.second)] + c.above) && lower(c.second, high_[at(c.first)] - c.above);
}

bool ChoiceSearch::decide(int choice, State state) {
  changes_.push_back({Kind::choice, choice, 0});
  state_[at(choice)] = state;
  decided_ = true;
  return apply(choices_[at(choice)], state);
}

// Derives bounds and choices from each other, in rounds over the buffers whose bounds have changed. The
// number of rounds since the last new choice has a limit. If buffers do not interlock, the limit is about the
// number of buffers. Bounds that still change then show that the choices form a cycle, and no placement
// satisfies them. If buffers interlock, alignment can move bounds many times without a cycle, so the limit is
// fixed, and the search gives up there.
bool ChoiceSearch::propagate() {
  size_t rounds = 0;
  while (!moved_.empty()) {
    decided_ = false;
    next_.swap(moved_);
    moved_.clear();
    for (const int buffer : next_) is_moved_[at(buffer)] = 0;
    bool possible = true;
    for (size_t k = 0; possible && k < next_.size(); ++k) {
      for (const int choice : of_buffer_[at(next_[k])]) {
        const Choice& c = choices_[at(choice)];
        const State state = state_[at(choice)];
        if (state != open) {
          possible = apply(c, state);
        } else {
          const bool below = low_[at(c.first)] <= high_[at(c.second)] + c.below;
          const bool above = high_[at(c.first)] >= low_[at(c.second)] + c.above;
          possible = below || above;
          if (possible && below != above) possible = decide(choice, below ? is_below : is_above);
        }
        if (!possible) break;
      }
    }
    if (!possible) return false;
    rounds = decided_ ? 0 : rounds + 1;
    if (rounds > (interlocks_ ? most_rounds : buffers_.size() + 1)) {
      gave_up_ = interlocks_;
      return false;
    }
  }
  return true;
}

// The pair that overlaps at the lower bounds and has the least room for either order. -1 if no pair overlaps.
int ChoiceSearch::branch(State& first) const {
  int best = -1;
  int64_t best_room = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& c = choices_[i];
    const int64_t difference = low_[at(c.first)] - low_[at(c.second)];
    if (state_[i] != open || difference <= c.below || difference >= c.above) continue;
    const int64_t room_below = high_[at(c.second)] + c.below - low_[at(c.first)];
    const int64_t room_above = high_[at(c.first)] - low_[at(c.second)] - c.above;
    const int64_t room = std::min(room_below, room_above);
    if (best >= 0 && room >= best_room) continue;
    best = static_cast<int>(i);
    best_room = room;
    first = room_below >= room_above ? is_below : is_above;
  }
  return best;
}

}  // namespace stw
