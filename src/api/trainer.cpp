#include "src/api/boundary.h"

#include <cmath>
#include <numeric>

#include "planner/device/profile_file.h"
#include "planner/plan/plan_file.h"
#include "src/base/numbers.h"
#include "src/data/batch.h"
#include "src/files/checkpoint_file.h"

using namespace stw;

namespace {

stw_progress progress_of(const Progress& p) {
  stw_progress out{};
  out.struct_size = sizeof out;
  out.phase = static_cast<uint32_t>(p.phase);
  out.step = p.step;
  out.batches = p.batches;
  out.skipped = p.skipped;
  out.loss = p.loss;
  out.grad_norm = p.grad_norm;
  out.learning_rate = p.learning_rate;
  out.seconds = p.seconds;
  out.tokens_per_second = p.tokens_per_second;
  out.tokens = p.tokens;
  out.evaluation_loss = p.evaluation_loss;
  out.loss_scale = p.loss_scale;
  out.skip_reason = p.skip;
  out.evaluation_accuracy = p.evaluation_accuracy;
  out.accuracy = p.accuracy;
  out.evaluation_samples = p.evaluation_samples;
  out.evaluated_samples = p.evaluated_samples;
  out.evaluation_targets = p.evaluation_targets;
  out.micro_steps = p.micro_steps;
  out.micro_steps_done = p.micro_steps_done;
  out.sample_tokens = p.sample_tokens;
  out.evaluation_tokens = p.evaluation_tokens;
  return out;
}

static_assert(STW_SKIP_NO_TARGET == int{kernels::skip_no_target} &&
              STW_SKIP_NOT_FINITE == int{kernels::skip_not_finite} &&
              STW_SKIP_OUTLIER == int{kernels::skip_outlier});

// Kernels compute in fp32. Rates and weight decays are limited to this, like the factors of groups, so that
// their products stay finite.
constexpr double largest_rate = 1e6;

bool is_rate(double rate) { return rate >= 0 && rate <= largest_rate; }

// Random numbers depend on 32 bits of a sample's number.
Status check_place(const stw_trainer_options& o, uint64_t global_batch) {
  constexpr uint64_t most_samples = uint64_t{1} << 32;
  if (o.first_sample > most_samples - std::min(most_samples, global_batch))
    return Error{Code::bad_argument, "trainer: first_sample + global_batch must be at most 2^32"};
  if (o.first_sample > 0 && !o.gradient_hook)
    return Error{Code::bad_argument,
                 "trainer: first_sample is for a gradient hook that adds up several trainers"};
  return ok();
}

// Options that are not set have the optimizer's defaults.
Result<TrainerOptions> options_of(const stw_trainer_options& o, const Numerics& numerics,
                                  uint64_t global_batch) {
  const OptimizerDefaults& defaults = optimizer_row(numerics.optimizer).defaults;
  const auto wrong = [](const char* what) {
    return Error{Code::bad_argument, std::string("trainer: ") + what};
  };
  TrainerOptions t;
  t.seed = api::seed_or_default(o.set_mask, STW_SET_TRAINER_SEED, o.seed);
  t.watch = api::watch_of(o.watch);
  // The header has floats, the update computes in double. A caller who writes 0.999f means 0.999. With the
  // float itself, 1 - beta2 would have a relative error of 1.3e-5.
  const auto given = [&](uint32_t bit, float value) {
    const std::optional<float> number = api::value_if_set(o.set_mask, bit, value);
    return number ? std::optional<double>(as_written(*number)) : std::nullopt;
  };
  const std::optional<double> beta1 = given(STW_SET_BETA1, o.beta1), beta2 = given(STW_SET_BETA2, o.beta2),
                              momentum = given(STW_SET_MOMENTUM, o.momentum);
  t.beta1 = beta1.value_or(defaults.beta1);
  t.beta2 = beta2.value_or(defaults.beta2);
  t.momentum = momentum.value_or(defaults.momentum);
  t.weight_decay = given(STW_SET_WEIGHT_DECAY, o.weight_decay).value_or(defaults.weight_decay);
  if (o.epsilon != 0) t.epsilon = as_written(o.epsilon);
  // A fused update cannot clip.
  t.clip_norm = given(STW_SET_CLIP_NORM, o.clip_norm).value_or(numerics.fused_update ? 0 : t.clip_norm);
  for (double share : {t.beta1, t.beta2, t.momentum})
    if (!(share >= 0 && share < 1)) return wrong("betas and momentum must lie in [0, 1)");
  if (!(t.epsilon > 0) || !(t.clip_norm >= 0) || !std::isfinite(t.epsilon + t.clip_norm))
    return wrong("epsilon must be positive, clip_norm not negative, both finite");
  if (!is_rate(t.weight_decay)) return wrong("weight_decay must lie in [0, 1e6]");
  // Refuses settings that would be ignored silently.
  if ((beta1 || beta2) && defaults.beta1 == 0) return wrong("beta1 and beta2 are not for this optimizer");
  if (momentum && defaults.momentum == 0) return wrong("momentum is for sgd and muon");
  if (o.epsilon != 0 && numerics.optimizer != Optimizer::adamw && numerics.optimizer != Optimizer::muon)
    return wrong("epsilon is for adamw and muon");
  if ((o.loss_scale != 0 || o.growth_interval != 0) && numerics.precision != Precision::fp16)
    return wrong("loss_scale and growth_interval are for fp16");
  if (o.nesterov > 1) return wrong("nesterov must be 0 or 1");
  t.nesterov = o.nesterov != 0;
  if (t.nesterov && numerics.optimizer != Optimizer::sgd)
    return wrong("nesterov is for the optimizer sgd; muon always looks ahead");
  if (t.nesterov && t.momentum == 0) return wrong("nesterov needs momentum");
  t.label_smoothing = as_written(o.label_smoothing);
  t.z_loss = as_written(o.z_loss);
  t.outlier_limit = as_written(o.outlier_limit);
  STW_TRY(check_place(o, global_batch));
  t.first_sample = o.first_sample;
  if (o.beta != 0) t.preference.beta = as_written(o.beta);
  t.preference.margin = given(STW_SET_MARGIN, o.margin);
  t.preference.answer_share = as_written(o.answer_share);
  if (!(t.label_smoothing >= 0 && t.label_smoothing < 1) || !(t.z_loss >= 0) || !(t.outlier_limit >= 0) ||
      !std::isfinite(t.z_loss + t.outlier_limit))
    return wrong(
        "label_smoothing must lie in [0, 1), z_loss and outlier_limit must not be negative, all finite");
  if (t.outlier_limit > 0 && t.outlier_limit <= 1)
    return wrong("outlier_limit must be above 1, or 0 for none");
  if (o.loss_scale != 0) t.loss_scale = o.loss_scale;
  if (o.growth_interval != 0) t.growth_interval = o.growth_interval;
  int exponent = 0;
  if (!(t.loss_scale >= 1 && t.loss_scale <= 1e30) || std::frexp(t.loss_scale, &exponent) != 0.5)
    return wrong("loss_scale must be a power of two from 1 to 1e30");
  if (o.non_finite > STW_NON_FINITE_STOP) return wrong("unknown non_finite policy");
  if (o.non_finite == STW_NON_FINITE_STOP && numerics.precision == Precision::fp16)
    return wrong(
        "fp16 finds its loss scale by steps that are not finite: they are skipped; leave non_finite 0, or "
        "use bf16");
  t.non_finite = o.non_finite == STW_NON_FINITE_STOP ? NonFinite::stop : NonFinite::skip;
  if (o.arena_bytes > 0 && !o.arena) return wrong("arena_bytes is the size of an arena, and arena is NULL");
  t.arena = o.arena;
  t.arena_bytes = o.arena_bytes;
  if (o.gradient_hook)
    t.gradient_hook = [hook = o.gradient_hook, user = o.gradient_user](const GradientView& view) {
      const FloatMode mode;  // restores the mode after the callback
      const stw_gradients g{sizeof(stw_gradients), 0,           view.data,  view.count,        view.loss_sum,
                            view.target_count,     view.stream, view.scale, view.correct_pairs};
      return hook(user, &g) == 0;
    };
  return t;
}

Result<Schedule> schedule_of(const stw_run_options& o, const Trainer& trainer) {
  Schedule s;
  if (o.schedule > STW_SCHEDULE_INVERSE_ROOT) return Error{Code::bad_argument, "run: unknown schedule"};
  constexpr ScheduleKind kinds[] = {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::constant,
                                    ScheduleKind::warmup_stable_decay, ScheduleKind::inverse_root};
  s.kind = kinds[o.schedule];
  s.rate = o.learning_rate == 0 ? optimizer_row(trainer.plan().numerics.optimizer).defaults.learning_rate
                                : o.learning_rate;
  s.min_rate = api::value_if_set(o.set_mask, STW_SET_MIN_RATE, o.min_rate)
                   .value_or(s.kind == ScheduleKind::inverse_root ? 0 : s.rate / 10);
  if (o.base_batch > 0)
    for (double* rate : {&s.rate, &s.min_rate})
      *rate = scaled_rate(*rate, o.base_batch, trainer.global_batch());
  s.total = o.total ? o.total : o.until;
  s.warmup = o.warmup;
  if (o.decay_steps != 0 && s.kind != ScheduleKind::warmup_stable_decay)
    return Error{Code::bad_argument, "run: decay_steps is for the schedule warm-up-stable-decay"};
  s.decay = o.decay_steps ? o.decay_steps : s.total / 5;
  for (const auto& [name, rate] : {std::pair{"learning_rate", s.rate}, {"min_rate", s.min_rate}})
    if (!is_rate(rate) || (rate == 0 && name[0] == 'l'))
      return Error{Code::bad_argument,
                   std::string("run: ") + name + " must lie in [0, 1e6]" +
                       (o.base_batch > 0 ? ", also once it is scaled by base_batch" : "")};
  if (s.min_rate > s.rate) return Error{Code::bad_argument, "run: min_rate is larger than learning_rate"};
  if (s.warmup > s.total) return Error{Code::bad_argument, "run: the warm-up is longer than the schedule"};
  if (s.kind == ScheduleKind::warmup_stable_decay && (s.decay > s.total || s.warmup > s.total - s.decay))
    return Error{Code::bad_argument, "run: warm-up and decay together are longer than the schedule"};
  return s;
}

// Without `to_learn` the batch is only evaluated: it has no pairs, and none of the inputs that a request adds
// for the loss.
Result<Batch> read_batch(const stw_batch& b, const Trainer& t, bool to_learn) {
  const Graph& g = t.graph();
  InputIndices inputs = g.inputs;
  for (const Input input : each_input)
    if (!to_learn && input_row(input).of_loss && input_row(input).demand == InputDemand::request)
      inputs[input] = -1;
  return Batch::read(
      b.names, b.tensors, b.count,
      {g, static_cast<int64_t>(t.global_batch()), inputs, to_learn ? g.preference : Preference::none});
}

// The batch as a SampleSource. It captures two words, so that std::function does not allocate. `batch` must
// outlive it.
auto samples_of(const Batch& batch) {
  return [&batch](uint64_t sample, const SampleRows& rows) -> Status {
    batch.copy(static_cast<int64_t>(sample), rows);
    return ok();
  };
}

// Owns the parts of an exported view, except the tensor's bytes, which are the trainer's.
struct Exported {
  DLManagedTensorVersioned managed;
  int64_t shape[4];
};

}  // namespace

