#include <algorithm>
#include <map>
#include <numeric>

#include "kernels/contract/sizes.h"
#include "planner/pack/choices.h"
#include "planner/pack/constraints.h"
#include "planner/pack/sections.h"
#include "planner/pack/status.h"

namespace stw {

namespace {

// With more bodies, only one order is tried, and there is no exact search.
constexpr size_t bodies_for_all_orders = 4096;
constexpr size_t bodies_to_learn = 1024;
constexpr int learning_rounds = 16;
constexpr size_t most_choices = 100'000;
constexpr size_t most_alignments = 16;  // distinct alignments for which a bound is computed

// The bytes [first, end) that a buffer takes during the times [lower, upper).
struct Piece {
  int64_t lower, upper, first, end;
};

// A buffer that takes bytes at some time.
struct Body {
  size_t source;
  int64_t size, alignment;
  std::optional<int64_t> offset;
  std::vector<Piece> pieces;  // sorted by time
};

// Forbidden differences of two offsets: the open interval (after, before). Lists of them are sorted and
// disjoint.
struct Forbidden {
  int64_t after, before;
};

struct Placement {
  std::vector<int64_t> offsets;  // of the bodies
  int64_t height = INT64_MAX;
};

constexpr int64_t signed_limit = static_cast<int64_t>(size_limit);

int64_t rounded_up(int64_t n, int64_t to) {
  const __int128 up = (static_cast<__int128>(n) + to - 1) / to * to;
  return static_cast<int64_t>(std::min<__int128>(up, signed_limit));
}

std::vector<Piece> pieces_of(const Interval& interval, std::vector<Gap> gaps) {
  std::vector<Piece> pieces;
  const auto size = static_cast<int64_t>(interval.size);
  const auto add = [&](int64_t lower, int64_t upper, int64_t first, int64_t end) {
    if (lower < upper && first < end) pieces.push_back({lower, upper, first, end});
  };
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.lower < b.lower; });
  int64_t from = interval.lower;
  for (const Gap& gap : gaps) {
    add(from, gap.lower, 0, size);
    add(gap.lower, gap.upper, static_cast<int64_t>(gap.first), static_cast<int64_t>(gap.end));
    from = std::max(from, gap.upper);
  }
  add(from, interval.upper, 0, size);
  return pieces;
}

std::vector<Body> bodies_of(const std::vector<Interval>& intervals,
                            const std::vector<Constraint>& constraints) {
  std::vector<Body> bodies;
  for (size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].lower >= intervals[i].upper || intervals[i].size == 0) continue;
    Interval interval = intervals[i];
    interval.size = std::min(interval.size, size_limit);
    Body body;
    body.source = i;
    body.size = static_cast<int64_t>(interval.size);
    body.alignment = static_cast<int64_t>(std::min(constraints[i].alignment, size_limit));
    if (constraints[i].offset)
      body.offset = static_cast<int64_t>(std::min(*constraints[i].offset, size_limit));
    body.pieces = pieces_of(interval, constraints[i].gaps);
    if (!body.pieces.empty()) bodies.push_back(std::move(body));
  }
  return bodies;
}

// Computes the forbidden values of offset(a) - offset(b).
void forbid(const Body& a, const Body& b, std::vector<Forbidden>& out) {
  out.clear();
  for (size_t i = 0, k = 0; i < a.pieces.size() && k < b.pieces.size();) {
    const Piece &x = a.pieces[i], &y = b.pieces[k];
    if (x.lower < y.upper && y.lower < x.upper) out.push_back({y.first - x.end, y.end - x.first});
    if (x.upper < y.upper) ++i;
    else ++k;
  }
  if (out.size() < 2) return;
  std::sort(out.begin(), out.end(), [](const Forbidden& p, const Forbidden& q) { return p.after < q.after; });
  size_t last = 0;
  for (size_t i = 1; i < out.size(); ++i) {
    if (out[i].after < out[last].before) out[last].before = std::max(out[last].before, out[i].before);
    else out[++last] = out[i];
  }
  out.resize(last + 1);
}

