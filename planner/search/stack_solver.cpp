#include "planner/search/stack_solver.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/base/check_in.h"
#include "planner/search/remaining_times.h"

namespace stw {

namespace {

using Wide = __int128;

// Number of multipliers on either side of the critical one (set_multipliers).
constexpr size_t neighbours = 2;
// Beam widths of the passes. The first passes keep only the most promising labels, which finds a good choice
// early. The last pass keeps all.
constexpr size_t beams[] = {32, 1024, SIZE_MAX};
// With this many runs or more, the relaxation is too far below the best choice to drop many labels. Then the
// solver uses the tolerance.
constexpr size_t many_runs = 16;

struct Label {
  size_t run;      // the run in which it was made
  int64_t placed;  // segments of that run
  int64_t kept;    // bytes that all segments so far keep
  uint64_t picoseconds;
  int parent, variant;  // the label is `parent`, extended by `count` segments on `variant`
  int64_t count;
};

// A Lagrange multiplier, time / bytes, for the constraint on the bytes kept. The cost of a choice is
// picoseconds + (time / bytes) · kept; it is multiplied by `bytes` to be an integer.
struct Multiplier {
  Wide bytes = 1, time = 0;
  // [run][variant]: least cost of a segment on this variant or a later one
  std::vector<std::vector<Wide>> least;
  std::vector<Wide> rest;  // [run]: least cost of this run and all after it
  Wide cost(uint64_t picoseconds, int64_t kept) const {
    return bytes * static_cast<Wide>(picoseconds) + time * kept;
  }
};

// An upper bound of the bytes that all segments together can keep. The last segment of every run needs at
// least least_on_top bytes in addition to the bytes kept up to it, and later runs keep at most their maximum.
int64_t capacity_of(const std::vector<SegmentRun>& runs, int64_t limit) {
  int64_t capacity = INT64_MAX, later = 0;
  for (size_t i = runs.size(); i-- > 0;) {
    capacity = std::min(capacity, limit - runs[i].least_on_top + later);
    later += runs[i].most_kept * runs[i].count;
  }
  return capacity;
}

}  // namespace

StackChoice measured(const std::vector<SegmentRun>& runs, std::vector<Parts> parts) {
  StackChoice c;
  c.peak = INT64_MIN;
  int64_t kept = 0;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const auto& [variant, count] : parts[i]) {
      const Variant& v = runs[i].variants[variant];
      c.picoseconds = size_add(c.picoseconds, size_mul(v.picoseconds, static_cast<uint64_t>(count)));
      kept += v.kept * count;
      c.peak = std::max(c.peak, kept - v.kept + v.peak);
    }
  c.parts = std::move(parts);
  return c;
}

LeastPeak peak_of_least_kept(const std::vector<SegmentRun>& runs, int64_t limit) {
  int64_t before = 0, peak = INT64_MIN, next_peak = INT64_MAX;
  std::vector<std::pair<int64_t, int64_t>> least;  // as in least_kept, and the peak of that choice
  for (const SegmentRun& run : runs) {
    const auto n = static_cast<size_t>(run.count);
    least.assign(n + 1, {INT64_MAX, INT64_MIN});
    least[0] = {before, peak};
    for (const Variant& v : run.variants)
      for (size_t placed = 1; placed <= n; ++placed) {
        const auto [so_far, peak_so_far] = least[placed - 1];
        if (so_far == INT64_MAX) break;
        if (so_far > limit - v.peak) {
          next_peak = std::min(next_peak, so_far + v.peak);
        } else if (so_far + v.kept < least[placed].first) {
          least[placed] = {so_far + v.kept, std::max(peak_so_far, so_far + v.peak)};
        }
      }
    if (least[n].first == INT64_MAX) return {{}, next_peak};
    std::tie(before, peak) = least[n];
  }
  return {peak, next_peak};
}