extern "C" {

stw_status stw_trainer_create(stw_trainer** out, stw_device* device, const stw_model* model,
                              const stw_plan* plan, const stw_trainer_options* options,
                              stw_error* error) STW_NOEXCEPT {
  return api::guard(device, error, [&]() -> stw_status {
    if (out) *out = nullptr;
    if (!out || !device || !model || !plan)
      return api::fail(error, Code::bad_argument, "out, device, model or plan is NULL");
    stw_trainer_options o;
    STW_API_TRY(api::read_options(options, o, "trainer options"));
    STW_API_TRY(api::check_mask(o.set_mask,
                                STW_SET_WEIGHT_DECAY | STW_SET_CLIP_NORM | STW_SET_BETA1 | STW_SET_BETA2 |
                                    STW_SET_MOMENTUM | STW_SET_MARGIN | STW_SET_TRAINER_SEED,
                                "trainer options"));
    STW_API_TRY(api::check_reserved(o.reserved, "trainer options"));
    auto settings = options_of(o, plan->planned->plan.numerics,
                               static_cast<uint64_t>(plan->planned->plan.request.global_batch));
    STW_API_TRY(settings);
    if (describe(plan->planned->graph) !=
        describe(build_model(model->model->config(), plan->planned->plan.request.sequence,
                             plan->planned->plan.numerics)))
      return api::fail(error, Code::bad_state, "trainer: the plan was made for another model");
    auto trainer = Trainer::create(*device->device, model->model, plan->planned, std::move(*settings));
    STW_API_TRY(trainer);
    *out = new stw_trainer{std::move(*trainer), {}};
    return STW_OK;
  });
}

void stw_trainer_destroy(stw_trainer* trainer) STW_NOEXCEPT {
  const api::Entry entry;
  if (trainer && !api::is_inherited(trainer->trainer->device())) delete trainer;
}

stw_status stw_trainer_step(stw_trainer* trainer, const stw_batch* batch, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer) return api::fail(error, Code::bad_argument, "trainer is NULL");
    stw_batch b;
    STW_API_TRY(api::read_options(batch, b, "batch", false));
    if (!is_rate(b.learning_rate))
      return api::fail(error, Code::bad_argument, "batch: learning_rate must lie in [0, 1e6]");
    Trainer& t = *trainer->trainer;
    auto read = read_batch(b, t, true);
    STW_API_TRY(read);
    const auto source = samples_of(*read);
    auto result = t.step(source, static_cast<uint64_t>(read->samples()), b.learning_rate);
    STW_API_TRY(result);
    trainer->last = *result;
    return STW_OK;
  });
}