// Whether the two bodies do not overlap at this difference of their offsets.
bool are_apart(const Body& a, const Body& b, int64_t difference, std::vector<Forbidden>& scratch) {
  forbid(a, b, scratch);
  return std::none_of(scratch.begin(), scratch.end(),
                      [&](const Forbidden& f) { return f.after < difference && difference < f.before; });
}

// Checks a placement that was found without the constraints.
bool holds(const std::vector<Body>& bodies, const std::vector<int64_t>& offsets) {
  std::vector<Forbidden> scratch;
  for (size_t i = 0; i < bodies.size(); ++i) {
    if (offsets[i] % bodies[i].alignment != 0 || (bodies[i].offset && *bodies[i].offset != offsets[i]))
      return false;
    for (size_t k = 0; k < i; ++k)
      if (!are_apart(bodies[i], bodies[k], offsets[i] - offsets[k], scratch)) return false;
  }
  return true;
}

int64_t height_of(const std::vector<Body>& bodies, const std::vector<int64_t>& offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < bodies.size(); ++i)
    height = std::max(height, static_cast<int64_t>(size_add(static_cast<uint64_t>(offsets[i]),
                                                            static_cast<uint64_t>(bodies[i].size))));
  return height;
}

// Places bodies with given offsets first, then the others in order, each at its lowest free offset. False as
// soon as the height reaches `limit`.
bool place_in_order(const std::vector<Body>& bodies, const std::vector<size_t>& order, int64_t limit,
                    Placement& out) {
  out.offsets.assign(bodies.size(), 0);
  out.height = 0;
  std::vector<size_t> placed;
  std::vector<Forbidden> taken, pair;
  const auto put = [&](size_t i, int64_t offset) {
    out.offsets[i] = offset;
    out.height = std::max(out.height, static_cast<int64_t>(size_add(static_cast<uint64_t>(offset),
                                                                    static_cast<uint64_t>(bodies[i].size))));
    placed.push_back(i);
  };
  for (size_t i = 0; i < bodies.size(); ++i)
    if (bodies[i].offset) put(i, *bodies[i].offset);
  for (const size_t i : order) {
    const Body& body = bodies[i];
    if (body.offset) continue;
    taken.clear();
    for (const size_t k : placed) {
      forbid(body, bodies[k], pair);
      for (const Forbidden& f : pair) taken.push_back({out.offsets[k] + f.after, out.offsets[k] + f.before});
    }
    std::sort(taken.begin(), taken.end(),
              [](const Forbidden& a, const Forbidden& b) { return a.after < b.after; });
    int64_t offset = 0;
    for (const Forbidden& f : taken) {
      if (f.after >= offset) break;
      if (f.before > offset) offset = rounded_up(f.before, body.alignment);
    }
    put(i, offset);
    if (out.height >= std::min(limit, signed_limit)) return false;
  }
  return true;
}

using BodyKey = __int128;
int64_t first_time(const Body& b) { return b.pieces.front().lower; }
int64_t last_time(const Body& b) { return b.pieces.back().upper; }
BodyKey life(const Body& b) { return static_cast<BodyKey>(last_time(b)) - first_time(b); }
BodyKey size_key(const Body& b) { return b.size; }
BodyKey area_key(const Body& b) {
  return life(b) * b.size;  // below 2^64 * 2^62
}
BodyKey start_key(const Body& b) { return -static_cast<BodyKey>(first_time(b)); }
BodyKey end_key(const Body& b) { return last_time(b); }
BodyKey alignment_key(const Body& b) { return b.alignment; }

std::vector<size_t> order_by(const std::vector<Body>& bodies, BodyKey key(const Body&)) {
  std::vector<size_t> order(bodies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const BodyKey p = key(bodies[a]), q = key(bodies[b]);
    return p != q ? p > q : bodies[a].size > bodies[b].size;
  });
  return order;
}

