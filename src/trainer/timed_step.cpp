// Runs a step's programs instruction by instruction and times each. Order and addresses are those of
// training, so that kernels find the caches in the same state.
#include "src/trainer/timed_step.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>

#include "planner/base/check_in.h"
#include "src/base/clock.h"
#include "src/base/random.h"

namespace stw {

namespace {

constexpr double enough_seconds = 2;

double median(std::vector<float> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return static_cast<double>(*middle);
}

// Gives the trainer the model's weights back after programs have run. fill() does it. If the stack is unwound
// before that, the destructor does it: after an exception, or after a callback that ends the thread.
class WeightsBack {
 public:
  // Allocates now, so that the weights come back even if memory runs out later.
  explicit WeightsBack(TrainerCore& core) : core_(core), filling_(core.filling_of_all()) {
    core.condition = Condition::broken;  // until the weights are back
  }
  WeightsBack(const WeightsBack&) = delete;
  ~WeightsBack() {
    try {
      if (!is_filled_) (void)fill();
    } catch (const std::exception&) {  // the trainer stays broken, and needs a restore
    }
  }
  Status fill() {
    is_filled_ = true;
    STW_TRY(core_.fill(filling_));
    core_.condition = Condition::ready;
    return ok();
  }

 private:
  TrainerCore& core_;
  Filling filling_;
  bool is_filled_ = false;
};

}  // namespace

double TimedProgram::median_of(size_t instruction, size_t rounds) const {
  std::vector<float> sample(rounds);
  for (size_t r = 0; r < rounds; ++r) sample[r] = seconds[r * program->instructions.size() + instruction];
  return median(std::move(sample));
}

double TimedProgram::median_of_program(size_t rounds) const {
  return median({program_seconds.begin(), program_seconds.begin() + static_cast<std::ptrdiff_t>(rounds)});
}

std::vector<TimedProgram> programs_of_step(const TrainerCore& core) {
  const Programs& programs = core.programs();
  const uint64_t m = static_cast<uint64_t>(core.plan().decisions.micro_batch);
  std::vector<TimedProgram> timed;
  if (!programs.tables.instructions.empty()) timed.emplace_back(programs.tables, 1);
  timed.emplace_back(programs.micro_first, 1);
  if (core.global_batch() / m > 1) timed.emplace_back(programs.micro_next, core.global_batch() / m - 1);
  if (core.global_batch() % m > 0) timed.emplace_back(programs.micro_short, 1);
  if (!programs.table_gradients.instructions.empty()) timed.emplace_back(programs.table_gradients, 1);
  timed.emplace_back(programs.update, 1);
  return timed;
}

// The timed micro-steps keep the rows of few samples. The other rows are zeros, with random tokens.
static void fill_kept_rows(TrainerCore& core) {
  const Graph& graph = core.graph();
  if (!graph.kept.exist()) return;
  std::vector<int32_t> tokens(graph.at(graph.kept.ids).shape.elements());
  for (uint32_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int32_t>(philox(core.options.seed, {i, 0, 0, 0})[0] %
                                     static_cast<uint64_t>(graph.vocabulary));
  core.stream->upload(core.execution.address(graph.kept.ids), tokens.data(), tokens.size() * sizeof(int32_t));
  core.stream->zero(core.execution.address(graph.kept.rows), graph.at(graph.kept.rows).bytes(1));
}

Result<size_t> time_programs(TrainerCore& core, std::vector<TimedProgram>& timed, const std::string& what) {
  STW_TRY(core.check_free());
  if (!core.is_untouched)
    return Error{Code::bad_state,
                 what + ": expected a trainer without a step, a restore or an imported tensor"};
  if (core.condition == Condition::arena_lost) STW_TRY(core.reallocate());
  const Computing computing(core);
  const InPhase phase(core.progress, TrainerPhase::calibrate);
  // Rows of a text, if samples have a limited number of them.
  const auto text_rows =
      static_cast<uint32_t>(core.graph().texts > 0 ? ceil_div(core.sequence(), core.graph().texts) : 0);
  auto random_samples = [&](uint64_t sample, const SampleRows& rows) -> Status {
    const auto tokens = rows.integers(Input::tokens), targets = rows.integers(Input::targets),
               positions = rows.integers(Input::positions);
    for (uint32_t t = 0; t < static_cast<uint32_t>(core.sequence()); ++t) {
      const auto draw = philox(core.options.seed, {t, static_cast<uint32_t>(sample), 0, 0});
      tokens[t] = static_cast<int32_t>(draw[0] % static_cast<uint64_t>(core.graph().vocabulary));
      targets[t] = static_cast<int32_t>(draw[1] % static_cast<uint64_t>(core.graph().head.outputs));
      if (text_rows == 0) continue;
      positions[t] = static_cast<int32_t>(t % text_rows);
      if (positions[t] != 0) targets[t] = kernels::ignored_target;
    }
    // A pair: the second text starts in the middle.
    if (core.graph().preference != Preference::none)
      std::iota(positions.begin() + core.sequence() / 2, positions.end(), 0);
    return ok();
  };
  const SampleSource source = std::ref(random_samples);
  fill_kept_rows(core);
  size_t rounds = 0;
  auto run = [&]() -> Status {
    const double begin = seconds_now();
    // Round 0 warms up: round 1 overwrites its times.
    for (size_t round = 0; round <= most_rounds; ++round) {
      core.begin_state();         // the learning rate is 0
      core.state.loss_scale = 1;  // small gradients may vanish, but none overflows
      core.state.first_sample = core.options.first_sample;
      core.push_state();
      for (TimedProgram& t : timed) {
        check_in();
        if (t.program->inputs[Input::tokens] >= 0)
          STW_TRY(core.load(*t.program, source, 0, core.global_batch()));
        const size_t at = round > 0 ? round - 1 : 0;
        const double start = seconds_now();
        STW_TRY(core.stream->run_timed(core.execution, *t.program,
                                       t.seconds.data() + at * t.program->instructions.size()));
        t.program_seconds[at] = static_cast<float>(seconds_now() - start);
      }
      rounds = round;
      STW_TRY(core.pull_state());
      if (core.state.skip != 0)
        return Error{Code::non_finite, what + ": the loss or a gradient of the model is not finite"};
      if (rounds >= fewest_rounds && seconds_now() - begin > enough_seconds) break;
    }
    return ok();
  };

  WeightsBack weights(core);
  const Status ran = core.watched(Work::calibrate, WorkUnit::none, 0, run);
  STW_TRY(weights.fill());
  STW_TRY(ran);
  return rounds;
}

}  // namespace stw