stw_status stw_trainer_wait(stw_trainer* trainer, stw_step_result* out, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !out) return api::fail(error, Code::bad_argument, "trainer or out is NULL");
    if (!trainer->last) return api::fail(error, Code::bad_state, "trainer: no step was made");
    const StepResult& r = *trainer->last;
    stw_step_result result{};
    result.skipped = r.skip != kernels::skip_none;
    result.skip_reason = static_cast<uint32_t>(r.skip);
    result.loss_scale = r.loss_scale;
    result.step = r.step;
    result.loss = r.loss;
    result.grad_norm = r.grad_norm;
    result.targets = r.targets;
    result.seconds = r.seconds;
    result.accuracy = r.accuracy;
    const stw_status status = api::write_info(result, out);
    return status == STW_OK ? status
                            : api::fail(error, Code::bad_struct_size, "out.struct_size is too small");
  });
}

stw_status stw_trainer_run(stw_trainer* trainer, stw_dataset* dataset, const stw_run_options* options,
                           stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !dataset) return api::fail(error, Code::bad_argument, "trainer or dataset is NULL");
    stw_run_options o;
    STW_API_TRY(api::read_options(options, o, "run options", false));
    STW_API_TRY(api::check_mask(o.set_mask, STW_SET_MIN_RATE, "run options"));
    Trainer& t = *trainer->trainer;
    auto schedule = schedule_of(o, t);
    STW_API_TRY(schedule);
    const uint64_t every = o.progress_every ? o.progress_every : 1;
    auto after = [&](const StepResult& result, const Progress& now) {
      trainer->last = result;
      if (!o.progress || (now.batches % every != 0 && now.batches < o.until)) return true;
      const stw_progress p = progress_of(now);
      const FloatMode mode;  // restores the mode after the callback
      return o.progress(o.progress_user, &p) == 0;
    };
    STW_API_TRY(t.run(dataset->dataset, dataset->seed, o.until, *schedule, after));
    return STW_OK;
  });
}