LeastKept least_kept(const std::vector<SegmentRun>& runs, int64_t limit) {
  std::vector<Parts> parts(runs.size());
  int64_t before = 0, next_peak = INT64_MAX;
  for (size_t i = 0; i < runs.size(); ++i) {
    const SegmentRun& run = runs[i];
    const size_t n = static_cast<size_t>(run.count);
    // For each number of placed segments: the fewest bytes kept, and how many of the last segments take each
    // variant.
    std::vector<int64_t> least(n + 1, INT64_MAX);
    least[0] = before;
    std::vector<std::vector<int64_t>> taken(run.variants.size(), std::vector<int64_t>(n + 1));
    for (size_t v = 0; v < run.variants.size(); ++v)
      for (size_t placed = 1; placed <= n; ++placed) {
        if (least[placed - 1] == INT64_MAX) continue;
        if (least[placed - 1] > limit - run.variants[v].peak) {
          next_peak = std::min(next_peak, least[placed - 1] + run.variants[v].peak);
          continue;
        }
        const int64_t kept = least[placed - 1] + run.variants[v].kept;
        if (kept >= least[placed]) continue;
        least[placed] = kept;
        taken[v][placed] = taken[v][placed - 1] + 1;
      }
    if (least[n] == INT64_MAX) return {{}, next_peak};
    before = least[n];
    size_t placed = n;
    for (size_t v = run.variants.size(); v-- > 0 && placed > 0;) {
      if (taken[v][placed] == 0) continue;
      parts[i].push_back({static_cast<int>(v), taken[v][placed]});
      placed -= static_cast<size_t>(taken[v][placed]);
    }
    std::reverse(parts[i].begin(), parts[i].end());
  }
  return {measured(runs, std::move(parts))};
}

namespace {

class Solver {
 public:
  Solver(const std::vector<SegmentRun>& runs, int64_t limit, size_t most_labels, uint64_t to_beat,
         double tolerance)
      : runs_(runs),
        limit_(limit),
        capacity_(capacity_of(runs, limit)),
        most_labels_(most_labels),
        to_beat_(to_beat),
        tolerance_(tolerance) {
    set_multipliers();
  }

  StackAnswer solve() {
    if (relaxed() >= to_beat_) return {};
    set_room();
    make_incumbent();
    if (!incumbent_) {
      const LeastKept least = least_kept(runs_, limit_);
      if (!least.choice) return {};
      consider(least.choice->parts);
    }
    for (size_t beam : beams) {
      beam_ = beam;
      dropped_by_beam_ = reached_label_limit_ = false;
      pass();
      if (!dropped_by_beam_) break;
      if (runs_.size() >= many_runs && (tolerance_ > 0 || beam == beams[1]) && !remaining_ &&
          (remaining_ = RemainingTimes::make(runs_, limit_))) {
        choose_by_remaining_times();
        slack_ = static_cast<uint64_t>(tolerance_ * static_cast<double>(incumbent_->picoseconds));
        if (bound_by_remaining_times() >= time_to_beat()) break;
      }
    }
    StackAnswer answer{
        incumbent_,
        std::min({incumbent_->picoseconds, to_beat_,
                  reached_label_limit_ ? std::max(relaxed(), bound_by_remaining_times())
                                       : std::max(time_to_beat(), bound_by_remaining_times())}),
        label_count_};
    if (incumbent_->picoseconds >= to_beat_) answer.choice.reset();
    return answer;
  }

  // A lower bound of the time of every choice.
  uint64_t relaxed() const {
    Wide most = 0;
    for (const Multiplier& m : multipliers_)
      most = std::max(most, (m.rest[0] - m.time * capacity_ + m.bytes - 1) / m.bytes);
    return static_cast<uint64_t>(most);
  }

 private:
  const Label& at(int l) const { return labels_[l]; }
  static bool better(const Label& x, const Label& y) {
    return x.picoseconds != y.picoseconds ? x.picoseconds < y.picoseconds : x.kept < y.kept;
  }
  // Extends labels through all runs once.
  void pass() {
    labels_.assign(1, {0, 0, 0, 0, -1, -1, 0});
    std::vector<int> front{0};
    for (current_ = 0; current_ < runs_.size() && !front.empty(); ++current_)
      front = place_run(std::move(front));
    int best = -1;
    for (int l : front)
      if (best < 0 || better(at(l), at(best))) best = l;
    if (best >= 0 && at(best).picoseconds < incumbent_->picoseconds) incumbent_ = choice_of(best);
  }

  int64_t placed(const Label& l) const { return l.run == current_ ? l.placed : 0; }

