#include "src/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "src/clock.h"
#include "src/elementary.h"
#include "src/numbers.h"

namespace stw {

namespace {

constexpr uint64_t filled_at_once = 1 << 16;   // elements

// The op that updates a parameter; null where it is frozen.
const Op* update_of(const Graph& graph, int parameter) {
  for (const Op& op : graph.update_ops)
    if (is_update(op.kind) && op.outputs[0] == parameter) return &op;
  return nullptr;
}

constexpr const char* skip_reasons[] = {"", "no target has a loss", "the loss or a gradient is not finite",
                                        "its loss or gradient norm is an outlier", "a gradient is not finite"};

}  // namespace

Trainer::Trainer(const Device& device, std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned, TrainerOptions options)
    : device_(device), model_(std::move(model)), planned_(std::move(planned)), options_(std::move(options)) {}

Trainer::~Trainer() {
  if (stream_) static_cast<void>(stream_->wait());   // nothing may use the memory any more
  stream_.reset();
  if (owns_arena_) device_.release(arena_, arena_bytes_);
  if (host_) device_.release_host(host_, plan().bytes.host);
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
  STW_TRY(t->allocate());
  STW_ASSIGN(stream, device.make_stream(t->plan().request.threads));
  t->stream_ = std::move(stream);
  STW_TRY(t->stream_->load(t->plan().numerics));
  t->stream_->bind(t->execution_);
  t->execution_.weight_decay = t->options_.weight_decay;
  t->use(t->planned_);
  if (t->plan().numerics.precision == Precision::fp16) t->progress_.loss_scale = t->carried_.loss_scale = t->options_.loss_scale;
  STW_TRY(t->prepare());
  STW_TRY(t->fill());
  return t;
}

Error Trainer::out_of_memory(const std::string& what, uint64_t needed, uint64_t available) {
  Error e{Code::out_of_memory, "trainer: " + what};
  e.bytes_needed = needed;
  e.bytes_available = available;
  return e;
}

std::string Trainer::refusal(bool enough_free, bool by_host, uint64_t available) {
  if (by_host) return ", which the host's allocator refused";
  const std::string free = std::to_string(available) + " are free";
  return enough_free ? ", which the system refused, although " + free + ": a limit of the process?" : ", " + free;
}

Status Trainer::check_offload(const Plan& plan) const {
  if (!options_.gradient_hook || plan.decisions.offload[Offloaded::gradients] == 0) return ok();
  return Error{Code::bad_state, "trainer: a gradient hook needs all gradients in the arena, this plan keeps some in host memory"};
}

// What asks for more of the gradients than the plan keeps of them.
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
  execution_.arena = arena_;
  execution_.host = host_;
  execution_.state = reinterpret_cast<kernels::StepState*>(address(graph().state));
  const auto vocabulary = static_cast<size_t>(graph().vocabulary);
  logits_.resize(vocabulary);
  if (graph().compute != Format::f32) short_logits_.resize(vocabulary);
  if (stream_->on_host(arena_)) return;
  const Programs& programs = planned_->programs;
  const int64_t samples = std::max(programs.micro_first.samples, programs.evaluate.samples);
  staged_.resize(static_cast<size_t>(samples * sequence()) * 4 * sizeof(int32_t));
}

// Nothing is taken later, in the middle of training.
Status Trainer::prepare() {
  const Programs& p = planned_->programs;
  for (const Program* program : {&p.micro_first, &p.micro_next, &p.micro_short, &p.update, &p.evaluate, &p.prefill, &p.decode})
    if (!program->instructions.empty()) STW_TRY(stream_->prepare(execution_, *program));
  return ok();
}

// The system would promise more memory than it has and end the process later.
Result<std::byte*> Trainer::take_arena(uint64_t bytes, uint64_t wanted) const {
  const uint64_t available = device_.memory_free();
  const bool is_there = device_.has_allocator() || available == 0 || wanted <= available;
  void* memory = is_there ? device_.allocate(bytes, arena_alignment) : nullptr;
  if (!memory)
    return out_of_memory("the arena needs " + std::to_string(bytes) + " bytes" + refusal(is_there, device_.has_allocator(), available), wanted, available);
  if (reinterpret_cast<uintptr_t>(memory) % arena_alignment == 0) return static_cast<std::byte*>(memory);
  device_.release(memory, bytes);
  return Error{Code::bad_argument, "trainer: the host's allocator gave memory that does not lie at a multiple of 256"};
}

