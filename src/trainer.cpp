#include "src/trainer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "src/elementary.h"
#include "src/numbers.h"

namespace stw {

namespace {

constexpr uint64_t filled_at_once = 1 << 16;   // elements

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Trainer::Trainer(const Device& device, std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned, TrainerOptions options)
    : device_(device), model_(std::move(model)), planned_(std::move(planned)), options_(std::move(options)) {}

Trainer::~Trainer() {
  if (owns_arena_) device_.release(arena_, plan().bytes.arena);
  if (host_) device_.release(host_, plan().bytes.host);
}

Result<std::unique_ptr<Trainer>> Trainer::create(const Device& device, std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Planned> planned, TrainerOptions options) {
  const Plan& plan = planned->plan;
  if (!plan.fits) return Error{Code::bad_state, "trainer: the plan does not fit its budget"};
  if (plan.request.device != "cpu")
    return Error{Code::bad_state, "trainer: the plan was made for device '" + plan.request.device + "', this one is a CPU"};
  if (options.gradient_hook && plan.decisions.offload[Offloaded::gradients] > 0)
    return Error{Code::bad_state, "trainer: a gradient hook needs all gradients in the arena, this plan keeps some in host memory"};
  std::unique_ptr<Trainer> t(new Trainer(device, std::move(model), std::move(planned), std::move(options)));
  STW_TRY(t->allocate());
  STW_ASSIGN(pool, device.make_pool(plan.request.threads));
  t->pool_ = std::move(pool);
  Execution& x = t->execution_;
  x.graph = &t->planned_->graph;
  x.layout = &t->planned_->programs.arena;
  x.arena = t->arena_;
  x.host = t->host_;
  x.table = &device.table();
  x.parallel = t->pool_->parallel();
  x.weight_decay = t->options_.weight_decay;
  t->state_ = x.state = reinterpret_cast<kernels::StepState*>(t->address(t->graph().state));
  STW_TRY(t->fill());
  return t;
}

Status Trainer::allocate() {
  constexpr uint64_t alignment = 256;
  const uint64_t bytes = plan().bytes.arena, host_bytes = plan().bytes.host;
  auto refused = [](const std::string& what, uint64_t needed, uint64_t available) {
    Error e{Code::out_of_memory, "trainer: " + what};
    e.bytes_needed = needed;
    e.bytes_available = available;
    return e;
  };
  const bool brings_arena = options_.arena != nullptr;
  if (brings_arena) {
    if (options_.arena_bytes < bytes)
      return refused("the host's arena has " + std::to_string(options_.arena_bytes) + " bytes, the plan needs " + std::to_string(bytes),
                     bytes, options_.arena_bytes);
    if (reinterpret_cast<uintptr_t>(options_.arena) % alignment != 0)
      return Error{Code::bad_argument, "trainer: the host's arena must lie at a multiple of 256"};
    arena_ = static_cast<std::byte*>(options_.arena);
  }
  // The system would promise more memory than it has and end the process later.
  const uint64_t wanted = size_add(brings_arena ? 0 : bytes, host_bytes), available = device_.info().memory_free;
  const bool is_there = device_.has_allocator() || available == 0 || wanted <= available;
  auto allocate = [&](const char* what, uint64_t n) -> Result<std::byte*> {
    void* memory = is_there ? device_.allocate(n, alignment) : nullptr;
    if (!memory)
      return refused(std::string(what) + " needs " + std::to_string(n) + " bytes, " + std::to_string(available) + " are free", wanted, available);
    if (reinterpret_cast<uintptr_t>(memory) % alignment == 0) return static_cast<std::byte*>(memory);
    device_.release(memory, n);
    return Error{Code::bad_argument, "trainer: the host's allocator gave memory that does not lie at a multiple of 256"};
  };
  if (!brings_arena) {
    STW_ASSIGN(arena, allocate("the arena", bytes));
    arena_ = arena;
    owns_arena_ = true;
  }
  if (host_bytes > 0) {
    STW_ASSIGN(host, allocate("what is offloaded", host_bytes));
    host_ = host;
  }
  return ok();
}

std::byte* Trainer::address(int tensor) const {
  const Arena& layout = planned_->programs.arena;
  if (layout.on_host(tensor)) return host_ + layout.host[static_cast<size_t>(layout.host_of_tensor[static_cast<size_t>(tensor)])].offset;
  return arena_ + layout.persistent[static_cast<size_t>(layout.of_tensor[static_cast<size_t>(tensor)])].offset;
}

Status Trainer::fill() {
  // Every page is touched now: what the plan promised is there from the first step on.
  std::memset(arena_, 0, plan().bytes.arena);
  if (host_) std::memset(host_, 0, plan().bytes.host);
  fill_tables();
  std::vector<float> values(filled_at_once);
  for (size_t p = 0; p < model_->parameters().size(); ++p) {
    const Tensor& tensor = model_->graph().at(model_->parameters()[p]);
    const uint64_t count = tensor.shape.elements();
    for (uint64_t first = 0; first < count; first += filled_at_once) {
      const uint64_t n = std::min(filled_at_once, count - first);
      STW_TRY(model_->read(tensor, first, n, values.data()));
      put_parameter(p, first, values.data(), n);
    }
  }
  return ok();
}

// Source: transformers: the angle is a product in fp32, cosine and sine of it are rounded to fp32.
void Trainer::fill_tables() {
  if (graph().cosine < 0) return;
  float* cosine = reinterpret_cast<float*>(address(graph().cosine));
  float* sine = reinterpret_cast<float*>(address(graph().sine));
  for (int64_t position = 0; position < graph().sequence; ++position) {
    for (float frequency : graph().inverse_frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      *cosine++ = static_cast<float>(portable_cos(static_cast<double>(angle)));
      *sine++ = static_cast<float>(portable_sin(static_cast<double>(angle)));
    }
  }
}

// A model's parameters and a graph's are numbered alike: both come from the same builder.
void Trainer::put_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count) {
  const int tensor = model_->parameters()[parameter];
  std::byte* at = address(tensor);
  if (graph().at(tensor).format == Format::f32) {
    std::memcpy(at + first * 4, values, count * 4);
    return;
  }
  uint16_t* half = reinterpret_cast<uint16_t*>(at) + first;
  int16_t* remainder = nullptr;
  for (const Op& op : graph().update_ops)
    if (op.kind != OpKind::square_sum && !op.outputs.empty() && op.outputs[0] == tensor)
      remainder = reinterpret_cast<int16_t*>(address(op.outputs[1])) + first;
  for (uint64_t i = 0; i < count; ++i) {
    const SplitValue split = split_master(values[i]);
    half[i] = split.half;
    if (remainder) remainder[i] = split.remainder;
  }
}

void Trainer::write_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count) {
  as_created_ = false;
  put_parameter(parameter, first, values, count);
}