  // Chooses multipliers. The critical one is the exchange rate at which the linear relaxation uses up the
  // capacity. It gives good bounds for choices that use about all of the capacity. Larger multipliers are
  // better for choices that would keep more, smaller ones for choices that leave room.
  void set_multipliers() {
    struct Step {
      Wide time, bytes;
      int64_t count;
    };
    std::vector<Step> steps;
    Wide used = 0;
    for (const SegmentRun& run : runs_) {
      auto hull = [&](size_t i) -> const Variant& { return run.variants[run.hull[i]]; };
      used += static_cast<Wide>(hull(0).kept) * run.count;
      for (size_t i = 1; i < run.hull.size(); ++i)
        steps.push_back({static_cast<Wide>(hull(i - 1).picoseconds - hull(i).picoseconds),
                         static_cast<Wide>(hull(i).kept - hull(i - 1).kept), run.count});
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.time * b.bytes > b.time * a.bytes; });
    size_t critical = 0;
    while (critical < steps.size() && (used += steps[critical].bytes * steps[critical].count) <= capacity_)
      ++critical;
    const size_t first = critical < neighbours ? 0 : critical - neighbours;
    for (size_t i = first; i < steps.size() && i <= critical + neighbours; ++i)
      add_multiplier(steps[i].bytes, steps[i].time);
    add_multiplier(1, 0);
  }

  void add_multiplier(Wide bytes, Wide time) {
    Multiplier m;
    m.bytes = bytes;
    m.time = time;
    for (const SegmentRun& run : runs_) {
      std::vector<Wide> least(run.variants.size());
      for (size_t v = run.variants.size(); v-- > 0;) {
        least[v] = m.cost(run.variants[v].picoseconds, run.variants[v].kept);
        if (v + 1 < run.variants.size()) least[v] = std::min(least[v], least[v + 1]);
      }
      m.least.push_back(std::move(least));
    }
    m.rest.assign(runs_.size() + 1, 0);
    for (size_t i = runs_.size(); i-- > 0;) m.rest[i] = m.rest[i + 1] + m.least[i][0] * runs_[i].count;
    multipliers_.push_back(std::move(m));
  }

  // The least cost, by one multiplier, of all completions of a label. Its remaining segments in the current
  // run take `variant` or a later one.
  Wide bound(const Multiplier& m, const Label& l, size_t variant) const {
    const int64_t left = runs_[current_].count - placed(l);
    const Wide own = m.cost(l.picoseconds, l.kept) - m.time * capacity_ + m.rest[current_ + 1];
    return left > 0 ? own + m.least[current_][variant] * left : own;
  }

  // The greatest of the lower bounds by all multipliers.
  Wide bound(const Label& l, size_t variant) const {
    Wide most = 0;
    for (const Multiplier& m : multipliers_)
      most = std::max(most, (bound(m, l, variant) + m.bytes - 1) / m.bytes);
    return most;
  }

  // room_[run][variant][placed]: the most bytes that the segments so far may keep, so that the rest fits with
  // this variant and later ones.
  void set_room() {
    room_.resize(runs_.size());
    int64_t after = INT64_MAX / 2;  // everything after run i fits on top of this many bytes
    for (size_t i = runs_.size(); i-- > 0;) {
      const SegmentRun& run = runs_[i];
      const size_t n = static_cast<size_t>(run.count);
      room_[i].assign(run.variants.size() + 1, std::vector<int64_t>(n + 1, INT64_MIN / 2));
      room_[i].back()[n] = after;
      for (size_t v = run.variants.size(); v-- > 0;) {
        const Variant& own = run.variants[v];
        std::vector<int64_t>& room = room_[i][v];
        room = room_[i][v + 1];
        for (size_t placed = n; placed-- > 0;)
          room[placed] = std::max(room[placed], std::min(limit_ - own.peak, room[placed + 1] - own.kept));
      }
      after = room_[i][0][0];
    }
  }

  uint64_t time_to_beat() const {
    const uint64_t least = incumbent_ ? std::min(to_beat_, incumbent_->picoseconds) : to_beat_;
    return least > slack_ ? least - slack_ : 0;
  }