Result<std::byte*> Trainer::take_host(uint64_t bytes, uint64_t wanted) const {
  const uint64_t available = device_.host_memory_free();
  const bool by_host = device_.has_allocator() && !device_.is_cuda();
  const bool is_there = by_host || available == 0 || wanted <= available;
  void* memory = is_there ? device_.allocate_host(bytes, arena_alignment) : nullptr;
  if (!memory) {
    Error e = out_of_memory("what is offloaded needs " + std::to_string(bytes) + " bytes of host memory" + refusal(is_there, by_host, available), wanted, available);
    if (device_.is_cuda()) e.code = Code::host_out_of_memory;
    return e;
  }
  if (reinterpret_cast<uintptr_t>(memory) % arena_alignment == 0) return static_cast<std::byte*>(memory);
  device_.release_host(memory, bytes);
  return Error{Code::bad_argument, "trainer: the host's allocator gave memory that does not lie at a multiple of 256"};
}

Status Trainer::allocate() {
  const uint64_t bytes = plan().bytes.arena, host_bytes = plan().bytes.host;
  const bool brings_arena = options_.arena != nullptr;
  if (brings_arena) {
    if (options_.arena_bytes < bytes)
      return out_of_memory("the host's arena has " + std::to_string(options_.arena_bytes) + " bytes, the plan needs " + std::to_string(bytes),
                     bytes, options_.arena_bytes);
    if (reinterpret_cast<uintptr_t>(options_.arena) % arena_alignment != 0)
      return Error{Code::bad_argument, "trainer: the host's arena must lie at a multiple of 256"};
    arena_ = static_cast<std::byte*>(options_.arena);
    arena_bytes_ = options_.arena_bytes;
  }
  // A CPU has one memory for both.
  const bool shared = !device_.is_cuda();
  const uint64_t both = size_add(brings_arena ? 0 : bytes, host_bytes);
  if (!brings_arena) {
    STW_ASSIGN(arena, take_arena(bytes, shared ? both : bytes));
    arena_ = arena;
    arena_bytes_ = bytes;
    owns_arena_ = true;
  }
  if (host_bytes > 0) {
    STW_ASSIGN(host, take_host(host_bytes, shared ? both : host_bytes));
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
  stream_->zero(arena_, plan().bytes.arena);
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
  return stream_->wait();
}

// Source: transformers: the angle is a product in fp32, cosine and sine of it are rounded to fp32.
void Trainer::fill_tables() {
  if (graph().cosine < 0) return;
  std::vector<float> cosine, sine;
  for (int64_t position = 0; position < graph().sequence; ++position) {
    for (float frequency : graph().inverse_frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      cosine.push_back(static_cast<float>(portable_cos(static_cast<double>(angle))));
      sine.push_back(static_cast<float>(portable_sin(static_cast<double>(angle))));
    }
  }
  stream_->upload(address(graph().cosine), cosine.data(), cosine.size() * sizeof(float));
  stream_->upload(address(graph().sine), sine.data(), sine.size() * sizeof(float));
}

// A model's parameters and a graph's are numbered alike: both come from the same builder.
void Trainer::put_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count) {
  const int tensor = model_->parameters()[parameter];
  std::byte* at = address(tensor);
  if (graph().at(tensor).format == Format::f32) {
    stream_->upload(at + first * 4, values, count * 4);
    return;
  }
  const Op* update = update_of(graph(), tensor);   // none: frozen, without a master
  const int master_tensor = update ? update->outputs[1] : -1;
  std::byte* master = master_tensor >= 0 ? address(master_tensor) : nullptr;
  const bool is_short = master && graph().at(master_tensor).format == Format::u8;
  std::vector<uint16_t> half(count);
  if (graph().at(tensor).format == Format::f16) {
    for (uint64_t i = 0; i < count; ++i) half[i] = to_f16(values[i]);
    stream_->upload(at + first * 2, half.data(), count * 2);
    if (master) stream_->upload(master + first * 4, values, count * 4);
    return;
  }
  std::vector<int16_t> remainder(count);
  std::vector<int8_t> short_remainder(count);
  for (uint64_t i = 0; i < count; ++i) {
    const SplitValue split = split_master(is_short ? rounded_to_24_bits(values[i]) : values[i]);
    half[i] = split.half;
    remainder[i] = split.remainder;
    short_remainder[i] = static_cast<int8_t>(split.remainder >> 8);
  }
  stream_->upload(at + first * 2, half.data(), count * 2);
  if (is_short) stream_->upload(master + first, short_remainder.data(), count);
  else if (master) stream_->upload(master + first * 2, remainder.data(), count * 2);
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

Status Trainer::check_free() const {
  if (!computes_) return ok();
  return Error{Code::bad_state, "trainer: it is in the middle of a step, evaluation, generation or calibration, which this would ruin; "
                                "call it when that has returned"};
}

Status Trainer::check_ready() const {
  STW_TRY(check_free());
  if (!broken_) return ok();
  return Error{Code::bad_state, "trainer: a step, restore or calibration failed halfway; only a restore makes it whole again"};
}

Status Trainer::check_cancelled() {
  if (!cancelled_.exchange(false)) return ok();
  return Error{Code::cancelled, "trainer: cancelled; it stands at the last completed step"};
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
    const uint64_t tokens = global_batch() * static_cast<uint64_t>(sequence());
    s.batch_factor = std::ldexp(1.0, -std::bit_width(tokens - 1));
    s.growth_interval = options_.growth_interval;
  }
  if (!is_training) return push_state();   // the plain loss
  s.label_smoothing = options_.label_smoothing;
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
  const Arena& layout = planned_->programs.arena;
  for (const ParameterGradient& g : graph().gradients) {
    if (layout.of_tensor[static_cast<size_t>(g.gradient)] < 0) continue;   // in host memory, or used up
    const bool is_short = graph().at(g.gradient).format == Format::bf16;
    bool finite = true;
    const Status read = read_memory(address(g.gradient), graph().at(g.gradient).bytes(1), [&](std::span<const std::byte> piece) {
      const auto all_finite = [&]<class T>(const T* values, auto is_finite) { return std::all_of(values, values + piece.size() / sizeof(T), is_finite); };
      if (is_short) finite = finite && all_finite(reinterpret_cast<const uint16_t*>(piece.data()), [](uint16_t x) { return (x & 0x7f80) != 0x7f80; });
      else finite = finite && all_finite(reinterpret_cast<const float*>(piece.data()), [](float x) { return std::isfinite(x); });
      return ok();
    });
    if (!read || !finite) return "the gradient of " + graph().at(g.parameter).name + " is not finite";
  }
  return "the norm of the gradients is not finite";
}

