// Thousands of buffers and more: how near packings come to the bound, node limits, cancels, and inputs that
// are meant to be slow. The seeds are fixed, and a packing is the same on every machine, so the bounds are
// exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <queue>
#include <random>
#include <string>

#include "kernels/contract/sizes.h"
#include "planner/base/check_in.h"
#include "planner/pack/pack.h"
#include "tests/planner/pack/pack_status.h"

namespace stw {
namespace {

using Intervals = std::vector<Interval>;

// Draws numbers that are the same with every standard library.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t from_to(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  // About log-normal: 2 to a number that is normal with these parameters. Only exact arithmetic.
  uint64_t log_normal(double mean, double deviation) {
    double normal = -6;
    for (int k = 0; k < 12; ++k) normal += static_cast<double>(random_() >> 11) * 0x1p-53;
    const double power = std::max(0.0, mean + deviation * normal);
    return static_cast<uint64_t>(std::ldexp(1 + power - std::floor(power), static_cast<int>(power)));
  }
  uint64_t bytes(double mean, double deviation) { return round_up(log_normal(mean, deviation), 256); }

 private:
  std::mt19937_64 random_;
};

// Cuts the largest piece of a rectangle until there are enough. Nothing is wasted in the best packing.
Intervals perfect_cuts(uint64_t seed, size_t count) {
  struct Piece {
    int64_t lower, upper, low, high;
    bool operator<(const Piece& other) const { return area() < other.area(); }
    double area() const { return static_cast<double>(upper - lower) * static_cast<double>(high - low); }
  };
  Draw draw(seed);
  std::priority_queue<Piece> pieces;
  pieces.push({0, static_cast<int64_t>(count), 0, int64_t{1} << 34});
  while (pieces.size() < count) {
    Piece a = pieces.top(), b = a;
    pieces.pop();
    const bool in_time = a.upper - a.lower > 1 && draw.one_in(2);
    int64_t &end = in_time ? a.upper : a.high, &begin = in_time ? b.lower : b.low;
    const int64_t whole = end - begin;
    end = begin = begin + std::clamp<int64_t>(whole * draw.from_to(20, 80) / 100, 1, whole - 1);
    pieces.push(a);
    pieces.push(b);
  }
  Intervals intervals;
  for (; !pieces.empty(); pieces.pop()) {
    const Piece& p = pieces.top();
    intervals.push_back({p.lower, p.upper, static_cast<uint64_t>(p.high - p.low)});
  }
  return intervals;
}

// Weights that stay, a chain of activations, and some that are used again much later.
Intervals inference(uint64_t seed, int64_t count) {
  Draw draw(seed);
  Intervals intervals;
  for (int64_t i = 0; i < count / 5; ++i) intervals.push_back({0, 2 * count, draw.bytes(16, 2.2)});
  for (int64_t t = 0; static_cast<int64_t>(intervals.size()) < count; t += 2) {
    const int64_t kind = draw.below(10);
    const int64_t life = kind < 7   ? draw.from_to(2, 12)
                         : kind < 9 ? draw.from_to(12, 120)
                                    : draw.from_to(120, 3000);
    intervals.push_back({t, std::min(2 * count, t + life), draw.bytes(17.3, 1.7)});
  }
  return intervals;
}

// Layers forward and backward: saved activations nest, temporaries and gradients come in between.
Intervals training(uint64_t seed, int64_t count) {
  Draw draw(seed);
  Intervals intervals;
  const int64_t layers = count / 24, steps = 16, end = 2 * layers * steps;
  std::vector<uint64_t> sizes;
  for (int k = 0; k < 14; ++k) sizes.push_back(draw.bytes(18.8, 1.4));
  for (int64_t l = 0; l < layers; ++l) {
    const int64_t forward = l * steps, backward = end - forward - steps;
    const uint64_t percent = 70 + static_cast<uint64_t>(draw.below(60));
    const auto size = [&](int64_t k) { return round_up(sizes[static_cast<size_t>(k)] * percent / 100, 256); };
    intervals.push_back({0, end, 3 * size(0)});
    intervals.push_back({backward, end, 3 * size(0)});
    for (int64_t k = 0; k < 14; ++k) {
      const int64_t t = forward + k;
      intervals.push_back({t, k % 3 == 2 ? t + draw.from_to(1, 4) : end - t - 1, size(k)});
    }
    for (int64_t k = 0; k < 8; ++k)
      intervals.push_back({backward + k, std::min(end, backward + k + draw.from_to(1, 6)), size(k)});
  }
  return intervals;
}

// Lives and sizes of all magnitudes.
Intervals unrelated(uint64_t seed, int64_t count) {
  Draw draw(seed);
  Intervals intervals;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t life = std::min(2 * count, static_cast<int64_t>(draw.log_normal(7.6, 2.2)));
    const int64_t lower = draw.below(2 * count - life + 1);
    intervals.push_back({lower, lower + life, draw.log_normal(14.4, 2.2)});
  }
  return intervals;
}