  // The least cost, by one multiplier, of all completions of a label, minus the cost of the best known
  // choice. The label's remaining segments in the current run take variants after `v`. A label whose excess
  // is not negative cannot win. The excess is linear in the label's time and bytes; the other terms are the
  // same for all labels with equally many placed segments.
  struct Excess {
    Wide bytes, time;  // of the multiplier
    // `rest`: least cost of all runs after this one, minus the cost of the best known choice. `least`: least
    // cost of a segment of this run that is not placed yet.
    Wide rest, least;
    Wide gain;      // how much one more segment on `v` lowers the excess
    Wide base = 0;  // `rest` plus the least cost of the remaining segments of this run
    void set(int64_t left) { base = left > 0 ? rest + least * left : rest; }
    Wide of(int64_t kept, uint64_t picoseconds) const {
      return bytes * static_cast<Wide>(picoseconds) + time * kept + base;
    }
  };
  std::vector<Excess> excesses(size_t v) const {
    std::vector<Excess> list;
    if (time_to_beat() == UINT64_MAX) return list;
    const std::vector<Variant>& variants = runs_[current_].variants;
    for (const Multiplier& m : multipliers_) {
      // Unused for the last variant, after which no segment is left.
      const Wide least = v + 1 < variants.size() ? m.least[current_][v + 1] : 0;
      const Wide rest =
          m.rest[current_ + 1] - m.time * capacity_ - m.bytes * static_cast<Wide>(time_to_beat());
      list.push_back(
          {m.bytes, m.time, rest, least, least - m.cost(variants[v].picoseconds, variants[v].kept)});
    }
    return list;
  }

  // The number of further segments on the current variant after which a label may beat the best known choice.
  // 0 if it may already, `cannot_win` if it never can.
  static constexpr int64_t cannot_win = INT64_MAX;
  static int64_t segments_needed(const std::vector<Excess>& excesses, int64_t left, int64_t kept,
                                 uint64_t picoseconds) {
    int64_t most = 0;
    for (const Excess& e : excesses) {
      const Wide excess = e.of(kept, picoseconds);
      if (excess < 0) continue;
      if (left == 0 || e.gain <= 0 || excess / e.gain >= left) return cannot_win;
      most = std::max(most, static_cast<int64_t>(excess / e.gain) + 1);
    }
    return most;
  }

  // Places all segments of a run, one variant after the other.
  std::vector<int> place_run(std::vector<int> front) {
    const SegmentRun& run = runs_[current_];
    for (size_t v = 0; v < run.variants.size(); ++v) {
      check_in();
      front = keep_best(extended(std::move(front), v), v + 1);
    }
    std::erase_if(front, [&](int l) { return placed(at(l)) < run.count; });
    return front;
  }

  // A label of the front, extended by `count` segments on one variant.
  struct Chain {
    int64_t kept;
    uint64_t picoseconds;
    int parent;     // the label of the front
    int64_t count;  // segments on the variant
    // With at least this many placed segments it may beat the best known choice (`segments_needed`).
    int64_t may_win_from;
  };

