// Calibration turns the measured times of a step's instructions into the device's figures.
#include "src/trainer/calibrate.h"

#include <algorithm>
#include <vector>

#include "kernels/contract/sizes.h"
#include "planner/device/calibration.h"
#include "planner/program/layout.h"
#include "src/trainer/timed_step.h"

namespace stw {

static constexpr uint64_t mib = uint64_t{1} << 20;

Result<DeviceProfile> calibrate(TrainerCore& core) {
  const Programs& programs = core.programs();
  // Also time a micro-step of one sample: times at two sizes separate the launch from the work.
  Program single;
  if (core.plan().decisions.micro_batch > 1) {
    single = build_micro(core.graph(), programs.arena, core.plan().decisions, 1, core.plan().request.threads,
                         true);
    lay_out(single, programs.arena.alignment);
  }
  std::vector<TimedProgram> timed = programs_of_step(core);
  if (!single.instructions.empty() && single.end <= core.plan().bytes.arena)
    timed.insert(timed.begin(), TimedProgram(single, 0));
  STW_ASSIGN(rounds, time_programs(core, timed, "calibrate"));

  std::vector<TimedOp> ops;
  double step_seconds = 0;
  for (const TimedProgram& t : timed) {
    const std::vector<Instruction>& instructions = t.program->instructions;
    const size_t first = ops.size();
    double sum = 0;
    for (size_t n = 0; n < instructions.size(); ++n) {
      const Instruction& i = instructions[n];
      ops.push_back({i.kind, cost_of(core.graph(), i, t.program->threads), t.median_of(n, rounds), t.count,
                     core.graph().peak_of(core.graph().op(i.op))});
      sum += ops.back().seconds;
    }
    // The system interrupts threads now and then. The median of a single op excludes these interruptions; the
    // time of a whole program includes them. All ops are scaled, so that their sum is the program's time. On
    // a GPU this is not needed: ops are timed on the device, without gaps between them.
    const double program_seconds = core.device.is_cuda() ? sum : t.median_of_program(rounds);
    for (size_t n = first; n < ops.size(); ++n) ops[n].seconds *= program_seconds / sum;
    step_seconds += static_cast<double>(t.count) * program_seconds;
  }
  const DeviceProfile& used = profile_of(core.plan().request);
  DeviceProfile profile =
      calibrated(used.is_calibrated() ? used : *find_device(core.plan().request.device), core.plan().numerics,
                 std::max(1, core.plan().request.threads), ops, step_seconds);
  if (const uint64_t outside = core.device.memory_outside(core.memory.arena_bytes()))
    profile.reserve_bytes = round_up(outside, mib);
  return profile;
}

}  // namespace stw