// The lowest placement of several orders. Later orders learn: a body that reached above the bound more often
// is placed earlier.
Placement place_greedily(const std::vector<Body>& bodies, int64_t bound, int64_t enough) {
  Placement best, trial;
  for (const auto key : {life, size_key, area_key, start_key, end_key, alignment_key}) {
    if (place_in_order(bodies, order_by(bodies, key), best.height, trial)) best = trial;
    if (best.height <= enough || bodies.size() > bodies_for_all_orders) return best;
  }
  if (bodies.size() > bodies_to_learn) return best;
  for (const auto key : {area_key, start_key, size_key, alignment_key}) {
    const std::vector<size_t> first = order_by(bodies, key);
    std::vector<size_t> order = first;
    std::vector<int> reached(bodies.size());
    for (int round = 0; round < learning_rounds; ++round) {
      if (place_in_order(bodies, order, best.height, trial)) best = trial;
      if (best.height <= enough) return best;
      for (size_t i = 0; i < bodies.size(); ++i) reached[i] += trial.offsets[i] + bodies[i].size > bound;
      order = first;
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return reached[a] > reached[b]; });
    }
  }
  return best;
}

int64_t live_bound(const std::vector<Interval>& pieces) {
  const std::vector<uint64_t> totals = section_totals(sections_of(pieces));
  return totals.empty() ? 0 : static_cast<int64_t>(*std::max_element(totals.begin(), totals.end()));
}

bool has_windows(const std::vector<Body>& bodies) {
  return std::any_of(bodies.begin(), bodies.end(), [](const Body& b) {
    return std::any_of(b.pieces.begin(), b.pieces.end(),
                       [&](const Piece& p) { return p.first != 0 || p.end != b.size; });
  });
}

// The problem without constraints: pieces may lie anywhere, and their sizes are rounded up to `unit`. It
// contains only bodies whose alignment is a multiple of `unit`. A bound of its height, minus `slack`, is a
// bound for the bodies. Reason: offsets are multiples of `unit`, so in any placement the rounded sizes do not
// overlap either, and their height exceeds the true height by at most `slack`.
struct Relaxed {
  std::vector<Interval> pieces;
  int64_t slack = 0;
};

Relaxed relaxed(const std::vector<Body>& bodies, int64_t unit) {
  Relaxed r;
  for (const Body& body : bodies) {
    if (body.alignment % unit != 0) continue;
    for (const Piece& p : body.pieces) {
      const int64_t size = p.end - p.first, rounded = rounded_up(size, unit);
      r.pieces.push_back({p.lower, p.upper, static_cast<uint64_t>(rounded)});
      r.slack = std::max(r.slack, rounded - size);
    }
  }
  return r;
}

int64_t bound_of(const std::vector<Body>& bodies) {
  int64_t bound = 0;
  for (const Body& b : bodies) bound = std::max(bound, std::min(signed_limit, b.offset.value_or(0) + b.size));
  bound = std::max(bound, live_bound(relaxed(bodies, 1).pieces));
  if (has_windows(bodies)) return bound;
  std::map<int64_t, int> alignments;
  for (const Body& b : bodies) alignments[b.alignment] = 1;
  if (alignments.size() > most_alignments) return bound;
  for (const auto& [alignment, one] : alignments) {
    const Relaxed r = relaxed(bodies, alignment);
    bound = std::max(bound, live_bound(r.pieces) - r.slack);
  }
  return bound;
}

// Places the bodies, with sizes rounded up, by pack(), which ignores the constraints. Keeps the placement if
// it satisfies them.
void try_rounded(const std::vector<Body>& bodies, int64_t unit, uint64_t node_limit, Packing& answer,
                 Placement& best) {
  std::vector<Interval> whole;
  for (const Body& b : bodies)
    whole.push_back({first_time(b), last_time(b), static_cast<uint64_t>(rounded_up(b.size, unit))});
  answer = pack(whole, {0, node_limit});
  std::vector<int64_t> offsets;
  for (const uint64_t offset : answer.offsets) offsets.push_back(static_cast<int64_t>(offset));
  const int64_t height = height_of(bodies, offsets);
  if (height < best.height && holds(bodies, offsets)) best = {std::move(offsets), height};
}

bool are_alike(const Body& a, const Body& b) {
  return !a.offset && !b.offset && a.size == b.size && a.alignment == b.alignment &&
         std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(),
                    [](const Piece& p, const Piece& q) {
                      return p.lower == q.lower && p.upper == q.upper && p.first == q.first && p.end == q.end;
                    });
}