  // Extends each label by zero, one, two, ... segments on variant `v`, as long as they fit and may win. The
  // result is sorted by segments placed, then by bytes kept. A label is dropped if another with equally many
  // segments placed keeps no more bytes and takes no more time: the other one remains better, however both
  // are extended.
  std::vector<Label> extended(std::vector<int> front, size_t v) {
    const Variant& variant = runs_[current_].variants[v];
    const std::vector<int64_t>& room = room_[current_][v];
    const int64_t segments = runs_[current_].count;
    const auto comes_before = [&](int a, int b) {
      const Label &x = at(a), &y = at(b);
      if (placed(x) != placed(y)) return placed(x) < placed(y);
      return x.kept != y.kept ? x.kept < y.kept : a < b;
    };
    // Usually the labels are sorted already.
    if (!std::is_sorted(front.begin(), front.end(), comes_before))
      std::sort(front.begin(), front.end(), comes_before);
    const bool bounds_stay = v + 1 < runs_[current_].variants.size() &&
                             std::all_of(multipliers_.begin(), multipliers_.end(), [&](const Multiplier& m) {
                               return m.least[current_][v] == m.least[current_][v + 1];
                             });
    const auto before = [](const Chain& x, const Chain& y) {
      if (x.kept != y.kept) return x.kept < y.kept;
      return x.picoseconds != y.picoseconds ? x.picoseconds < y.picoseconds : x.parent < y.parent;
    };
    // If `v` is the last variant, all remaining segments must take it.
    const bool is_last = v + 1 == runs_[current_].variants.size();
    std::vector<Excess> excess = excesses(v);
    const uint64_t below = time_to_beat();
    std::vector<Label> next;
    next.reserve(front.size() + front.size() / 4);
    next_chains_.clear();
    size_t f = 0;
    for (int64_t n = front.empty() ? segments + 1 : placed(at(front[0])); n <= segments; ++n) {
      chains_.clear();
      for (size_t c = 0;;) {
        const bool from_front = f < front.size() && placed(at(front[f])) == n;
        if (!from_front && c == next_chains_.size()) break;
        Chain chain{};
        if (from_front) chain = {at(front[f]).kept, at(front[f]).picoseconds, front[f], 0, n};
        if (from_front && (c == next_chains_.size() || before(chain, next_chains_[c]))) ++f;
        else chain = next_chains_[c++];
        if (chains_.empty() || chain.picoseconds < chains_.back().picoseconds) chains_.push_back(chain);
      }
      next_chains_.clear();
      const int64_t left = segments - n, room_after = room_[current_][v + 1][n];
      for (Excess& e : excess) e.set(left);
      const auto remaining_row = [&](size_t first_variant) {
        return remaining_ ? remaining_->row(current_, first_variant, n) : RemainingTimes::Row();
      };
      const RemainingTimes::Row with = remaining_row(v), without = remaining_row(v + 1);
      for (Chain& chain : chains_) {
        // A longer chain cannot win either.
        if (remaining_ && chain.picoseconds + with(chain.kept) >= below) continue;
        if (n >= chain.may_win_from && (!remaining_ || chain.picoseconds + without(chain.kept) < below)) {
          // With no segment on this variant, the label is unchanged. Its bound is unchanged too, if later
          // variants have the same least cost.
          const bool is_as_before = bounds_stay && chain.count == 0 && at(chain.parent).run == current_;
          const int64_t more = is_as_before ? 0
                               : is_last && left > 0
                                   ? left
                                   : segments_needed(excess, left, chain.kept, chain.picoseconds);
          if (more == cannot_win) continue;
          chain.may_win_from = n + more;
          if (more == 0 && chain.kept <= room_after) {
            if (next.size() >= most_labels_) {
              reached_label_limit_ = true;
              return next;
            }
            next.push_back(
                {current_, n, chain.kept, chain.picoseconds, chain.parent, static_cast<int>(v), chain.count});
            ++label_count_;
          }
        }
        // Extends the chain by one more segment, if it fits.
        if (n == segments || chain.kept > limit_ - variant.peak ||
            chain.kept + variant.kept > room[static_cast<size_t>(n) + 1])
          continue;
        next_chains_.push_back({chain.kept + variant.kept, size_add(chain.picoseconds, variant.picoseconds),
                                chain.parent, chain.count + 1, chain.may_win_from});
      }
    }
    return next;
  }

  // Keeps at most as many labels as the beam width, those with the least bounds.
  std::vector<int> keep_best(std::vector<Label> best, size_t variant) {
    if (best.size() > beam_) {
      dropped_by_beam_ = true;
      std::vector<std::pair<Wide, size_t>> bounds;
      for (size_t i = 0; i < best.size(); ++i) bounds.push_back({bound(best[i], variant), i});
      std::nth_element(bounds.begin(), bounds.begin() + static_cast<std::ptrdiff_t>(beam_), bounds.end());
      std::vector<Label> next;
      for (size_t i = 0; i < beam_; ++i) next.push_back(best[bounds[i].second]);
      best = std::move(next);
    }
    const size_t room = most_labels_ - std::min(labels_.size(), most_labels_);
    if (best.size() > room) {
      reached_label_limit_ = true;
      best.resize(room);
    }
    std::vector<int> front(best.size());
    std::iota(front.begin(), front.end(), static_cast<int>(labels_.size()));
    labels_.insert(labels_.end(), best.begin(), best.end());
    return front;
  }

  void consider(std::vector<Parts> parts) {
    StackChoice c = measured(runs_, std::move(parts));
    if (c.peak <= limit_ && (!incumbent_ || c.picoseconds < incumbent_->picoseconds))
      incumbent_ = std::move(c);
  }

