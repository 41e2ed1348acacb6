// A step's programs under the clock: what calibration and the timeline are made of.
#pragma once
#include <cstddef>
#include <vector>

#include "planner/program/program.h"

namespace stw {

// Timed runs, after one that warms up: few where they take long, more where they are over soon.
inline constexpr size_t fewest_rounds = 5, most_rounds = 31;

// A program, how often a step runs it, and what each round took.
struct TimedProgram {
  const Program* program;
  uint64_t count;               // 0: timed besides the step
  std::vector<float> seconds;   // (rounds, instructions)
  std::vector<float> whole;     // (rounds)
  TimedProgram(const Program& p, uint64_t n) : program(&p), count(n), seconds(most_rounds * p.instructions.size()), whole(most_rounds) {}
  // Of an instruction, and of the whole, over that many rounds.
  double median_of(size_t instruction, size_t rounds) const;
  double median_of_whole(size_t rounds) const;
};

}  // namespace stw