// Groups of bodies. No body of one group is alive at the same time as a body of another.
std::vector<std::vector<size_t>> groups_of(const std::vector<Body>& bodies) {
  std::vector<size_t> order(bodies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return first_time(bodies[a]) < first_time(bodies[b]); });
  std::vector<std::vector<size_t>> groups;
  int64_t end = INT64_MIN;
  for (const size_t i : order) {
    if (groups.empty() || first_time(bodies[i]) >= end) groups.emplace_back();
    groups.back().push_back(i);
    end = std::max(end, last_time(bodies[i]));
  }
  return groups;
}

// The choices of all pairs of bodies. Empty if there are too many.
std::vector<Choice> choices_of(const std::vector<Body>& bodies) {
  std::vector<Choice> choices;
  std::vector<Forbidden> pair;
  for (size_t i = 0; i < bodies.size(); ++i) {
    for (size_t k = i + 1; k < bodies.size(); ++k) {
      forbid(bodies[i], bodies[k], pair);
      // Equal bodies may be exchanged, so the first one is the lower one.
      if (pair.size() == 1 && are_alike(bodies[i], bodies[k])) pair[0].before = signed_limit;
      for (const Forbidden& f : pair)
        choices.push_back({static_cast<int>(i), static_cast<int>(k), f.after, f.before});
      if (choices.size() > most_choices) return {};
    }
  }
  return choices;
}

struct Group {
  std::vector<Body> bodies;
  std::vector<int64_t> offsets;
  int64_t height, bound;
};

// Lowers a group to `capacity`, or to `enough` if there is no capacity, or until the nodes are used up.
// Bisects between heights that failed and heights that were found.
void lower_group(Group& group, uint64_t capacity, int64_t enough, uint64_t node_limit, uint64_t& nodes) {
  std::vector<Choice> choices = choices_of(group.bodies);
  if (choices.empty() && group.bodies.size() > 1) return;
  std::vector<Movable> movable;
  for (const Body& b : group.bodies)
    movable.push_back({b.size, b.alignment, b.offset.value_or(0), b.offset.value_or(signed_limit)});
  ChoiceSearch search(std::move(movable), std::move(choices));
  const auto reach = [&](int64_t height, uint64_t limit) {
    const uint64_t before = search.nodes();
    const auto outcome = search.solve(height, limit);
    nodes += search.nodes() - before;
    if (outcome == ChoiceSearch::Outcome::infeasible) group.bound = std::max(group.bound, height + 1);
    if (outcome == ChoiceSearch::Outcome::found) {
      group.offsets = search.offsets();
      group.height = height_of(group.bodies, group.offsets);
    }
    return outcome == ChoiceSearch::Outcome::found;
  };
  if (capacity != 0) {
    reach(static_cast<int64_t>(std::min(capacity, size_limit - 1)), node_limit);
    return;
  }
  const uint64_t before = nodes;
  const auto left = [&] { return node_limit - std::min(node_limit, nodes - before); };
  enough = std::max(enough, group.bound);
  if (reach(enough, node_limit / 2)) return;
  for (int64_t low = enough + 1; low < group.height && left() > 0;) {
    const int64_t target = low + (group.height - 1 - low) / 2;
    if (!reach(target, left() / 4 + 1)) low = target + 1;
  }
}

bool is_free(const Constraint& c) { return c.alignment == 1 && !c.offset && c.gaps.empty(); }

}  // namespace