  // Makes a good first choice: the longest run is split between two variants of its hull, and the other runs
  // take the variant that the relaxation prefers.
  void make_incumbent() {
    size_t longest = 0;
    std::vector<Parts> parts(runs_.size());
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].count > runs_[longest].count) longest = i;
      size_t best = 0;
      const Multiplier& m = multipliers_[std::min(multipliers_.size() - 1, neighbours)];
      auto cost = [&](size_t v) {
        return m.cost(runs_[i].variants[v].picoseconds, runs_[i].variants[v].kept);
      };
      for (size_t v = 1; v < runs_[i].variants.size(); ++v)
        if (cost(v) < cost(best)) best = v;
      parts[i] = {{static_cast<int>(best), runs_[i].count}};
    }
    const SegmentRun& run = runs_[longest];
    for (int slow : run.hull)
      for (int fast : run.hull) {
        if (run.variants[slow].picoseconds < run.variants[fast].picoseconds) continue;
        auto split = [&](int64_t count) {  // `count` segments take the slow variant
          Parts& p = parts[longest];
          p = {{slow, count}, {fast, run.count - count}};
          if (slow > fast) std::swap(p[0], p[1]);
          std::erase_if(p, [](const StackChoice::Part& part) { return part.count == 0; });
        };
        // Puts as few segments on the slow variant as the limit allows. More segments on it keep fewer bytes.
        int64_t low = 0, high = run.count;
        while (low < high) {
          const int64_t middle = (low + high) / 2;
          split(middle);
          if (measured(runs_, parts).peak <= limit_) high = middle;
          else low = middle + 1;
        }
        split(high);
        consider(parts);
      }
  }

  uint64_t bound_by_remaining_times() const { return remaining_ ? remaining_->row(0, 0, 0)(0) : 0; }

  // Makes a good choice greedily, segment by segment and variant by variant, guided by the bounds in
  // remaining_.
  void choose_by_remaining_times() {
    std::vector<Parts> parts(runs_.size());
    int64_t kept = 0;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const SegmentRun& run = runs_[i];
      int64_t placed = 0;
      for (size_t v = 0; placed < run.count && v < run.variants.size(); ++v) {
        const Variant& own = run.variants[v];
        const int64_t before = placed;
        while (placed < run.count && kept <= limit_ - own.peak &&
               kept + own.kept <= room_[i][v][static_cast<size_t>(placed) + 1]) {
          // Whether this variant must be taken, because later variants would no longer fit.
          const bool must = kept > room_[i][v + 1][placed];
          if (!must && remaining_->row(i, v + 1, placed)(kept) <
                           size_add(own.picoseconds, remaining_->row(i, v, placed + 1)(kept + own.kept)))
            break;
          kept += own.kept, ++placed;
        }
        if (placed > before) parts[i].push_back({static_cast<int>(v), placed - before});
      }
      if (placed < run.count) return;
    }
    consider(std::move(parts));
  }

  StackChoice choice_of(int label) const {
    std::vector<Parts> parts(runs_.size());
    for (int l = label; at(l).parent >= 0; l = at(l).parent)
      if (at(l).count > 0) parts[at(l).run].push_back({at(l).variant, at(l).count});
    for (auto& p : parts) std::reverse(p.begin(), p.end());
    return measured(runs_, std::move(parts));
  }

  const std::vector<SegmentRun>& runs_;
  int64_t limit_, capacity_;
  size_t most_labels_;
  uint64_t to_beat_;
  double tolerance_;
  uint64_t slack_ = 0;  // picoseconds; choices that are faster by at most this may be missed
  std::optional<RemainingTimes> remaining_;
  std::vector<Multiplier> multipliers_;
  std::vector<std::vector<std::vector<int64_t>>> room_;
  std::vector<Label> labels_;
  // Chains with the loop's current number of placed segments, and with one more.
  std::vector<Chain> chains_, next_chains_;
  std::optional<StackChoice> incumbent_;
  size_t current_ = 0, beam_ = SIZE_MAX, label_count_ = 0;
  bool dropped_by_beam_ = false;      // whether the beam dropped labels
  bool reached_label_limit_ = false;  // whether most_labels dropped labels
};

}  // namespace

StackAnswer solve(const std::vector<SegmentRun>& runs, int64_t limit, size_t most_labels, uint64_t to_beat,
                  double tolerance) {
  return Solver(runs, limit, most_labels, to_beat, tolerance).solve();
}

}  // namespace stw