Status Trainer::read_memory(std::byte* from, uint64_t bytes, const std::function<Status(std::span<const std::byte>)>& piece) {
  if (const std::byte* there = stream_->on_host(from)) return piece({there, static_cast<size_t>(bytes)});
  constexpr uint64_t at_once = 1 << 20;
  std::vector<std::byte> copy(static_cast<size_t>(std::min(bytes, at_once)));
  for (uint64_t done = 0; done < bytes; done += copy.size()) {
    const uint64_t n = std::min<uint64_t>(copy.size(), bytes - done);
    STW_TRY(stream_->download(copy.data(), from + done, n));
    STW_TRY(piece({copy.data(), static_cast<size_t>(n)}));
  }
  return ok();
}

Status Trainer::load(const Program& program, const SampleSource& source, uint64_t first, uint64_t samples) {
  const uint64_t t = static_cast<uint64_t>(sequence()), part = static_cast<uint64_t>(program.samples) * t * sizeof(int32_t);
  const bool direct = stream_->on_host(arena_) != nullptr;
  const int buffers[] = {program.tokens, program.targets, program.positions, program.weights};
  const auto place = [&](size_t k, uint64_t s) -> void* {
    if (buffers[k] < 0) return nullptr;
    return direct ? static_cast<void*>(input<int32_t>(program, buffers[k], s)) : staged_.data() + k * part + s * t * sizeof(int32_t);
  };
  for (uint64_t s = 0; s < static_cast<uint64_t>(program.samples); ++s) {
    const SampleRows rows{static_cast<int32_t*>(place(0, s)), static_cast<int32_t*>(place(1, s)), static_cast<int32_t*>(place(2, s)),
                          static_cast<float*>(place(3, s))};
    if (rows.positions) std::iota(rows.positions, rows.positions + t, 0);
    if (rows.weights) std::fill_n(rows.weights, t, 1.0f);
    if (first + s < samples) {
      STW_TRY(source(first + s, rows));
    } else {
      std::fill_n(rows.tokens, t, 0);
      std::fill_n(rows.targets, t, kernels::ignored_target);
    }
  }
  for (size_t k = 0; !direct && k < std::size(buffers); ++k)
    if (buffers[k] >= 0) stream_->upload(input<std::byte>(program, buffers[k]), place(k, 0), part);
  return ok();
}

