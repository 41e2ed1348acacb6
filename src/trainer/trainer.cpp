#include "src/trainer/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "planner/base/check_in.h"
#include "planner/base/sizes.h"
#include "src/base/clock.h"
#include "src/base/elementary.h"
#include "src/base/numbers.h"

namespace stw {
namespace {

// Complete lines: building a message could run out of memory after the step is done.
constexpr const char* skip_lines[] = {"", "step skipped: no target has a loss", "step skipped: the loss or a gradient is not finite",
                                      "step skipped: its loss or gradient norm is an outlier", "step skipped: a gradient is not finite"};

}  // namespace

Trainer::Trainer(const Device& device, std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned, TrainerOptions options)
    : device_(device), model_(std::move(model)), planned_(std::move(planned)), options_(std::move(options)), memory_(device) {}

Trainer::~Trainer() {
  if (stream_) static_cast<void>(stream_->wait());   // nothing may use the memory any more
  stream_.reset();
}

Result<std::unique_ptr<Trainer>> Trainer::create(const Device& device, std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Planned> planned, TrainerOptions options) {
  const Plan& plan = planned->plan;
  if (!plan.fits) return Error{Code::bad_state, "trainer: the plan does not fit its budget"};
  if (profile_of(plan.request).cuda != device.is_cuda())
    return Error{Code::bad_state, "trainer: the plan was made for device '" + plan.request.device + "', this one is a " + (device.is_cuda() ? "GPU" : "CPU")};
  std::unique_ptr<Trainer> t(new Trainer(device, std::move(model), std::move(planned), std::move(options)));
  STW_TRY(t->check_offload(t->plan()));
  STW_TRY(t->check_gradients());
  STW_TRY(t->check_loss());
  uint64_t bytes = plan.bytes.arena;   // bytes written: zeros, then parameters
  for (const int p : t->model_->parameters()) bytes = size_add(bytes, t->graph().at(p).shape.elements() * sizeof(float));
  STW_TRY(t->watched(Work::create_trainer, WorkUnit::bytes, bytes, [&] { return t->take_all(); }));
  return t;
}

Status Trainer::take_all() {
  STW_ASSIGN(pairs, pair_terms(plan().numerics.inputs.preference, options_.preference, options_.label_smoothing, options_.z_loss));
  STW_TRY(memory_.take(plan().bytes.arena, plan().bytes.host, options_.arena, options_.arena_bytes));
  STW_ASSIGN(stream, device_.make_stream(plan().request.threads));
  stream_ = std::move(stream);
  STW_TRY(stream_->load(plan().numerics));
  stream_->bind(execution_);
  execution_.weight_decay = options_.weight_decay;
  execution_.pairs = pairs;
  use(planned_);
  if (plan().numerics.precision == Precision::fp16) progress_.loss_scale = carried_.loss_scale = options_.loss_scale;
  STW_TRY(prepare());
  Filling filling = filling_of_all();
  return fill(filling);
}

LongCall Trainer::long_call(Work work, WorkUnit unit, uint64_t total, EarlierCancel earlier) {
  const char* const message = work == Work::create_trainer ? "trainer: its creation was cancelled"
                              : work == Work::save || work == Work::export_model ? "trainer: cancelled; what was being written is not there, and the files before are as they were"
                                                                                 : "trainer: cancelled; it stands at the last completed step";
  return LongCall({work, unit, 0, total, 0}, message, options_.watch, &cancels_, earlier);
}

Status Trainer::check_offload(const Plan& plan) const {
  if (!options_.gradient_hook || plan.decisions.offload[Offloaded::gradients] == 0) return ok();
  return Error{Code::bad_state, "trainer: a gradient hook needs all gradients in the arena, this plan keeps some in host memory"};
}

// Refuses options that change a loss which this plan does not have.
Status Trainer::check_loss() const {
  if (!has_values(graph().task)) return ok();
  for (const auto& [name, value] : {std::pair{"label_smoothing", options_.label_smoothing}, {"z_loss", options_.z_loss}})
    if (value != 0) return Error{Code::bad_argument, std::string("trainer: ") + name + " is for losses over a softmax, which the task " + task_row(graph().task).name + " has none of"};
  return ok();
}

// Refuses options that need gradients which the plan does not keep.
Status Trainer::check_gradients() const {
  const Numerics& n = plan().numerics;
  if (n.gradients != Gradients::fp32 && options_.gradient_hook)
    return Error{Code::bad_state, "trainer: a gradient hook needs all gradients in fp32, this plan keeps some in bf16"};
  if (!n.fused_update) return ok();
  const std::string what = "trainer: the plan's update is fused into the backward pass, which keeps no gradients: ";
  if (options_.gradient_hook) return Error{Code::bad_state, what + "there are none for a gradient hook; plan without it"};
  if (options_.clip_norm > 0)
    return Error{Code::bad_argument, what + "their norm is not known before the update; set the clipping norm to 0, or plan without it"};
  if (options_.outlier_limit > 0)
    return Error{Code::bad_argument, what + "their norm is not known before the update; skip no outliers, or plan without it"};
  return ok();
}

void Trainer::use(std::shared_ptr<const Planned> planned) {
  planned_ = std::move(planned);
  execution_.graph = &planned_->graph;
  execution_.layout = &planned_->programs.arena;
  execution_.arena = memory_.arena();
  execution_.host = memory_.host();
  execution_.state = reinterpret_cast<kernels::StepState*>(execution_.address(graph().state));
  const auto classes = static_cast<size_t>(graph().classes());
  logits_.resize(classes);
  if (graph().compute != Format::f32) short_logits_.resize(classes);
  inputs_.reserve(planned_->programs, execution_, *stream_);
}

// Allocates now what would otherwise be allocated during training.
Status Trainer::prepare() {
  const Programs& p = planned_->programs;
  for (const Program* program : {&p.micro_first, &p.micro_next, &p.micro_short, &p.update, &p.evaluate, &p.prefill, &p.decode})
    if (!program->instructions.empty()) STW_TRY(stream_->prepare(execution_, *program));
  return ok();
}

Status Trainer::fill(Filling& filling) {
  // Touch every page now, so that the memory of the plan is there from the first step on.
  constexpr uint64_t at_once = 16 << 20;
  const uint64_t bytes = plan().bytes.arena;
  for (uint64_t done = 0; done < bytes; done += at_once) {
    const uint64_t now = std::min(at_once, bytes - done);
    check_in(now);
    stream_->zero(memory_.arena() + done, now);
  }
  if (memory_.host()) std::memset(memory_.host(), 0, plan().bytes.host);
  STW_TRY(filling.fill());
  return stream_->wait();
}

void Trainer::enter(TrainerPhase phase) {
  std::lock_guard lock(progress_mutex_);
  progress_.phase = phase;
}

void Trainer::begin_evaluation(uint64_t samples) {
  std::lock_guard lock(progress_mutex_);
  progress_.evaluation_samples = samples;
  progress_.evaluated_samples = 0;
}
void Trainer::count_evaluated(uint64_t samples) {
  uint64_t more = 0;
  {
    std::lock_guard lock(progress_mutex_);
    more = std::min(samples, progress_.evaluation_samples - progress_.evaluated_samples);
    progress_.evaluated_samples += more;
  }
  check_in(more);
}

Progress Trainer::progress() const {
  std::lock_guard lock(progress_mutex_);
  return progress_;
}

Status Trainer::check_free() const {
  if (!computes_) return ok();
  return Error{Code::bad_state, "trainer: it is in the middle of a step, evaluation, generation or calibration, which this would ruin; "
                                "call it when that has returned"};
}

Status Trainer::check_ready() const {
  STW_TRY(check_free());
  if (!broken_) return ok();
  return Error{Code::bad_state, "trainer: a step, restore, calibration or re-plan failed halfway; a restore makes it whole again"};
}

void Trainer::begin_state(double learning_rate) {
  const bool is_training = progress_.phase == TrainerPhase::train;
  kernels::StepState& s = state_ = {};
  s.learning_rate = learning_rate;
  s.seed = options_.seed;
  s.step = progress_.step;
  s.beta1 = options_.beta1;
  s.beta2 = options_.beta2;
  s.epsilon = options_.epsilon;
  s.max_norm = options_.clip_norm;
  s.momentum = options_.momentum;
  s.nesterov = options_.nesterov;
  const double t = static_cast<double>(progress_.step + 1);
  s.inverse_root = 1 / std::sqrt(t);
  s.fresh_share = portable_pow(t, -0.8);
  s.batch_factor = 1;
  s.loss_scale = carried_.loss_scale;
  if (plan().numerics.precision == Precision::fp16) {
    // Terms of about weight 1 in the sum.
    const uint64_t summed = is_of_means(graph().preference) ? global_batch() : global_batch() * static_cast<uint64_t>(sequence());
    s.batch_factor = std::ldexp(1.0, -std::bit_width(summed - 1));
    s.growth_interval = options_.growth_interval;
  }
  if (!is_training) return push_state();   // evaluation uses the plain loss
  if (graph().preference == Preference::none) s.label_smoothing = options_.label_smoothing;
  s.z_loss = options_.z_loss;
  s.outlier_limit = options_.outlier_limit;
  s.good_steps = carried_.good_steps;
  s.observed = carried_.observed;
  s.loss_mean = carried_.loss_mean;
  s.loss_variance = carried_.loss_variance;
  s.norm_mean = carried_.norm_mean;
  s.norm_variance = carried_.norm_variance;
  push_state();
}

void Trainer::carry_state() {
  const kernels::StepState& s = state_;
  carried_ = {s.loss_scale, s.good_steps, s.observed, s.loss_mean, s.loss_variance, s.norm_mean, s.norm_variance};
}

std::string Trainer::non_finite_reason() {
  if (!std::isfinite(state_.loss_sum)) return "the loss is not finite";
  const Unsupervised reading;   // the step is done: no cancel any more
  const Arena& layout = planned_->programs.arena;
  for (const ParameterGradient& g : graph().gradients) {
    if (layout.of_tensor[static_cast<size_t>(g.gradient)] < 0) continue;   // in host memory, or consumed
    const bool is_short = graph().at(g.gradient).format == Format::bf16;
    bool finite = true;
    const Status read = read_memory(execution_.address(g.gradient), graph().at(g.gradient).bytes(1), [&](std::span<const std::byte> piece) {
      const auto all_finite = [&]<class T>(const T* values, auto is_finite) { return std::all_of(values, values + piece.size() / sizeof(T), is_finite); };
      if (is_short) finite = finite && all_finite(reinterpret_cast<const uint16_t*>(piece.data()), [](uint16_t x) { return (x & 0x7f80) != 0x7f80; });
      else finite = finite && all_finite(reinterpret_cast<const float*>(piece.data()), [](float x) { return std::isfinite(x); });
      return ok();
    });
    if (!read || !finite) return "the gradient of " + graph().at(g.parameter).name + " is not finite";
  }
  return "the norm of the gradients is not finite";
}

Status Trainer::show_gradients() const {
  if (!options_.gradient_hook) return ok();
  const Arena& layout = planned_->programs.arena;
  const GradientView view{reinterpret_cast<float*>(memory_.arena() + layout.gradients_begin),
                          (layout.gradients_end - layout.gradients_begin) / sizeof(float), &execution_.state->loss_sum,
                          &execution_.state->target_count, &execution_.state->hits, state_.loss_scale * state_.batch_factor, execution_.stream};
  if (!options_.gradient_hook(view)) return Error{Code::callback_failed, "trainer: the gradient hook failed; nothing was updated"};
  return ok();
}

Status Trainer::check_result(const StepResult& result) {
  if (broken_)
    return Error{Code::non_finite, "trainer: a gradient is not finite, and a fused update had changed parameters by then; restore a checkpoint"};
  if (result.skip == kernels::skip_not_finite) {
    const bool scales = plan().numerics.precision == Precision::fp16;
    if (!scales && options_.non_finite == NonFinite::stop)
      return Error{Code::non_finite, "trainer: " + non_finite_reason() + "; nothing was updated"};
    if (scales && state_.loss_scale < 1)
      return Error{Code::numeric, "trainer: the loss scale fell to 1 and " + non_finite_reason() +
                                      " still: fp16 cannot hold this model's numbers, or its weights are not finite; use bf16"};
  }
  return ok();
}

void Trainer::count_step(StepResult& result, double learning_rate) {
  const bool skipped = result.skip != kernels::skip_none;
  if (skipped) device_.log(log_warning, "trainer", skip_lines[result.skip]);
  std::lock_guard lock(progress_mutex_);
  progress_.step += !skipped;
  progress_.skipped += skipped;
  progress_.skip = result.skip;
  progress_.loss_scale = carried_.loss_scale;
  progress_.batches += 1;
  progress_.samples += global_batch();
  progress_.tokens += skipped ? 0 : result.targets;
  progress_.loss = result.loss;
  progress_.grad_norm = result.grad_norm;
  progress_.accuracy = result.accuracy;
  progress_.learning_rate = learning_rate;
  progress_.seconds = result.seconds;
  progress_.tokens_per_second = static_cast<double>(result.targets) / std::max(result.seconds, 1e-9);
  result.step = progress_.step;
}

void Trainer::count_micro_step() {
  {
    std::lock_guard lock(progress_mutex_);
    progress_.micro_steps_done += 1;
  }
  check_in(1);
}

Result<StepResult> Trainer::step(const SampleSource& source, uint64_t samples, double learning_rate) {
  STW_TRY(check_ready());
  const bool was_created = as_created_;
  auto result = watched(Work::step, WorkUnit::micro_steps, static_cast<uint64_t>(plan().accumulation_steps), [&] { return make_step(source, samples, learning_rate); });
  // A cancelled step has changed no parameter: once an update begins, no cancel stops it.
  if (!result && result.error().code == Code::cancelled) broken_ = false, as_created_ = was_created;
  return result;
}

Result<StepResult> Trainer::make_step(const SampleSource& source, uint64_t samples, double learning_rate) {
  const Computing computing(*this);
  const InPhase phase(*this, TrainerPhase::train);
  {
    std::lock_guard lock(progress_mutex_);
    progress_.micro_steps = static_cast<uint64_t>(plan().accumulation_steps);
    progress_.micro_steps_done = 0;
  }
  check_in();
  const double begin = seconds_now();
  const Programs& programs = planned_->programs;
  begin_state(learning_rate);
  const uint64_t m = static_cast<uint64_t>(plan().decisions.micro_batch);
  const bool fused = plan().numerics.fused_update;
  for (uint64_t first = 0; first < global_batch(); first += m) {
    const bool is_short = global_batch() - first < m;
    const Program& program = first == 0 ? programs.micro_first : is_short ? programs.micro_short : programs.micro_next;
    STW_TRY(load(program, source, first, samples));
    stream_->upload(&execution_.state->first_sample, &first, sizeof first);
    // It changes parameters, so that a failure cannot be undone.
    if (fused) as_created_ = false, broken_ = true;
    if (fused && device_.is_cuda()) supervisor->commit();   // it is launched as a whole
    STW_TRY(stream_->run(execution_, program));
    count_micro_step();
  }
  STW_TRY(show_gradients());
  // The update is launched as a whole, or the host has already summed the gradients: no cancel from here on.
  if (device_.is_cuda() || options_.gradient_hook) supervisor->commit();
  as_created_ = false;
  STW_TRY(stream_->run(execution_, programs.update));
  STW_TRY(pull_state());

  StepResult result;
  result.skip = static_cast<kernels::Skip>(state_.skip);
  result.targets = state_.target_count;
  result.loss = state_.loss;
  result.grad_norm = state_.grad_norm;
  result.loss_scale = carried_.loss_scale;
  if (graph().preference != Preference::none && state_.target_count > 0) result.accuracy = state_.hits / static_cast<double>(state_.target_count);
  result.seconds = seconds_now() - begin;
  broken_ = result.skip == kernels::skip_midway;
  STW_TRY(check_result(result));
  carry_state();
  count_step(result, learning_rate);
  return result;
}

Status Trainer::check_dataset(const Dataset& dataset, Dataset::Part part, bool with_reference) const {
  if (dataset.vocabulary() > graph().vocabulary)
    return Error{Code::bad_state, "trainer: the dataset was opened for a vocabulary of " + std::to_string(dataset.vocabulary()) +
                                      ", the model has " + std::to_string(graph().vocabulary)};
  if (dataset.label_count() != graph().labels)
    return Error{Code::bad_state, "trainer: the model has " + (graph().labels > 0 ? std::to_string(graph().labels) + " labels" : std::string("no labels")) + ", the dataset " +
                                      (dataset.label_count() > 0 ? "was opened for " + std::to_string(dataset.label_count()) : std::string("has none"))};
  if (graph().labels > 0 && dataset.task() != graph().task)
    return Error{Code::bad_state, std::string("trainer: the model's task is ") + task_row(graph().task).name + ", the dataset was opened for " + task_row(dataset.task()).name};
  if (dataset.hides_tokens() != (graph().task == Task::masked_language_model))
    return Error{Code::bad_state, dataset.hides_tokens() ? "trainer: the dataset hides tokens (mask_rate), but the model is no masked language model"
                                                         : "trainer: the model is a masked language model, but the dataset hides no tokens (mask_rate)"};
  if (dataset.has_documents() && graph().inputs[Input::positions] < 0)
    return Error{Code::bad_state, "trainer: the dataset has documents, but the plan has no input \"positions\" to keep them apart"};
  if (dataset.has_second_texts() && graph().token_types < 2)
    return Error{Code::bad_state, "trainer: the dataset marks tokens of second texts, and the model tells no types of tokens apart"};
  if (dataset.has_pairs() != (graph().preference != Preference::none))
    return Error{Code::bad_state, dataset.has_pairs() ? "trainer: the dataset has pairs, but the plan has no preference"
                                                      : std::string("trainer: the plan is for a preference (") + name_of(graph().preference) + "), and the dataset has no pairs"};
  if (with_reference && graph().inputs[Input::reference] >= 0 && !dataset.has_reference())
    return Error{Code::bad_state, std::string("trainer: the plan's preference ") + name_of(graph().preference) + " is against a reference, and the dataset was opened without one"};
  return dataset.check_windows(part, sequence());
}

Status Trainer::run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
                    const std::function<bool(const StepResult&, const Progress&)>& after) {
  STW_TRY(check_ready());
  STW_TRY(check_dataset(dataset, Dataset::Part::training));
  const InPhase phase(*this, TrainerPhase::train);
  while (progress_.batches < until) {
    const uint64_t batch = progress_.batches, before = progress_.samples;
    auto source = [&](uint64_t sample, const SampleRows& rows) {
      const uint64_t start = dataset.training_start(data_seed, batch, before, static_cast<uint32_t>(sample), sequence());
      return dataset.read(Dataset::Part::training, start, sequence(), rows, Dataset::training_mask(data_seed, batch, static_cast<uint32_t>(sample)));
    };
    // std::ref: the function object would allocate for a copy.
    STW_ASSIGN(result, step(std::ref(source), global_batch(), schedule.at(progress_.step)));
    if (after && !after(result, progress())) return Error{Code::cancelled, "trainer: stopped by the progress callback"};
  }
  return ok();
}