void Trainer::enter(TrainerPhase phase) {
  std::lock_guard lock(progress_mutex_);
  progress_.phase = phase;
}

Progress Trainer::progress() const {
  std::lock_guard lock(progress_mutex_);
  return progress_;
}

Status Trainer::check_whole() const {
  if (!broken_) return ok();
  return Error{Code::bad_state, "trainer: a restore or calibration failed halfway; only a restore makes it whole again"};
}

Status Trainer::check_cancelled() {
  if (!cancelled_.exchange(false)) return ok();
  return Error{Code::cancelled, "trainer: cancelled; it stands at the last completed step"};
}

void Trainer::begin_state() {
  *state_ = {};
  state_->seed = options_.seed;
  state_->step = progress_.step;
  state_->beta1 = options_.beta1;
  state_->beta2 = options_.beta2;
  state_->epsilon = options_.epsilon;
  state_->max_norm = options_.clip_norm;
}

int32_t* Trainer::input(const Program& program, int buffer) const {
  return reinterpret_cast<int32_t*>(arena_ + program.buffers[static_cast<size_t>(buffer)].offset);
}

Status Trainer::load(const Program& program, const SampleSource& source, uint64_t first, uint64_t samples) const {
  const uint64_t t = static_cast<uint64_t>(sequence());
  for (uint64_t s = 0; s < static_cast<uint64_t>(program.samples); ++s) {
    int32_t* tokens = input(program, program.tokens) + s * t;
    int32_t* targets = input(program, program.targets) + s * t;
    if (first + s < samples) {
      STW_TRY(source(first + s, tokens, targets));
    } else {
      std::fill_n(tokens, t, 0);
      std::fill_n(targets, t, kernels::ignored_target);
    }
  }
  return ok();
}