stw_status stw_trainer_evaluate(stw_trainer* trainer, stw_dataset* dataset, uint64_t batches, double* loss,
                                stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !dataset || !loss)
      return api::fail(error, Code::bad_argument, "trainer, dataset or loss is NULL");
    if (batches == 0) return api::fail(error, Code::bad_argument, "evaluate: batches must be at least 1");
    auto result = trainer->trainer->evaluate(dataset->dataset, batches);
    STW_API_TRY(result);
    *loss = *result;
    return STW_OK;
  });
}

stw_status stw_trainer_generate(stw_trainer* trainer, const stw_generate_options* options, uint64_t* count,
                                stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !count) return api::fail(error, Code::bad_argument, "trainer or count is NULL");
    stw_generate_options o;
    STW_API_TRY(api::read_options(options, o, "generate options", false));
    STW_API_TRY(api::check_mask(o.set_mask, STW_SET_GENERATE_SEED, "generate options"));
    STW_API_TRY(api::check_reserved(o.reserved, "generate options"));
    if (o.out_capacity > 0 && !o.out) return api::fail(error, Code::bad_argument, "generate: out is NULL");
    if (!(o.temperature >= 0))
      return api::fail(error, Code::bad_argument, "generate: temperature must not be negative");
    if (o.stop_count > 0 && !o.stop) return api::fail(error, Code::bad_argument, "generate: stop is NULL");
    if (!(o.top_p >= 0 && o.top_p <= 1))
      return api::fail(error, Code::bad_argument, "generate: top_p must be from 0 to 1");
    auto result = trainer->trainer->generate(
        {o.prompt,
         o.prompt_count,
         o.out,
         o.out_capacity,
         {o.temperature, o.top_k, o.top_p, api::seed_or_default(o.set_mask, STW_SET_GENERATE_SEED, o.seed)},
         {o.stop, o.stop_count}});
    STW_API_TRY(result);
    *count = *result;
    return STW_OK;
  });
}