std::optional<std::pair<size_t, size_t>> contradiction(const std::vector<Interval>& intervals,
                                                       const std::vector<Constraint>& constraints) {
  std::vector<Interval> given;
  std::vector<Constraint> of_given;
  std::vector<size_t> source;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Constraint& c = constraints[i];
    if (!c.offset) continue;
    if (*c.offset % c.alignment != 0) return std::pair{i, i};
    given.push_back(intervals[i]);
    of_given.push_back(c);
    source.push_back(i);
  }
  const std::vector<Body> bodies = bodies_of(given, of_given);
  std::vector<size_t> order(bodies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return *bodies[a].offset < *bodies[b].offset; });
  std::vector<Forbidden> scratch;
  int64_t largest = 0;
  for (const Body& b : bodies) largest = std::max(largest, b.size);
  for (size_t i = 0; i < order.size(); ++i) {
    const Body& a = bodies[order[i]];
    for (size_t k = i; k-- > 0;) {
      const Body& b = bodies[order[k]];
      if (*a.offset - *b.offset >= largest) break;
      if (!are_apart(a, b, *a.offset - *b.offset, scratch)) {
        const size_t x = source[a.source], y = source[b.source];
        return std::pair{std::min(x, y), std::max(x, y)};
      }
    }
  }
  return std::nullopt;
}

Packing pack_constrained(const std::vector<Interval>& intervals, const std::vector<Constraint>& constraints,
                         const PackOptions& options) {
  if (std::all_of(constraints.begin(), constraints.end(), is_free)) return pack(intervals, options);
  Packing packing;
  packing.offsets.resize(intervals.size());
  for (size_t i = 0; i < intervals.size(); ++i) packing.offsets[i] = constraints[i].offset.value_or(0);
  const std::vector<Body> bodies = bodies_of(intervals, constraints);
  int64_t bound = bound_of(bodies);
  const auto goal = std::max(bound, static_cast<int64_t>(std::min(options.capacity, size_limit)));
  Placement best;
  best.height = 0;
  if (!bodies.empty() && bound < signed_limit) best = place_greedily(bodies, bound, goal);
  if (bound >= signed_limit || best.height > signed_limit)
    best = {std::vector<int64_t>(bodies.size()), signed_limit};
  const bool reachable = options.capacity == 0 || static_cast<uint64_t>(bound) <= options.capacity;
  if (best.height > goal && best.height < signed_limit && reachable && options.node_limit > 0) {
    const auto left = [&] { return options.node_limit - std::min(options.node_limit, packing.nodes); };
    const bool windows = has_windows(bodies);
    int64_t unit = 0, largest = 1;
    for (const Body& b : bodies) {
      unit = std::gcd(unit, b.alignment);
      largest = std::max(largest, b.alignment);
    }
    // If every body takes all of its bytes (no windows) in one piece of time (no gaps), the bound of pack()
    // for sizes in the common unit of all alignments is a bound here, too. Its placement may satisfy the
    // constraints.
    bool has_gaps = false;
    for (const Body& b : bodies) has_gaps |= b.pieces.size() > 1;
    Packing rounded;
    if (!windows && !has_gaps) {
      try_rounded(bodies, unit, options.node_limit / 4, rounded, best);
      packing.nodes += rounded.nodes;
      const Relaxed r = relaxed(bodies, unit);
      bound = std::max(bound, static_cast<int64_t>(rounded.bound) - r.slack);
      if (best.height > goal && largest != unit) {
        try_rounded(bodies, largest, options.node_limit / 8, rounded, best);
        packing.nodes += rounded.nodes;
      }
    }
    if (best.height > std::max(bound, goal)) {
      std::vector<Group> groups;
      for (const std::vector<size_t>& members : groups_of(bodies)) {
        Group group;
        for (const size_t i : members) {
          group.bodies.push_back(bodies[i]);
          group.offsets.push_back(best.offsets[i]);
        }
        group.height = height_of(group.bodies, group.offsets);
        group.bound = bound_of(group.bodies);
        if (group.height > std::max(bound, goal))
          lower_group(group, options.capacity, std::max(bound, goal), left(), packing.nodes);
        bound = std::max(bound, group.bound);
        for (size_t k = 0; k < members.size(); ++k) best.offsets[members[k]] = group.offsets[k];
      }
      best.height = height_of(bodies, best.offsets);
    }
  }
  for (size_t i = 0; i < bodies.size(); ++i)
    packing.offsets[bodies[i].source] = static_cast<uint64_t>(best.offsets[i]);
  packing.height = static_cast<uint64_t>(best.height);
  packing.bound = static_cast<uint64_t>(bound);
  packing.status = status_of(packing, options.capacity);
  return packing;
}

}  // namespace stw