Result<double> Trainer::evaluate(const Dataset& dataset, uint64_t batches) {
  STW_TRY(check_ready());
  STW_TRY(check_dataset(dataset, Dataset::Part::evaluation));
  // Each window once; 0: the dataset repeats, and `batches` decides.
  const uint64_t most = dataset.evaluation_windows();
  if (most > 0) batches = std::min(batches, ceil_div(most, global_batch()));
  const uint64_t asked = size_mul(batches, global_batch()), samples = most > 0 ? std::min(most, asked) : asked;
  begin_evaluation(samples);
  return watched(Work::evaluate, WorkUnit::samples, samples, [&] { return make_evaluation(dataset, batches); });
}

Result<double> Trainer::make_evaluation(const Dataset& dataset, uint64_t batches) {
  const Computing computing(*this);
  const InPhase phase(*this, TrainerPhase::evaluate);
  const Program& program = planned_->programs.evaluate;
  check_in();
  begin_state();
  const uint64_t most = dataset.evaluation_windows();
  for (uint64_t batch = 0; batch < batches; ++batch) {
    auto source = [&](uint64_t sample, const SampleRows& rows) -> Status {
      const uint64_t start = dataset.evaluation_start(batch, global_batch(), static_cast<uint32_t>(sample), sequence());
      STW_TRY(dataset.read(Dataset::Part::evaluation, start, sequence(), rows, Dataset::evaluation_mask(start)));
      if (most > 0 && batch * global_batch() + sample >= most) std::fill_n(rows.targets, sequence(), kernels::ignored_target);
      return ok();
    };
    for (uint64_t first = 0; first < global_batch(); first += static_cast<uint64_t>(program.samples)) {
      STW_TRY(load(program, std::ref(source), first, global_batch()));
      STW_TRY(stream_->run(execution_, program));
      count_evaluated(std::min(static_cast<uint64_t>(program.samples), global_batch() - first));
    }
  }
  STW_TRY(pull_state());
  const double loss = state_.target_count > 0 ? state_.loss_sum / static_cast<double>(state_.target_count) : std::numeric_limits<double>::quiet_NaN();
  std::lock_guard lock(progress_mutex_);
  progress_.evaluation_loss = loss;
  progress_.evaluation_targets = state_.target_count;
  const bool has_accuracy = state_.target_count > 0 && graph().task != Task::number;
  progress_.evaluation_accuracy = has_accuracy ? state_.hits / static_cast<double>(state_.target_count) : std::numeric_limits<double>::quiet_NaN();
  return loss;
}

}  // namespace stw
