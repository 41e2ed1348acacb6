// Rounds of skyline passes (skyline.h): first with different rules and orders of the blocks, then with the
// best of them, from which each pass learns. A block that a pass failed to place in time comes earlier in the
// next one ("squeaky wheel" optimization: Joslin and Clements, 1999).
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/pack/greedy.h"
#include "planner/pack/sections.h"
#include "planner/pack/skyline.h"

namespace stw {

class Rounds {
 public:
  // `sections` must outlive the object. `bound`: no packing is lower.
  Rounds(const Sections& sections, uint64_t bound);

  // Goes on with the rounds until the height of `best` is at most `enough`, or `most` blocks have been placed
  // in this call. Placing a block takes about a microsecond. Returns the number of blocks placed.
  uint64_t run(uint64_t enough, uint64_t most, GreedyPacking& best);

 private:
  struct Style {
    double (*key)(double life, double size);  // the block with the largest key has the highest rank
    SkylineRules rules;
  };
  // A style, how far its first pass came, and what its later passes have learnt.
  struct Learner {
    Style style;
    uint64_t height;
    size_t placed;
    std::vector<double> weights;  // factors of the blocks' keys
  };
  struct Ranked {
    double key;
    int block;
  };

  static std::vector<Style> all_styles();
  double key(const Style& style, size_t block) const;
  bool pass(SkylineRules rules, GreedyPacking& best);
  void choose_learners();
  void learn(Learner& learner, double noise, GreedyPacking& best);
  double random();

  const Sections& sections_;
  const uint64_t bound_;
  Skyline skyline_;
  std::vector<Style> styles_;
  std::vector<Learner> learners_;
  size_t passes_ = 0;
  uint64_t draws_ = 0;
  // Scratch memory of a pass.
  std::vector<Ranked> keys_;
  std::vector<int> order_;
  GreedyPacking trial_;
};

}  // namespace stw