stw_status stw_trainer_logits(stw_trainer* trainer, const int32_t* tokens, uint64_t count, float* out,
                              uint64_t capacity, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !tokens || !out)
      return api::fail(error, Code::bad_argument, "trainer, tokens or out is NULL");
    const auto classes = static_cast<uint64_t>(trainer->trainer->graph().head.outputs);
    if (capacity < classes)
      return api::fail(error,
                       Error{Code::bad_argument, "logits: expected a capacity of " + std::to_string(classes) +
                                                     ", found " + std::to_string(capacity)});
    auto logits = trainer->trainer->logits(tokens, count);
    STW_API_TRY(logits);
    std::copy_n(*logits, classes, out);
    return STW_OK;
  });
}

stw_status stw_trainer_classify(stw_trainer* trainer, const int32_t* tokens, const int32_t* token_types,
                                const uint64_t* lengths, uint64_t texts, float* out, uint64_t capacity,
                                stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || (texts > 0 && !lengths))
      return api::fail(error, Code::bad_argument, "trainer or lengths is NULL");
    const Graph& graph = trainer->trainer->graph();
    uint64_t rows = texts;
    if (graph.head.row().has_outputs_of_tokens())
      rows = std::accumulate(lengths, lengths + texts, uint64_t{0}, size_add);
    const uint64_t wanted = size_mul(rows, static_cast<uint64_t>(graph.head.labels()));
    if (capacity < wanted)
      return api::fail(
          error, Error{Code::bad_argument, "classify: expected a capacity of " + std::to_string(wanted) +
                                               ", found " + std::to_string(capacity)});
    std::vector<Text> list;
    list.reserve(texts);
    for (uint64_t text = 0; text < texts; ++text) {
      STW_API_TRY(trainer->trainer->check_length("classify: text " + std::to_string(text), lengths[text]));
      if (!tokens || (wanted > 0 && !out))
        return api::fail(error, Code::bad_argument, "tokens or out is NULL");
      list.push_back({tokens, lengths[text], token_types});
      tokens += lengths[text];
      if (token_types) token_types += lengths[text];
    }
    auto status = trainer->trainer->classify(list, out);
    STW_API_TRY(status);
    return STW_OK;
  });
}

stw_status stw_trainer_log_probabilities(stw_trainer* trainer, const stw_batch* batch, float* out,
                                         uint64_t capacity, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !out) return api::fail(error, Code::bad_argument, "trainer or out is NULL");
    stw_batch b;
    STW_API_TRY(api::read_options(batch, b, "batch", false));
    Trainer& t = *trainer->trainer;
    auto read = read_batch(b, t, false);
    STW_API_TRY(read);
    const auto samples = static_cast<uint64_t>(read->samples()),
               tokens = static_cast<uint64_t>(read->tokens());
    if (capacity < samples * tokens)
      return api::fail(error, Error{Code::bad_argument, "log_probabilities: expected a capacity of " +
                                                            std::to_string(samples * tokens) + ", found " +
                                                            std::to_string(capacity)});
    const auto source = samples_of(*read);
    std::vector<float> all(samples * tokens);  // `out` is written completely or not at all
    auto status = t.log_probabilities(source, samples, [&](uint64_t sample, const float* losses) -> Status {
      read->put_log_probabilities(losses, all.data() + sample * tokens);
      return ok();
    });
    STW_API_TRY(status);
    std::copy(all.begin(), all.end(), out);
    return STW_OK;
  });
}