// The judge sweeps over time and keeps the live buffers sorted by offset. Returns the error, or an empty
// text.
std::string mistake(const Intervals& intervals, const Packing& p, uint64_t capacity = 0) {
  struct Event {
    int64_t time;
    bool starts;
    size_t buffer;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].lower >= intervals[i].upper || intervals[i].size == 0) continue;
    events.push_back({intervals[i].lower, true, i});
    events.push_back({intervals[i].upper, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.starts < b.starts;
  });
  std::map<uint64_t, uint64_t> live;  // offset -> end
  uint64_t height = 0, bytes = 0, most = 0;
  for (const Event& e : events) {
    const uint64_t offset = p.offsets[e.buffer], size = intervals[e.buffer].size;
    if (!e.starts) {
      live.erase(offset);
      bytes -= size;
      continue;
    }
    const auto [at, is_new] = live.emplace(offset, offset + size);
    const auto next = std::next(at);
    if (!is_new || (next != live.end() && next->first < offset + size) ||
        (at != live.begin() && std::prev(at)->second > offset))
      return std::to_string(e.buffer) + " overlaps";
    height = std::max(height, offset + size);
    most = std::max(most, bytes += size);
  }
  if (p.height != height) return "the height is " + std::to_string(height);
  if (p.bound < most) return "the bound is below what lives at once";
  return wrong_status(p, height, capacity);
}

// By how many percent the packing exceeds the bound.
double gap(const Intervals& intervals, uint64_t node_limit) {
  const Packing p = pack(intervals, {0, node_limit});
  EXPECT_EQ(mistake(intervals, p), "");
  EXPECT_LE(p.nodes, node_limit);
  return p.bound == 0 ? 0 : (static_cast<double>(p.height) / static_cast<double>(p.bound) - 1) * 100;
}

TEST(LargePack, JudgeSeesOverlaps) {
  const Intervals intervals = perfect_cuts(1, 300);
  const Packing good = pack(intervals, {0, 0});
  ASSERT_EQ(mistake(intervals, good), "");
  int seen = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    Packing wrong = good;
    wrong.offsets[i] -= wrong.offsets[i] == 0 ? 0 : 1;
    seen += !mistake(intervals, wrong).empty();
  }
  EXPECT_GT(seen, 150);  // the others lie on the floor or above a hole
}