Result<StepResult> Trainer::step(const SampleSource& source, uint64_t samples, double learning_rate) {
  STW_TRY(check_ready());
  const Computing computing(*this);
  const InPhase phase(*this, TrainerPhase::train);
  const double begin = seconds_now();
  const Programs& programs = planned_->programs;
  begin_state(learning_rate);
  const uint64_t m = static_cast<uint64_t>(plan().decisions.micro_batch);
  const bool fused = plan().numerics.fused_update;
  for (uint64_t first = 0; first < global_batch(); first += m) {
    STW_TRY(check_cancelled());
    const bool is_short = global_batch() - first < m;
    const Program& program = first == 0 ? programs.micro_first : is_short ? programs.micro_short : programs.micro_next;
    STW_TRY(load(program, source, first, samples));
    stream_->upload(&execution_.state->first_sample, &first, sizeof first);
    if (fused) as_created_ = false, broken_ = true;   // from here on parameters change; there is no way back
    STW_TRY(stream_->run(execution_, program));
  }
  if (!fused) STW_TRY(check_cancelled());
  if (options_.gradient_hook) {
    const Arena& layout = programs.arena;
    const GradientView view{reinterpret_cast<float*>(arena_ + layout.gradients_begin),
                            (layout.gradients_end - layout.gradients_begin) / sizeof(float), &execution_.state->loss_sum,
                            &execution_.state->target_count, state_.loss_scale * state_.batch_factor, execution_.stream};
    if (!options_.gradient_hook(view)) return Error{Code::callback_failed, "trainer: the gradient hook failed; nothing was updated"};
  }
  as_created_ = false;
  STW_TRY(stream_->run(execution_, programs.update));
  STW_TRY(pull_state());

  StepResult result;
  result.skip = static_cast<kernels::Skip>(state_.skip);
  result.targets = state_.target_count;
  result.loss = state_.loss;
  result.grad_norm = state_.grad_norm;
  result.loss_scale = carried_.loss_scale;
  result.seconds = seconds_now() - begin;
  broken_ = result.skip == kernels::skip_midway;
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
  carry_state();
  const bool skipped = result.skip != kernels::skip_none;
  if (skipped) {
    const std::string why = std::string("step skipped: ") + skip_reasons[result.skip];
    device_.log(2, "trainer", why.c_str());
  }
  std::lock_guard lock(progress_mutex_);
  progress_.step += !skipped;
  progress_.skipped += skipped;
  progress_.skip = result.skip;
  progress_.loss_scale = carried_.loss_scale;
  progress_.batches += 1;
  progress_.tokens += skipped ? 0 : result.targets;
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
  if (dataset.document_end() >= 0 && graph().positions < 0)
    return Error{Code::bad_state, "trainer: the dataset has documents, but the plan has no input \"positions\" to keep them apart"};
  return dataset.check_windows(part, sequence());
}

Status Trainer::run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
                    const std::function<bool(const StepResult&, const Progress&)>& after) {
  STW_TRY(check_free());
  STW_TRY(check_dataset(dataset, Dataset::Part::training));
  const InPhase phase(*this, TrainerPhase::train);
  while (progress_.batches < until) {
    const uint64_t batch = progress_.batches;
    auto source = [&](uint64_t sample, const SampleRows& rows) {
      const uint64_t start = dataset.training_start(data_seed, batch, static_cast<uint32_t>(sample), sequence());
      return dataset.read(Dataset::Part::training, start, sequence(), rows.tokens, rows.targets, rows.positions);
    };
    // By reference: the function object would allocate for a copy.
    STW_ASSIGN(result, step(std::ref(source), global_batch(), schedule.at(progress_.step)));
    if (after && !after(result, progress())) return Error{Code::cancelled, "trainer: stopped by the progress callback"};
  }
  return ok();
}

Result<double> Trainer::evaluate(const Dataset& dataset, uint64_t batches) {
  STW_TRY(check_ready());
  STW_TRY(check_dataset(dataset, Dataset::Part::evaluation));
  const Computing computing(*this);
  const InPhase phase(*this, TrainerPhase::evaluate);
  const Program& program = planned_->programs.evaluate;
  begin_state();
  for (uint64_t batch = 0; batch < batches; ++batch) {
    auto source = [&](uint64_t sample, const SampleRows& rows) {
      const uint64_t start = dataset.evaluation_start(batch, static_cast<uint32_t>(sample), sequence());
      return dataset.read(Dataset::Part::evaluation, start, sequence(), rows.tokens, rows.targets, rows.positions);
    };
    for (uint64_t first = 0; first < global_batch(); first += static_cast<uint64_t>(program.samples)) {
      STW_TRY(check_cancelled());
      STW_TRY(load(program, std::ref(source), first, global_batch()));
      STW_TRY(stream_->run(execution_, program));
    }
  }
  STW_TRY(pull_state());
  const double loss = state_.loss_sum / static_cast<double>(std::max<uint64_t>(state_.target_count, 1));
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
      if (g->parameter == tensor && graph().at(g->gradient).kind == Kind::gradient) found = g->gradient;
  const char* suffix = kind == TensorView::first_moment ? ".first" : kind == TensorView::second_moment ? ".second" : nullptr;
  if (const Op* update = update_of(graph(), tensor); update && suffix)
    for (size_t k = 2; k < update->outputs.size(); ++k)
      if (const int t = update->outputs[k]; t >= 0 && graph().at(t).format == Format::f32 && graph().at(t).name.ends_with(suffix)) found = t;
  if (found < 0) return Error{Code::unsupported, "trainer: " + graph().at(tensor).name + " has no such tensor of plain numbers"};
  return TensorMemory{address(found), graph().at(found).format, graph().at(found).shape, planned_->programs.arena.on_host(found)};
}

}  // namespace stw
