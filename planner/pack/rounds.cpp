#include "planner/pack/rounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "planner/pack/failed_states.h"

namespace stw {

namespace {

constexpr size_t learners_kept = 4;
constexpr double gain = 1.3;                          // of the weight of a block that came too late
constexpr double largest_weight = 1e6;                // above it, all weights are drawn together
constexpr double noises[] = {0.04, 0.12, 0.2, 0.28};  // changes of a key, at most 1.5 times as much

double area(double life, double size) { return life * size; }
double size_then_life(double life, double size) { return std::sqrt(life) * size; }
double life_then_size(double life, double size) { return life * std::sqrt(size); }
double size_only(double, double size) { return size; }
double life_only(double life, double) { return life; }

}  // namespace

// Each of the first styles finds an optimum for many of the programs and models that the ones before it miss.
std::vector<Rounds::Style> Rounds::all_styles() {
  using enum SkylineRules::Fit;
  return {
      {life_then_size, {true, level}},
      {life_only, {true, any}},
      {area, {true, any}},
      {size_only, {true, flush}},
      {size_then_life, {true, level}},
      {life_then_size, {true, flush}},
      {area, {false, flush}},
      {area, {false, level}},
      {life_only, {true, flush}},
      {area, {true, flush}},
      {size_then_life, {true, flush}},
      {size_then_life, {true, any}},
      {area, {true, level}},
      {size_only, {true, level}},
      {life_then_size, {true, any}},
      {size_then_life, {false, flush}},
  };
}

Rounds::Rounds(const Sections& sections, uint64_t bound)
    : sections_(sections),
      bound_(bound),
      skyline_(sections),
      styles_(all_styles()),
      keys_(sections.blocks.size()) {}

uint64_t Rounds::run(uint64_t enough, uint64_t most, GreedyPacking& best) {
  uint64_t placements = 0;
  for (; best.height > enough && placements < most; ++passes_) {
    if (passes_ < styles_.size()) {
      const Style& style = styles_[passes_];
      for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = {key(style, i), static_cast<int>(i)};
      const uint64_t height = pass(style.rules, best) ? trial_.height : UINT64_MAX;
      learners_.push_back({style, height, skyline_.placed(), {}});
    } else {
      if (passes_ == styles_.size()) choose_learners();
      const size_t round = passes_ - styles_.size();
      learn(learners_[round % learners_kept], noises[round / learners_kept % std::size(noises)], best);
    }
    placements += skyline_.placed() + 1;
  }
  return placements;
}

void Rounds::choose_learners() {
  std::stable_sort(learners_.begin(), learners_.end(), [](const Learner& a, const Learner& b) {
    return a.height != b.height ? a.height < b.height : a.placed > b.placed;
  });
  learners_.resize(learners_kept);
  for (Learner& learner : learners_) learner.weights.assign(keys_.size(), 1);
}

double Rounds::key(const Style& style, size_t block) const {
  const Block& b = sections_.blocks[block];
  return style.key(static_cast<double>(b.end - b.first), static_cast<double>(b.size));
}

// Packs in the order of keys_. If the packing is lower than the best one, keeps it and returns true.
bool Rounds::pass(SkylineRules rules, GreedyPacking& best) {
  std::sort(keys_.begin(), keys_.end(), [](const Ranked& a, const Ranked& b) {
    return a.key != b.key ? a.key > b.key : a.block < b.block;
  });
  order_.clear();
  for (const Ranked& ranked : keys_) order_.push_back(ranked.block);
  const bool lower = skyline_.pack(order_, rules, bound_, best.height, trial_);
  if (lower) best = trial_;
  return lower;
}

void Rounds::learn(Learner& learner, double noise, GreedyPacking& best) {
  for (size_t i = 0; i < keys_.size(); ++i)
    keys_[i] = {key(learner.style, i) * learner.weights[i] * (1 + noise * random()), static_cast<int>(i)};
  if (pass(learner.style.rules, best)) return;
  const int section = skyline_.highest_section();
  bool is_large = false;
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Block& b = sections_.blocks[i];
    if (b.first > section || section >= b.end || skyline_.is_placed(static_cast<int>(i))) continue;
    learner.weights[i] *= gain;
    is_large |= learner.weights[i] > largest_weight;
  }
  if (is_large)
    for (double& weight : learner.weights) weight = std::sqrt(weight);
}

// From -1.5 to 1.5, and seldom near the ends: a sum of three uniform numbers.
double Rounds::random() {
  double sum = -1.5;
  for (int k = 0; k < 3; ++k) sum += static_cast<double>(mixed(draws_++) >> 11) * 0x1p-53;
  return sum;
}

}  // namespace stw