Result<StepResult> Trainer::step(const SampleSource& source, uint64_t samples, double learning_rate) {
  STW_TRY(check_whole());
  const InPhase phase(*this, TrainerPhase::train);
  const double begin = now();
  const Programs& programs = planned_->programs;
  begin_state();
  state_->learning_rate = learning_rate;
  const uint64_t m = static_cast<uint64_t>(plan().decisions.micro_batch);
  for (uint64_t first = 0; first < global_batch(); first += m) {
    STW_TRY(check_cancelled());
    const bool is_short = global_batch() - first < m;
    const Program& program = first == 0 ? programs.micro_first : is_short ? programs.micro_short : programs.micro_next;
    STW_TRY(load(program, source, first, samples));
    state_->first_sample = first;
    execute(execution_, program);
  }
  STW_TRY(check_cancelled());
  if (options_.gradient_hook) {
    const Arena& layout = programs.arena;
    const GradientView view{reinterpret_cast<float*>(arena_ + layout.gradients_begin),
                            (layout.gradients_end - layout.gradients_begin) / sizeof(float), &state_->loss_sum, &state_->target_count};
    if (!options_.gradient_hook(view)) return Error{Code::callback_failed, "trainer: the gradient hook failed; nothing was updated"};
  }
  as_created_ = false;
  execute(execution_, programs.update);

  StepResult result;
  result.skipped = state_->skip != 0;
  result.targets = state_->target_count;
  result.loss = state_->loss;
  result.grad_norm = state_->grad_norm;
  result.seconds = now() - begin;
  if (result.skipped)
    device_.log(2, "trainer", state_->skip == 1 ? "step skipped: no target has a loss" : "step skipped: the loss or a gradient is not finite");
  std::lock_guard lock(progress_mutex_);
  progress_.step += !result.skipped;
  progress_.skipped += result.skipped;
  progress_.batches += 1;
  progress_.tokens += result.targets;
  progress_.loss = result.loss;
  progress_.grad_norm = result.grad_norm;
  progress_.learning_rate = learning_rate;
  progress_.seconds = result.seconds;
  progress_.tokens_per_second = static_cast<double>(result.targets) / std::max(result.seconds, 1e-9);
  result.step = progress_.step;
  return result;
}

Status Trainer::check_dataset(const Dataset& dataset, Dataset::Part part) const {
  if (dataset.vocabulary() > graph().vocabulary)
    return Error{Code::bad_state, "trainer: the dataset was opened for a vocabulary of " + std::to_string(dataset.vocabulary()) +
                                      ", the model has " + std::to_string(graph().vocabulary)};
  return dataset.check_windows(part, sequence());
}

Status Trainer::run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
                    const std::function<bool(const Progress&)>& after) {
  STW_TRY(check_dataset(dataset, Dataset::Part::training));
  const InPhase phase(*this, TrainerPhase::train);
  while (progress_.batches < until) {
    const uint64_t batch = progress_.batches;
    auto source = [&](uint64_t sample, int32_t* tokens, int32_t* targets) {
      const uint64_t start = dataset.training_start(data_seed, batch, static_cast<uint32_t>(sample), sequence());
      return dataset.read(Dataset::Part::training, start, sequence(), tokens, targets);
    };
    // By reference: the function object would allocate for a copy.
    STW_ASSIGN(result, step(std::ref(source), global_batch(), schedule.at(progress_.step)));
    static_cast<void>(result);
    if (after && !after(progress())) return Error{Code::cancelled, "trainer: stopped by the progress callback"};
  }
  return ok();
}

Result<double> Trainer::evaluate(const Dataset& dataset, uint64_t batches) {
  STW_TRY(check_dataset(dataset, Dataset::Part::evaluation));
  STW_TRY(check_whole());
  const InPhase phase(*this, TrainerPhase::evaluate);
  const Program& program = planned_->programs.evaluate;
  begin_state();
  for (uint64_t batch = 0; batch < batches; ++batch) {
    auto source = [&](uint64_t sample, int32_t* tokens, int32_t* targets) {
      const uint64_t start = dataset.evaluation_start(batch, static_cast<uint32_t>(sample), sequence());
      return dataset.read(Dataset::Part::evaluation, start, sequence(), tokens, targets);
    };
    for (uint64_t first = 0; first < global_batch(); first += static_cast<uint64_t>(program.samples)) {
      STW_TRY(check_cancelled());
      STW_TRY(load(program, std::ref(source), first, global_batch()));
      execute(execution_, program);
    }
  }
  const double loss = state_->loss_sum / static_cast<double>(std::max<uint64_t>(state_->target_count, 1));
  std::lock_guard lock(progress_mutex_);
  progress_.evaluation_loss = loss;
  return loss;
}

Result<TensorMemory> Trainer::view(size_t parameter, TensorView kind) {
  const int tensor = model_->parameters()[parameter];
  int found = -1;
  if (kind == TensorView::parameter) found = tensor;
  if (kind == TensorView::gradient)
    for (auto g = graph().gradients.rbegin(); g != graph().gradients.rend(); ++g)
      if (g->parameter == tensor) found = g->gradient;
  for (const Op& op : graph().update_ops)
    if (op.kind == OpKind::adamw && op.outputs[0] == tensor) {
      if (kind == TensorView::first_moment) found = op.outputs[2];
      if (kind == TensorView::second_moment) found = op.outputs[3];
    }
  if (found < 0) return Error{Code::unsupported, "trainer: " + graph().at(tensor).name + " has no such tensor in fp32 or bf16"};
  return TensorMemory{address(found), graph().at(found).format, graph().at(found).shape};
}

}  // namespace stw
