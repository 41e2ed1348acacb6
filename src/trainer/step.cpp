#include "src/trainer/step.h"

#include <algorithm>
#include <cmath>

#include "planner/base/check_in.h"
#include "src/base/clock.h"

namespace stw {

namespace {

// Seconds. A micro-step that takes longer must be cancellable until it ends.
constexpr double worth_a_cancel = 0.1;

// Whole messages: putting one together could run out of memory after the step is done.
constexpr const char* skip_lines[] = {
    "", "step skipped: no target has a loss", "step skipped: the loss or a gradient is not finite",
    "step skipped: its loss or gradient norm is an outlier", "step skipped: a gradient is not finite"};

// Refuses options that change a loss which this plan does not have.
Status check_loss(const TrainerCore& core) {
  const TaskRow& row = core.graph().head.row();
  if (!row.has_values()) return ok();
  for (const auto& [name, value] :
       {std::pair{"label_smoothing", core.options.label_smoothing}, {"z_loss", core.options.z_loss}})
    if (value != 0)
      return Error{Code::bad_argument,
                   std::string("trainer: ") + name +
                       (row.target == Target::span
                            ? std::string(" is not supported for the task ") + row.name
                            : std::string(" needs a softmax loss; the task ") + row.name + " has none")};
  return ok();
}

// Refuses options that need gradients which the plan does not keep.
Status check_gradients(const TrainerCore& core) {
  const Numerics& n = core.plan().numerics;
  if (n.gradients != Gradients::fp32 && core.options.gradient_hook)
    return Error{Code::bad_state,
                 "trainer: a gradient hook needs all gradients in fp32, this plan keeps some in bf16"};
  if (!n.fused_update) return ok();
  const std::string what =
      "trainer: the plan's update is fused into the backward pass, which keeps no gradients: ";
  if (core.options.gradient_hook)
    return Error{Code::bad_state, what + "there are none for a gradient hook; plan without it"};
  if (core.options.clip_norm > 0)
    return Error{
        Code::bad_argument,
        what + "their norm is not known before the update; set the clipping norm to 0, or plan without it"};
  if (core.options.outlier_limit > 0)
    return Error{Code::bad_argument,
                 what + "their norm is not known before the update; skip no outliers, or plan without it"};
  return ok();
}

// Whether all elements of a tensor are finite and can be read.
bool is_finite_in_arena(TrainerCore& core, int tensor) {
  const Tensor& t = core.graph().at(tensor);
  // The bits of the exponent of a format with 16 bits.
  const uint16_t exponent = t.format == Format::bf16 ? 0x7f80 : 0x7c00;
  bool finite = true;
  const Status read =
      core.read_memory(core.execution.address(tensor), t.bytes(1), [&](std::span<const std::byte> piece) {
        const auto all_finite = [&]<class T>(const T* values, auto is_finite) {
          return std::all_of(values, values + piece.size() / sizeof(T), is_finite);
        };
        if (t.format == Format::f32)
          finite = finite && all_finite(reinterpret_cast<const float*>(piece.data()),
                                        [](float x) { return std::isfinite(x); });
        else
          finite = finite && all_finite(reinterpret_cast<const uint16_t*>(piece.data()),
                                        [&](uint16_t x) { return (x & exponent) != exponent; });
        return ok();
      });
  return read && finite;
}

std::string non_finite_reason(TrainerCore& core) {
  if (!std::isfinite(core.state.loss_sum)) return "the loss is not finite";
  const Unsupervised reading;  // the step is done and cannot be cancelled
  const Arena& layout = core.programs().arena;
  for (const ParameterGradient& g : core.graph().gradients) {
    const KeptRows& kept = core.graph().kept;
    const int tensor = g.gradient == kept.formed ? kept.rows : g.gradient;
    if (layout.of_tensor[tensor] < 0) continue;  // in host memory, or consumed
    if (!is_finite_in_arena(core, tensor))
      return "the gradient of " + core.graph().at(g.parameter).name + " is not finite";
  }
  return "the norm of the gradients is not finite";
}

// Gives the gradients to the host. Kept rows were added to a gradient by now.
Status show_gradients(const TrainerCore& core) {
  if (!core.options.gradient_hook) return ok();
  const Arena& layout = core.programs().arena;
  uint64_t end = layout.gradients_end;  // the gradients of tables, which come last, are used up by now
  for (const TableGradient& g : core.graph().table_gradients)
    end = std::min(end, layout.persistent[layout.of_tensor[g.gradient]].offset);
  if (const KeptRows& kept = core.graph().kept; kept.exist())  // they lie after all gradients
    end = std::min(end, layout.persistent[layout.of_tensor[kept.ids]].offset);
  const GradientView view{reinterpret_cast<float*>(core.memory.arena() + layout.gradients_begin),
                          (end - layout.gradients_begin) / sizeof(float),
                          &core.execution.state->loss_sum,
                          &core.execution.state->target_count,
                          &core.execution.state->hits,
                          core.state.loss_scale * core.state.batch_factor,
                          core.execution.stream};
  if (!core.options.gradient_hook(view))
    return Error{Code::callback_failed, "trainer: the gradient hook failed; nothing was updated"};
  return ok();
}

// Runs the update. From its first change of a parameter on, it cannot be undone. If it then does not end, the
// trainer is broken. This happens if a watch's callback ends the thread, which unwinds the stack.
Status run_update(TrainerCore& core) {
  struct Ending {
    TrainerCore& core;
    bool has_ended = false;
    ~Ending() {
      if (!has_ended && supervisor->is_committed()) core.condition = Condition::broken;
    }
  } ending{core};
  core.is_untouched = false;
  STW_TRY(core.stream->run(core.execution, core.programs().update));
  STW_TRY(core.pull_state());
  ending.has_ended = true;
  return ok();
}

Status check_result(TrainerCore& core, const StepResult& result) {
  if (core.condition == Condition::broken)
    return Error{Code::non_finite,
                 "trainer: a gradient is not finite, and a fused update had changed parameters by then; "
                 "restore a checkpoint"};
  if (result.skip == kernels::skip_not_finite) {
    const bool scales = core.plan().numerics.precision == Precision::fp16;
    if (!scales && core.options.non_finite == NonFinite::stop)
      return Error{Code::non_finite, "trainer: " + non_finite_reason(core) + "; nothing was updated"};
    if (scales && core.state.loss_scale < 1)
      return Error{
          Code::numeric,
          "trainer: the loss scale fell to 1 and " + non_finite_reason(core) +
              " still: fp16 cannot hold this model's numbers, or its weights are not finite; use bf16"};
  }
  return ok();
}

Result<StepResult> make_step(TrainerCore& core, const SampleSource& source, uint64_t samples,
                             double learning_rate) {
  const Computing computing(core);
  const InPhase phase(core.progress, TrainerPhase::train);
  core.progress.begin_step(static_cast<uint64_t>(core.plan().accumulation_steps));
  check_in();
  const double begin = seconds_now();
  const Programs& programs = core.programs();
  core.begin_state(learning_rate);
  const uint64_t m = static_cast<uint64_t>(core.plan().decisions.micro_batch);
  const bool fused = core.plan().numerics.fused_update;
  STW_TRY(core.compute_tables(false));
  for (uint64_t first = 0; first < core.global_batch(); first += m) {
    const bool is_short = core.global_batch() - first < m;
    const Program& program = first == 0 ? programs.micro_first
                             : is_short ? programs.micro_short
                                        : programs.micro_next;
    STW_TRY(core.load(program, source, first, samples));
    const uint64_t first_in_joint_batch = core.options.first_sample + first;
    core.stream->upload(&core.execution.state->first_sample, &first_in_joint_batch, sizeof first);
    // With a fused update, the micro-step changes parameters, and a failure cannot be undone.
    if (fused) core.is_untouched = false, core.condition = Condition::broken;
    if (fused && core.device.is_cuda()) supervisor->commit();  // it is launched as a whole
    STW_TRY(core.stream->run(core.execution, program));
    core.progress.count_micro_step();
  }
  STW_TRY(core.run_on_tables(programs.table_gradients));
  // A cancel must be able to end a long micro-step. The step therefore waits for the end of such a micro-step
  // before it launches the update. The wait leaves the device idle for some microseconds.
  const double micro_step_seconds = core.step_seconds / static_cast<double>(core.plan().accumulation_steps);
  if (!fused && (core.step_seconds == 0 || micro_step_seconds > worth_a_cancel))
    STW_TRY(core.stream->finish_programs());
  STW_TRY(show_gradients(core));
  // The update is launched as a whole, or the host has already summed the gradients: no cancel from here on.
  if (core.device.is_cuda() || core.options.gradient_hook) supervisor->commit();
  STW_TRY(run_update(core));

  StepResult result;
  result.skip = static_cast<kernels::Skip>(core.state.skip);
  result.targets = core.state.target_count;
  result.loss = core.state.loss;
  result.grad_norm = core.state.grad_norm;
  result.loss_scale = core.carried.loss_scale;
  if (core.graph().preference != Preference::none && core.state.target_count > 0)
    result.accuracy = core.state.hits / static_cast<double>(core.state.target_count);
  result.seconds = seconds_now() - begin;
  core.step_seconds = result.seconds;
  core.condition = result.skip == kernels::skip_midway ? Condition::broken : Condition::ready;
  STW_TRY(check_result(core, result));
  const kernels::StepState& s = core.state;
  core.carried = {s.loss_scale,    s.good_steps, s.observed,     s.loss_mean,
                  s.loss_variance, s.norm_mean,  s.norm_variance};
  if (result.skip != kernels::skip_none) core.device.log(log_warning, "trainer", skip_lines[result.skip]);
  core.progress.count_step(result, core.global_batch(), learning_rate, core.carried.loss_scale);
  return result;
}

}  // namespace

Result<StepResult> train_step(TrainerCore& core, const SampleSource& source, uint64_t samples,
                              double learning_rate) {
  STW_TRY(core.check_ready());
  const bool was_untouched = core.is_untouched;
  auto result =
      core.watched(Work::step, WorkUnit::micro_steps, static_cast<uint64_t>(core.plan().accumulation_steps),
                   [&] { return make_step(core, source, samples, learning_rate); });
  // A cancelled step has changed no parameter: once an update begins, no cancel stops it.
  if (!result && result.error().code == Code::cancelled)
    core.condition = Condition::ready, core.is_untouched = was_untouched;
  return result;
}

Status check_hook(const TrainerOptions& options, const Planned& planned) {
  if (!options.gradient_hook) return ok();
  const std::string needs = "trainer: a gradient hook needs all gradients in the arena, this plan ";
  if (planned.plan.decisions.offload[Offloaded::gradients] > 0)
    return Error{Code::bad_state, needs + "keeps some in host memory"};
  if (planned.graph.kept.formed >= 0)
    return Error{Code::bad_state,
                 needs + "forms that of the token table in slices at the update; plan with gradient_hook"};
  return ok();
}

Status check_options(const TrainerCore& core) {
  STW_TRY(check_hook(core.options, *core.planned));
  STW_TRY(check_gradients(core));
  return check_loss(core);
}

}  // namespace stw
