// Calibration: a step's programs run instruction by instruction under the clock, in their order and place, so that every
// kernel finds the caches as it does in training.
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "planner/calibration.h"
#include "planner/layout.h"
#include "src/random.h"
#include "src/trainer.h"

namespace stw {

namespace {

// Timed runs, after one that warms up: few where they take long, more where they are over soon.
constexpr size_t fewest_rounds = 5, most_rounds = 31;
constexpr double enough_seconds = 2;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Reorders its elements.
float median(std::vector<float>& x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

// A program, how often a step runs it, and what each round took.
struct Timed {
  const Program* program;
  uint64_t count;               // 0: timed besides the step
  std::vector<float> seconds;   // (rounds, instructions)
  std::vector<float> whole;     // (rounds)
  Timed(const Program& p, uint64_t n) : program(&p), count(n), seconds(most_rounds * p.instructions.size()), whole(most_rounds) {}
};

}  // namespace

Result<DeviceProfile> Trainer::calibrate() {
  if (!as_created_)
    return Error{Code::bad_state, "calibrate: expected a trainer without a step, a restore or an imported tensor"};
  const InPhase phase(*this, TrainerPhase::calibrate);
  const Programs& programs = planned_->programs;
  const uint64_t m = static_cast<uint64_t>(plan().decisions.micro_batch);

  // Besides the step a micro-step of one sample: at two extents the launch shows.
  Program single;
  if (m > 1) {
    single = build_micro(graph(), programs.arena, plan().decisions, 1, plan().request.threads, true);
    lay_out(single, programs.arena.alignment);
  }
  std::vector<Timed> timed;
  if (!single.instructions.empty() && single.end <= plan().bytes.arena) timed.emplace_back(single, 0);
  timed.emplace_back(programs.micro_first, 1);
  if (global_batch() / m > 1) timed.emplace_back(programs.micro_next, global_batch() / m - 1);
  if (global_batch() % m > 0) timed.emplace_back(programs.micro_short, 1);
  timed.emplace_back(programs.update, 1);
  auto made_up = [&](uint64_t sample, const SampleRows& rows) -> Status {
    for (uint32_t t = 0; t < static_cast<uint32_t>(sequence()); ++t) {
      const auto draw = philox(options_.seed, {t, static_cast<uint32_t>(sample), 0, 0});
      rows.tokens[t] = static_cast<int32_t>(draw[0] % static_cast<uint64_t>(graph().vocabulary));
      rows.targets[t] = static_cast<int32_t>(draw[1] % static_cast<uint64_t>(graph().vocabulary));
    }
    return ok();
  };
  const SampleSource source = std::ref(made_up);
  size_t rounds = 0;
  auto run = [&]() -> Status {
    const double begin = now();
    // Round 0 warms up: the next one writes over it.
    for (size_t round = 0; round <= most_rounds; ++round) {
      begin_state();   // at a learning rate of 0
      state_.loss_scale = 1;   // small gradients may vanish; none overflows
      push_state();
      for (Timed& t : timed) {
        STW_TRY(check_cancelled());
        if (t.program->tokens >= 0) STW_TRY(load(*t.program, source, 0, global_batch()));
        const size_t at = round > 0 ? round - 1 : 0;
        const double start = now();
        STW_TRY(stream_->run_timed(execution_, *t.program, t.seconds.data() + at * t.program->instructions.size()));
        t.whole[at] = static_cast<float>(now() - start);
      }
      rounds = round;
      STW_TRY(pull_state());
      if (state_.skip != 0) return Error{Code::non_finite, "calibrate: the loss or a gradient of the model is not finite"};
      if (rounds >= fewest_rounds && now() - begin > enough_seconds) break;
    }
    return ok();
  };

  broken_ = true;   // until the weights are back
  const Status ran = run();
  STW_TRY(fill());
  broken_ = false;
  STW_TRY(ran);

  std::vector<TimedOp> ops;
  std::vector<float> sample(rounds);
  double step_seconds = 0;
  for (Timed& t : timed) {
    const std::vector<Instruction>& instructions = t.program->instructions;
    const size_t first = ops.size();
    double sum = 0;
    for (size_t n = 0; n < instructions.size(); ++n) {
      const Instruction& i = instructions[n];
      for (size_t r = 0; r < rounds; ++r) sample[r] = t.seconds[r * instructions.size() + n];
      const Cost cost = op_row(i.kind).cost(graph(), graph().op(i.op), {i.samples, i.rows, t.program->threads, i.elements});
      ops.push_back({i.kind, cost, static_cast<double>(median(sample)), t.count});
      sum += ops.back().seconds;
    }
    // What holds a thread up now and then hits every op seldom, but every program: all of them share that.
    t.whole.resize(rounds);
    const double whole = static_cast<double>(median(t.whole));
    for (size_t n = first; n < ops.size(); ++n) ops[n].seconds *= whole / sum;
    step_seconds += static_cast<double>(t.count) * whole;
  }
  return calibrated(profile_of(plan().request), plan().numerics.precision, std::max(1, plan().request.threads), ops, step_seconds);
}

}  // namespace stw
