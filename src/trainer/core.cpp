#include "src/trainer/core.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/contract/sizes.h"
#include "planner/base/check_in.h"
#include "src/base/elementary.h"

namespace stw {

TrainerCore::TrainerCore(const Device& of, std::shared_ptr<const Model> trained,
                         std::shared_ptr<const Planned> plan, TrainerOptions settings)
    : device(of),
      model(std::move(trained)),
      planned(std::move(plan)),
      options(std::move(settings)),
      memory(of) {}

TrainerCore::~TrainerCore() {
  if (stream) static_cast<void>(stream->wait());  // nothing may use the memory any more
  stream.reset();
}

Status TrainerCore::create() {
  STW_ASSIGN(pairs, pair_terms(plan().numerics.inputs.preference, options.preference, options.label_smoothing,
                               options.z_loss));
  STW_TRY(memory.take(plan().bytes.arena, plan().bytes.host, options.arena, options.arena_bytes));
  STW_ASSIGN(made, device.make_stream(plan().request.threads));
  stream = std::move(made);
  STW_TRY(stream->load(plan().numerics));
  stream->bind(execution);
  execution.weight_decay = options.weight_decay;
  execution.first_sample = options.first_sample;
  execution.pairs = pairs;
  use(planned);
  if (plan().numerics.precision == Precision::fp16)
    progress.set_loss_scale(carried.loss_scale = options.loss_scale);
  STW_TRY(prepare());
  Filling filling = filling_of_all();
  return fill(filling);
}

Status TrainerCore::reallocate() {
  Filling filling = filling_of_all();
  if (!memory.arena()) {
    STW_TRY(memory.reallocate_arena(plan().bytes.arena));
    use(planned);
  }
  STW_TRY(prepare());
  STW_TRY(fill(filling));
  condition = Condition::broken;
  return ok();
}

void TrainerCore::use(std::shared_ptr<const Planned> next) {
  planned = std::move(next);
  execution.graph = &planned->graph;
  execution.layout = &planned->programs.arena;
  execution.arena = memory.arena();
  execution.host = memory.host();
  execution.state = reinterpret_cast<kernels::StepState*>(execution.address(graph().state));
  inputs.reserve(planned->programs, execution, *stream);
}

Status TrainerCore::prepare() {
  const Programs& p = planned->programs;
  for (const Program* program : p.all()) STW_TRY(stream->prepare(execution, *program));
  return ok();
}

// The random numbers of ops on tables are those of the first sample.
Status TrainerCore::run_on_tables(const Program& program) {
  if (program.instructions.empty()) return ok();
  const uint64_t first_sample = 0;
  stream->upload(&execution.state->first_sample, &first_sample, sizeof first_sample);
  return stream->run(execution, program);
}

Status TrainerCore::compute_tables(bool for_evaluation) {
  const Programs& p = programs();
  return run_on_tables(for_evaluation && !p.evaluate_tables.instructions.empty() ? p.evaluate_tables
                                                                                 : p.tables);
}

Status TrainerCore::fill(Filling& filling) {
  // Touch every page now, so that the memory of the plan is there from the first step on.
  constexpr uint64_t at_once = 16 << 20;
  const uint64_t bytes = plan().bytes.arena;
  for (uint64_t done = 0; done < bytes; done += at_once) {
    const uint64_t now = std::min(at_once, bytes - done);
    check_in(now);
    stream->zero(memory.arena() + done, now);
  }
  if (memory.host()) std::memset(memory.host(), 0, plan().bytes.host);
  STW_TRY(filling.fill());
  return stream->wait();
}

Status TrainerCore::check_free() const {
  if (!computes) return ok();
  return Error{
      Code::bad_state,
      "trainer: it is in the middle of a step, evaluation, generation or calibration, which this call would "
      "disturb; call again when that has returned"};
}

Status TrainerCore::check_ready() const {
  STW_TRY(check_free());
  if (condition == Condition::ready) return ok();
  return Error{
      Code::bad_state,
      "trainer: a step, restore, calibration or re-plan failed halfway; restore a checkpoint to continue"};
}

Status TrainerCore::check_dataset(const Dataset& dataset, Dataset::Part part, bool with_reference) const {
  if (dataset.vocabulary() > graph().vocabulary)
    return Error{Code::bad_state, "trainer: the dataset was opened for a vocabulary of " +
                                      std::to_string(dataset.vocabulary()) + ", the model has " +
                                      std::to_string(graph().vocabulary)};
  if (dataset.label_count() != graph().head.labels())
    return Error{Code::bad_state,
                 "trainer: the model has " +
                     (graph().head.labels() > 0 ? std::to_string(graph().head.labels()) + " labels"
                                                : std::string("no labels")) +
                     ", the dataset " +
                     (dataset.label_count() > 0 ? "was opened for " + std::to_string(dataset.label_count())
                                                : std::string("has none"))};
  if (graph().head.labels() > 0 && dataset.task() != graph().head.task)
    return Error{Code::bad_state, std::string("trainer: the model's task is ") + graph().head.row().name +
                                      ", the dataset was opened for " + task_row(dataset.task()).name};
  if (dataset.hides_tokens() != graph().head.row().hides_tokens)
    return Error{
        Code::bad_state,
        dataset.hides_tokens()
            ? "trainer: the dataset hides tokens (mask_rate), but the model is no masked language model"
            : "trainer: the model is a masked language model, but the dataset hides no tokens (mask_rate)"};
  if (dataset.has_documents() && graph().inputs[Input::positions] < 0)
    return Error{
        Code::bad_state,
        "trainer: the dataset has documents, but the plan has no input \"positions\" to keep them apart"};
  if (dataset.has_second_texts() && graph().token_types < 2)
    return Error{Code::bad_state,
                 "trainer: the dataset marks tokens of second texts, and the model has no token types"};
  if (dataset.has_pairs() != (graph().preference != Preference::none))
    return Error{Code::bad_state, dataset.has_pairs()
                                      ? "trainer: the dataset has pairs, but the plan has no preference"
                                      : std::string("trainer: the plan is for a preference (") +
                                            name_of(graph().preference) + "), and the dataset has no pairs"};
  if (with_reference && graph().inputs[Input::reference] >= 0 && !dataset.has_reference())
    return Error{Code::bad_state, std::string("trainer: the plan's preference ") +
                                      name_of(graph().preference) +
                                      " is against a reference, and the dataset was opened without one"};
  return dataset.check_windows(part, sequence());
}

LongCall TrainerCore::long_call(Work work, WorkUnit unit, uint64_t total, EarlierCancel earlier) {
  const char* const message =
      work == Work::create_trainer ? "trainer: its creation was cancelled"
      : work == Work::save || work == Work::export_model
          ? "trainer: cancelled; nothing was written, and existing files are unchanged"
          : "trainer: cancelled; it stands at the last completed step";
  return LongCall({work, unit, 0, total, 0}, message, options.watch, &cancels, earlier);
}

void TrainerCore::begin_state(double learning_rate) {
  const Progress now = progress.read();
  const bool is_training = now.phase == TrainerPhase::train;
  kernels::StepState& s = state = {};
  s.learning_rate = learning_rate;
  s.seed = options.seed;
  s.step = now.step;
  s.beta1 = options.beta1;
  s.beta2 = options.beta2;
  s.epsilon = options.epsilon;
  s.max_norm = options.clip_norm;
  s.momentum = options.momentum;
  s.nesterov = options.nesterov;
  const double t = static_cast<double>(now.step + 1);
  s.inverse_root = 1 / std::sqrt(t);
  s.fresh_share = portable_pow(t, -0.8);
  s.batch_factor = 1;
  s.loss_scale = carried.loss_scale;
  if (plan().numerics.precision == Precision::fp16) {
    // The number of tokens, or of samples if the loss of a sample is a mean over its tokens.
    const uint64_t summed =
        is_of_means(graph().preference) ? global_batch() : global_batch() * static_cast<uint64_t>(sequence());
    s.batch_factor = std::ldexp(1.0, -std::bit_width(summed - 1));
    s.growth_interval = options.growth_interval;
  }
  if (!is_training) return push_state();  // evaluation uses the plain loss
  if (graph().preference == Preference::none) s.label_smoothing = options.label_smoothing;
  s.z_loss = options.z_loss;
  s.outlier_limit = options.outlier_limit;
  s.good_steps = carried.good_steps;
  s.observed = carried.observed;
  s.loss_mean = carried.loss_mean;
  s.loss_variance = carried.loss_variance;
  s.norm_mean = carried.norm_mean;
  s.norm_variance = carried.norm_variance;
  push_state();
}

Status TrainerCore::read_memory(std::byte* from, uint64_t bytes,
                                const std::function<Status(std::span<const std::byte>)>& piece) {
  constexpr uint64_t at_once = 1 << 20;
  const std::byte* const there = stream->on_host(from);
  std::vector<std::byte> copy(there ? 0 : static_cast<size_t>(std::min(bytes, at_once)));
  for (uint64_t done = 0; done < bytes; done += at_once) {
    const uint64_t n = std::min(at_once, bytes - done);
    check_in(n);
    if (there) {
      STW_TRY(piece({there + done, static_cast<size_t>(n)}));
      continue;
    }
    STW_TRY(stream->download(copy.data(), from + done, n));
    STW_TRY(piece({copy.data(), static_cast<size_t>(n)}));
  }
  return ok();
}

}  // namespace stw