TEST(LargePack, PerfectCuts) {
  EXPECT_LE(gap(perfect_cuts(1, 2500), 400'000), 17);
  EXPECT_LE(gap(perfect_cuts(1, 20000), 150'000), 22);
}

TEST(LargePack, ModelsComeNearTheBound) {
  EXPECT_LE(gap(inference(2, 20000), 150'000), 0.1);
  EXPECT_LE(gap(training(1, 20000), 150'000), 0.1);
  EXPECT_LE(gap(unrelated(1, 20000), 150'000), 0.1);
}

// The decisions of the planner's own layouts (layout.cpp).
TEST(LargePack, ModelsComeNearTheBoundWithFewDecisions) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const int64_t count : {600, 1000, 2000, 4000, 6000}) {
      const uint64_t nodes = count <= 4096 ? 1500 : static_cast<uint64_t>(4 * count);
      EXPECT_LE(gap(inference(seed, count), nodes), 0.3) << count << ", seed " << seed;
      EXPECT_LE(gap(training(seed, count), nodes), 0.3) << count << ", seed " << seed;
    }
  }
}

TEST(LargePack, SameProblemSamePacking) {
  for (const Intervals& intervals : {unrelated(3, 5000), perfect_cuts(3, 3000)}) {
    const Packing a = pack(intervals, {0, 30'000}), b = pack(intervals, {0, 30'000});
    EXPECT_EQ(a.offsets, b.offsets);
    EXPECT_EQ(a.nodes, b.nodes);
  }
}

TEST(LargePack, NodeLimitBoundsTheRounds) {
  const Intervals intervals = perfect_cuts(4, 6000);
  const uint64_t greedy = pack(intervals, {0, 0}).height;
  uint64_t before = greedy, bound = 0;
  for (const uint64_t nodes : {1, 5'000, 20'000, 40'000}) {
    const Packing p = pack(intervals, {0, nodes});
    EXPECT_EQ(mistake(intervals, p), "");
    EXPECT_LE(p.nodes, nodes);
    EXPECT_GT(p.nodes, nodes / 2);
    EXPECT_LE(p.height, before);
    before = p.height;
    bound = p.bound;
  }
  EXPECT_LT(before - bound, (greedy - bound) / 2);
}

TEST(LargePack, Capacity) {
  const Intervals intervals = inference(5, 6000);
  const uint64_t bound = pack(intervals, {0, 0}).bound;
  for (const uint64_t capacity : {bound - 1, bound, bound + bound / 200}) {
    const Packing p = pack(intervals, {capacity, 200'000});
    EXPECT_EQ(mistake(intervals, p, capacity), "");
    EXPECT_EQ(p.status == PackStatus::infeasible, capacity < bound);
    if (capacity > bound) { EXPECT_LE(p.height, capacity); }
  }
}

// Three rectangles, one after the other, share the decisions.
TEST(LargePack, PartsThatShareNoTime) {
  Intervals intervals = perfect_cuts(6, 3000);
  for (const uint64_t seed : {7, 8}) {
    const int64_t end = std::max_element(intervals.begin(), intervals.end(), [](auto& a, auto& b) {
                          return a.upper < b.upper;
                        })->upper;
    for (Interval i : perfect_cuts(seed, 1500)) intervals.push_back({i.lower + end, i.upper + end, i.size});
  }
  EXPECT_LT(gap(intervals, 200'000), 22);
}

// Inputs for which simple methods take the square of the number of buffers, or overflow.
TEST(LargePack, InputsThatAreMeantToBeSlow) {
  const int64_t count = 50'000;
  Draw draw(9);
  std::map<std::string, Intervals> inputs;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t size = draw.log_normal(20, 2);
    inputs["all lives equal"].push_back({0, 10, size});
    inputs["three lives"].push_back({i % 3, i % 3 + 3, size});
    inputs["equal sizes"].push_back({i, i + draw.from_to(1, 300), 4096});
    inputs["stairs"].push_back({i, i + 2, static_cast<uint64_t>(count - i)});
    inputs["one after the other"].push_back({2 * i, 2 * i + 1, size});
    inputs["nested"].push_back({i, 2 * count - i, size});
    inputs["from both ends"].push_back(i % 2 ? Interval{0, i + 1, size % 1000 + 1}
                                             : Interval{i, count, size % 1000 + 1});
    inputs["no life or no size"].push_back(i % 2 ? Interval{5, 5, size} : Interval{i, i + 3, 0});
  }
  for (const auto& [name, intervals] : inputs) { EXPECT_LE(gap(intervals, 1), 8) << name; }
}

TEST(LargePack, HugeSizesSaturate) {
  Draw draw(10);
  Intervals intervals;
  for (int64_t i = 0; i < 6000; ++i)
    intervals.push_back({i, i + draw.from_to(1, 5), (uint64_t{1} << 58) + draw.log_normal(50, 2)});
  EXPECT_EQ(gap(intervals, 30'000), 0);
  for (Interval& i : intervals) i.size *= 8;
  const Packing p = pack(intervals, {0, 30'000});
  EXPECT_EQ(p.height, size_limit);
  EXPECT_EQ(p.status, PackStatus::unknown);
  // The bound is below the limit, but no packing reaches it.
  Intervals tight;
  for (const Interval& i : perfect_cuts(11, 5000)) tight.push_back({i.lower, i.upper, (i.size << 28) - 1});
  const Packing above = pack(tight, {0, 30'000});
  EXPECT_EQ(above.height, size_limit);
  EXPECT_LT(above.bound, size_limit);
}

// Large buffers with short lives, and small ones that live longer. In the order of their lives or of their
// beginnings, the small ones get in the way of the large ones. Largest first, the packing is optimal.
TEST(LargePack, LargestFirstIsTried) {
  Draw draw(13);
  Intervals intervals;
  for (int64_t i = 0; i < 3000; ++i) {
    intervals.push_back({i, i + draw.from_to(1, 4), 1 << 20});
    intervals.push_back({i, i + draw.from_to(2, 40), 1 << 17});
  }
  const Packing p = pack(intervals, {});
  EXPECT_EQ(p.height, p.bound);
}

// Cancels at one of its check-ins, and measures the longest time between two of them.
class Canceller final : public Supervisor {
 public:
  explicit Canceller(int last) : last_(last) { supervisor = this; }
  ~Canceller() { supervisor = nullptr; }
  bool is_cancelled() const noexcept override { return calls_ >= last_; }
  void advance(uint64_t) override {
    longest_ = std::max(longest_, seconds() - begin_);
    begin_ = seconds();
    if (++calls_ >= last_) throw_cancelled();
  }
  void set_unit_progress(double) override {}
  void commit() noexcept override {}
  bool is_committed() const noexcept override { return false; }
  [[noreturn]] void throw_cancelled() override { throw Cancelled{"cancelled by the test"}; }
  double longest() const { return longest_; }
  int calls() const { return calls_; }

 private:
  // Processor time of this thread: other work on the machine does not count.
  static double seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  const int last_;
  int calls_ = 0;
  double longest_ = 0;
  double begin_ = seconds();
};

TEST(LargePack, CancelEndsEveryPhase) {
  const Intervals intervals = perfect_cuts(12, 20000);
  // In the greedy order, in the first pass, in later ones.
  for (const int last : {1, 60, 150, 300}) {
    Canceller canceller(last);
    EXPECT_THROW(pack(intervals, {0, 1'000'000}), Cancelled) << last;
    EXPECT_EQ(canceller.calls(), last);
    EXPECT_LT(canceller.longest(), 0.5);
  }
}

}  // namespace
}  // namespace stw