stw_status stw_trainer_write_reference(stw_trainer* trainer, stw_dataset* dataset, const char* path,
                                       stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !dataset || !path)
      return api::fail(error, Code::bad_argument, "trainer, dataset or path is NULL");
    STW_API_TRY(trainer->trainer->write_reference(dataset->dataset, path));
    return STW_OK;
  });
}

stw_status stw_trainer_replan(stw_trainer* trainer, uint64_t memory_bytes, stw_plan** out,
                              stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (out) *out = nullptr;
    if (!trainer) return api::fail(error, Code::bad_argument, "trainer is NULL");
    Trainer& t = *trainer->trainer;
    STW_API_TRY(t.check_replan());  // before the search, which may fail for another reason
    Request request = t.plan().request;
    request.memory_bytes = memory_bytes;
    request.keep = keep_everything;  // a refusal is only an error
    request.gradient_hook = t.has_gradient_hook();
    if (memory_bytes == 0) {
      request.device_memory = t.memory_of_device();
      request.device_probed = request.device_memory > 0;
    }
    request.state_bits = t.plan().numerics.state_bits;
    if (!t.plan().numerics.exact) request.micro_batch = t.plan().decisions.micro_batch;
    auto planned = [&] {
      const LongCall call = t.long_call(Work::plan, WorkUnit::none, 0);
      return Planned::make(t.model(), request);
    }();
    STW_API_TRY(planned);
    if (!(*planned)->plan.fits) return api::fail(error, api::over_budget((*planned)->plan));
    auto plan = std::make_unique<stw_plan>(stw_plan{*planned});
    STW_API_TRY(t.replan(std::move(*planned)));
    if (out) *out = plan.release();
    return STW_OK;
  });
}

void stw_trainer_cancel(stw_trainer* trainer) STW_NOEXCEPT {
  if (trainer) trainer->trainer->cancel();
}

stw_status stw_trainer_progress(const stw_trainer* trainer, stw_progress* out) STW_NOEXCEPT {
  if (!trainer || !out) return STW_BAD_ARGUMENT;
  // In a child process: another thread may have held the progress board's lock at the fork.
  if (api::is_inherited(trainer->trainer->device())) return STW_BAD_STATE;
  return api::write_info(progress_of(trainer->trainer->progress()), out);
}

stw_status stw_trainer_calibrate(stw_trainer* trainer, char* out, size_t capacity, size_t* size,
                                 stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !out) return api::fail(error, Code::bad_argument, "trainer or out is NULL");
    if (capacity < STW_PROFILE_BYTES)
      return api::fail(error, Error{Code::bad_argument, "calibrate: expected a capacity of " +
                                                            std::to_string(STW_PROFILE_BYTES) +
                                                            " bytes, found " + std::to_string(capacity)});
    auto profile = trainer->trainer->calibrate();
    STW_API_TRY(profile);
    const std::string text = profile_to_json(*profile);
    if (text.size() >= STW_PROFILE_BYTES)
      return api::fail(error, Code::internal, "calibrate: the profile is too long");
    std::memcpy(out, text.c_str(), text.size() + 1);
    if (size) *size = text.size();
    return STW_OK;
  });
}

stw_status stw_trainer_timeline(stw_trainer* trainer, const char* path, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !path) return api::fail(error, Code::bad_argument, "trainer or path is NULL");
    STW_API_TRY(trainer->trainer->write_timeline(path));
    return STW_OK;
  });
}

void* stw_trainer_stream(const stw_trainer* trainer) STW_NOEXCEPT {
  return trainer ? trainer->trainer->stream() : nullptr;
}

