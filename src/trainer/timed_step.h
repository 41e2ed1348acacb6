// Times of a step's programs, for calibration and the timeline.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "planner/program/program.h"
#include "src/trainer/core.h"

namespace stw {

// Timed rounds after one warm-up round: few where a round takes long, more where it is short.
inline constexpr size_t fewest_rounds = 5, most_rounds = 31;

// A program, how often a step runs it, and the seconds of each round.
struct TimedProgram {
  const Program* program;
  uint64_t count;                      // 0: timed in addition to the step
  std::vector<float> seconds;          // (rounds, instructions)
  std::vector<float> program_seconds;  // (rounds)
  TimedProgram(const Program& p, uint64_t n)
      : program(&p), count(n), seconds(most_rounds * p.instructions.size()), program_seconds(most_rounds) {}
  // The median over `rounds` rounds of one instruction, and of the whole program.
  double median_of(size_t instruction, size_t rounds) const;
  double median_of_program(size_t rounds) const;
};

// The programs of one step.
std::vector<TimedProgram> programs_of_step(const TrainerCore& core);
// Times every instruction in several rounds, and returns the number of rounds. Afterwards every byte is as
// fill() wrote it, unless the weights can no longer be read. Errors, whose messages begin with `what`:
// bad_state where the trainer is not as it was created; non_finite.
Result<size_t> time_programs(TrainerCore& core, std::vector<TimedProgram>& timed, const std::string& what);

}  // namespace stw