stw_status stw_trainer_export_tensor(stw_trainer* trainer, size_t index, uint32_t kind,
                                     struct DLManagedTensorVersioned** out, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (out) *out = nullptr;
    if (!trainer || !out) return api::fail(error, Code::bad_argument, "trainer or out is NULL");
    if (index >= trainer->trainer->model().parameters().size() || kind > STW_TENSOR_SECOND_MOMENT)
      return api::fail(error, Code::bad_argument, "trainer: there is no such tensor");
    auto view = trainer->trainer->view(index, static_cast<TensorView>(kind));
    STW_API_TRY(view);
    auto* exported = new Exported{};
    DLManagedTensorVersioned& m = exported->managed;
    m.version = {DLPACK_MAJOR_VERSION, 0};
    m.manager_ctx = exported;
    m.deleter = [](DLManagedTensorVersioned* self) { delete static_cast<Exported*>(self->manager_ctx); };
    m.dl_tensor.data = view->data;
    const bool is_cuda = trainer->trainer->device().is_cuda() && !view->on_host;
    m.dl_tensor.device = {is_cuda ? kDLCUDA : kDLCPU, is_cuda ? trainer->trainer->device().ordinal() : 0};
    m.dl_tensor.ndim = view->shape.rank;
    m.dl_tensor.dtype = view->format == Format::bf16  ? DLDataType{kDLBfloat, 16, 1}
                        : view->format == Format::f16 ? DLDataType{kDLFloat, 16, 1}
                                                      : DLDataType{kDLFloat, 32, 1};
    for (int i = 0; i < view->shape.rank; ++i) exported->shape[i] = view->shape[i];
    m.dl_tensor.shape = exported->shape;
    *out = &m;
    return STW_OK;
  });
}

stw_status stw_trainer_import_tensor(stw_trainer* trainer, size_t index,
                                     const struct DLManagedTensorVersioned* in,
                                     stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !in) return api::fail(error, Code::bad_argument, "trainer or in is NULL");
    Trainer& t = *trainer->trainer;
    STW_API_TRY(t.check_ready());
    if (index >= t.model().parameters().size())
      return api::fail(error, Code::bad_argument, "trainer: there is no such tensor");
    const Tensor& p = t.graph().at(t.model().parameters()[index]);
    const DLManagedTensorVersioned& managed = *in;
    if (managed.version.major != DLPACK_MAJOR_VERSION)
      return api::fail(error, Code::bad_argument, "trainer: expected DLPack version 1");
    const DLTensor& d = managed.dl_tensor;
    bool same = d.ndim == p.shape.rank && d.shape && d.data;
    int64_t stride = 1;
    for (int i = d.ndim - 1; same && i >= 0; --i) {
      same = d.shape[i] == p.shape[i] && (!d.strides || d.strides[i] == stride || d.shape[i] == 1);
      if (same) stride *= d.shape[i];  // other extents could overflow 64 bits
    }
    if (!same || d.device.device_type != kDLCPU || d.dtype.code != kDLFloat || d.dtype.bits != 32 ||
        d.dtype.lanes != 1)
      return api::fail(error, Code::bad_argument,
                       "trainer: expected compact fp32 values of the parameter's shape in host memory");
    const auto* values = reinterpret_cast<const float*>(static_cast<const char*>(d.data) + d.byte_offset);
    if (reinterpret_cast<uintptr_t>(values) % alignof(float) != 0)
      return api::fail(error, Code::bad_argument, "trainer: expected values aligned to 4 bytes");
    t.write_parameter(index, 0, values, p.shape.elements());
    return STW_OK;
  });
}

stw_status stw_trainer_save(stw_trainer* trainer, const char* path, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !path) return api::fail(error, Code::bad_argument, "trainer or path is NULL");
    STW_API_TRY(trainer->trainer->save(path));
    return STW_OK;
  });
}

stw_status stw_checkpoint_verify(const char* path, stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!path) return api::fail(error, Code::bad_argument, "path is NULL");
    auto reader = CheckpointReader::open(path);
    STW_API_TRY(reader);
    STW_API_TRY(reader->verify_all());
    return STW_OK;
  });
}

stw_status stw_trainer_restore(stw_trainer* trainer, const char* path, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !path) return api::fail(error, Code::bad_argument, "trainer or path is NULL");
    STW_API_TRY(trainer->trainer->restore(path));
    trainer->last.reset();
    return STW_OK;
  });
}

stw_status stw_trainer_export_model(stw_trainer* trainer, const char* folder, stw_error* error) STW_NOEXCEPT {
  return api::guard(trainer, error, [&]() -> stw_status {
    if (!trainer || !folder) return api::fail(error, Code::bad_argument, "trainer or folder is NULL");
    STW_API_TRY(trainer->trainer->export_model(folder));
    return STW_OK;
  });
}

}  // extern "C"
