#include "src/api/boundary.h"

#include <algorithm>

#include "planner/device/profile_file.h"
#include "planner/picture/picture.h"
#include "planner/plan/plan_file.h"
#include "planner/search/frontier.h"
#include "src/device/machine.h"

using namespace stw;

namespace {

static_assert(STW_OPTIMIZER_SGD == static_cast<int>(Optimizer::sgd) &&
              STW_OPTIMIZER_LION == static_cast<int>(Optimizer::lion) &&
              STW_OPTIMIZER_MUON == static_cast<int>(Optimizer::muon) &&
              STW_OPTIMIZER_ADAFACTOR == static_cast<int>(Optimizer::adafactor));
static_assert(STW_PRECISION_FP32 - 1 == static_cast<int>(Precision::fp32) &&
              STW_PRECISION_BF16 - 1 == static_cast<int>(Precision::bf16) &&
              STW_PRECISION_FP16 - 1 == static_cast<int>(Precision::fp16));
static_assert(STW_QUANTIZE_NONE - 1 == static_cast<int>(Quantize::none) &&
              STW_QUANTIZE_NF4 - 1 == static_cast<int>(Quantize::nf4) &&
              STW_QUANTIZE_INT8 - 1 == static_cast<int>(Quantize::int8));
static_assert(STW_KERNELS_PORTABLE - 1 == static_cast<int>(Kernels::portable) &&
              STW_KERNELS_CUBLASLT_WGMMA - 1 == static_cast<int>(Kernels::cublaslt_wgmma) &&
              STW_RECOMPUTE_NONE == static_cast<int>(Recompute::none) &&
              STW_RECOMPUTE_FULL == static_cast<int>(Recompute::full));
static_assert(STW_KEEP_NUMERICS == keep_numerics && STW_KEEP_MODEL == keep_model &&
              STW_KEEP_ADAPTERS == keep_adapters && STW_KEEP_SEQUENCE == keep_sequence &&
              STW_KEEP_OPTIMIZER == keep_optimizer && STW_KEEP_CLIPPING == keep_clipping &&
              STW_KEEP_DIVISION == keep_division && STW_KEEP_PRECISION == keep_precision &&
              STW_KEEP_ALL == keep_everything);

Status read_groups(const stw_plan_options& o, std::vector<ParameterGroup>& groups) {
  if (o.group_count > 0 && !o.groups) return Error{Code::bad_argument, "plan: groups is NULL"};
  if (o.group_count == 0) return ok();
  const size_t stride = o.groups->struct_size;
  if (stride % alignof(stw_parameter_group) != 0)
    return Error{Code::bad_struct_size, "plan: groups[0].struct_size is no multiple of 8"};
  for (size_t i = 0; i < o.group_count; ++i) {
    const auto* at =
        reinterpret_cast<const stw_parameter_group*>(reinterpret_cast<const char*>(o.groups) + i * stride);
    if (at->struct_size != stride)
      return Error{Code::bad_struct_size, "plan: groups of different struct_size"};
    stw_parameter_group g;
    STW_TRY(api::read_options(at, g, "parameter group", false));
    STW_TRY(api::check_mask(
        g.set_mask, STW_SET_GROUP_FROZEN | STW_SET_GROUP_RATE | STW_SET_GROUP_DECAY | STW_SET_GROUP_STATES,
        "parameter group"));
    if (!g.pattern) return Error{Code::bad_argument, "plan: the pattern of a group is NULL"};
    if (g.frozen > 1)
      return Error{Code::bad_argument, "group \"" + std::string(g.pattern) + "\": frozen must be 0 or 1"};
    ParameterGroup group;
    group.pattern = g.pattern;
    if (const auto frozen = api::value_if_set(g.set_mask, STW_SET_GROUP_FROZEN, g.frozen))
      group.frozen = *frozen != 0;
    group.rate = api::value_if_set(g.set_mask, STW_SET_GROUP_RATE, g.learning_rate);
    group.decay = api::value_if_set(g.set_mask, STW_SET_GROUP_DECAY, g.weight_decay);
    if (const auto bits = api::value_if_set(g.set_mask, STW_SET_GROUP_STATES, g.state_bits))
      group.state_bits = static_cast<int>(*bits);
    groups.push_back(std::move(group));
  }
  return ok();
}

// Converts a number of the header to the planner's enum with the same order and `count` values. Errors:
// `code`.
template <class Enum, class Out>
Status choose(Out& out, uint32_t value, int count, const char* name, Code code = Code::bad_argument) {
  if (value >= static_cast<uint32_t>(count)) return Error{code, std::string("plan: unknown ") + name};
  out = static_cast<Enum>(value);
  return ok();
}

// The same where the header counts from 1: 0 keeps the current value.
template <class Enum, class Out>
Status choose_unless_0(Out& out, uint32_t value, int count, const char* name,
                       Code code = Code::bad_argument) {
  return value == 0 ? ok() : choose<Enum>(out, value - 1, count, name, code);
}

// The device, and the memory that may be used.
Status read_device(const stw_plan_options& o, Request& r) {
  if (o.profile) {
    STW_ASSIGN(profile, profile_from_json({o.profile, o.profile_size}));
    r.calibrated = profile;
  }
  r.device = o.device ? o.device : r.calibrated ? r.calibrated->name : "cpu";
  r.device_memory = o.device_memory;
  r.memory_bytes = o.memory_bytes;
  // If neither a budget nor a profile gives the CPU's memory, use this machine's.
  const DeviceProfile* const profile = find_device(r.device);
  if (r.memory_bytes == 0 && r.device_memory == 0 && profile && profile->memory_bytes == 0)
    r.device_memory = system_memory().available;
  r.device_probed = r.device_memory > 0;
  r.reserve_bytes = api::value_if_set(o.set_mask, STW_SET_RESERVE, o.reserve_bytes);
  r.host_bytes = std::min(o.host_bytes, size_limit);
  return ok();
}

// The step, and the threads that compute it. The default sequence depends on the model.
Status read_step(const stw_plan_options& o, const Model& model, Request& r) {
  if (o.global_batch == 0) return Error{Code::bad_argument, "plan: global_batch is required"};
  if (o.global_batch > INT32_MAX)
    return Error{Code::bad_argument, "plan: global_batch is " + std::to_string(o.global_batch) +
                                         ", expected at most " + std::to_string(INT32_MAX)};
  r.global_batch = static_cast<int64_t>(o.global_batch);
  if (o.sequence > (uint64_t{1} << 31)) return Error{Code::bad_argument, "plan: sequence is too large"};
  r.sequence =
      o.sequence ? static_cast<int64_t>(o.sequence) : std::min<int64_t>(model.config().positions, 1024);
  if (o.threads > static_cast<uint32_t>(ThreadPool::max_threads))
    return Error{Code::bad_argument, "plan: expected at most 1024 threads"};
  r.threads = o.threads ? static_cast<int>(o.threads) : processor_count();
  return ok();
}

Status read_inputs(const stw_plan_options& o, GraphInputs& inputs) {
  if (o.inputs & ~uint32_t{STW_INPUT_POSITIONS | STW_INPUT_WEIGHTS})
    return Error{Code::bad_argument, "plan: unknown inputs"};
  STW_TRY(choose<Preference>(inputs.preference, o.preference, preference_count, "preference"));
  inputs.positions = (o.inputs & STW_INPUT_POSITIONS) != 0 || inputs.preference != Preference::none;
  inputs.weights = (o.inputs & STW_INPUT_WEIGHTS) != 0;
  if (o.texts > uint64_t{INT32_MAX})
    return Error{Code::bad_argument, "plan: texts is " + std::to_string(o.texts) + ", expected at most " +
                                         std::to_string(INT32_MAX)};
  inputs.texts = static_cast<int64_t>(o.texts);
  return ok();
}

// Quantization of the base weights of adapters. By default codes in a file stay codes.
Status read_quantize(const stw_plan_options& o, const Model& model, Request& r) {
  if (model.has_codes() && model.config().adapters.any()) r.quantize = Quantize::nf4;
  STW_TRY(choose_unless_0<Quantize>(r.quantize, o.quantize, quantize_count, "quantize"));
  if (o.quantize_embeddings == STW_QUANTIZE_NF4 || o.quantize_embeddings > STW_QUANTIZE_INT8)
    return Error{Code::bad_argument, "plan: embeddings are quantized to int8 or not at all"};
  r.quantize_embeddings = o.quantize_embeddings == STW_QUANTIZE_INT8 ? Quantize::int8 : Quantize::none;
  return ok();
}

// Translates the options into the planner's request.
Result<Request> request_of(const stw_plan_options& o, const Model& model) {
  Request r;
  STW_TRY(read_device(o, r));
  STW_TRY(read_step(o, model, r));
  r.precision = r.device == "cpu" ? Precision::fp32 : Precision::bf16;
  STW_TRY(
      choose_unless_0<Precision>(r.precision, o.precision, precision_count, "precision", Code::unsupported));
  STW_TRY(choose<Optimizer>(r.optimizer, o.optimizer, optimizer_count, "optimizer", Code::unsupported));
  STW_TRY(choose<Master>(r.master, o.master, master_count, "master"));
  STW_TRY(read_groups(o, r.groups));
  STW_TRY(read_inputs(o, r.inputs));
  if (o.state_bits != STW_STATES_AUTO && o.state_bits != STW_STATES_32 && o.state_bits != STW_STATES_8)
    return Error{Code::bad_argument, "plan: state_bits must be 0, 8 or 32"};
  r.state_bits = static_cast<int>(o.state_bits);
  r.micro_batch = o.micro_batch;
  STW_TRY(choose<Recompute>(r.recompute, o.recompute, STW_RECOMPUTE_FULL + 1, "recompute policy"));
  STW_TRY(choose_unless_0<Kernels>(r.kernels, o.kernels, kernels_count, "kernels"));
  STW_TRY(choose<Attention>(r.attention, o.attention, attention_count, "attention"));
  STW_TRY(read_quantize(o, model, r));
  STW_TRY(choose<Gradients>(r.gradients, o.gradients, gradients_count, "gradients"));
  if (o.fused_update > 1) return Error{Code::bad_argument, "plan: fused_update must be 0 or 1"};
  r.fused_update = o.fused_update != 0;
  STW_TRY(choose<bool>(r.fast, o.mode, STW_MODE_FAST + 1, "mode"));
  if (o.keep & ~uint32_t{STW_KEEP_ALL}) return Error{Code::bad_argument, "plan: unknown bits in keep"};
  if (o.gradient_hook > 1) return Error{Code::bad_argument, "plan: gradient_hook must be 0 or 1"};
  r.gradient_hook = o.gradient_hook != 0;
  r.keep = o.keep;
  return r;
}

LongCall plan_call(stw_watch* watch) {
  return LongCall({Work::plan, WorkUnit::none, 0, 0, 0}, "plan: cancelled", api::watch_of(watch));
}

std::vector<ParetoPoint> pareto_points_of(const Planned& planned, int budgets) {
  const Graph& graph = planned.with_table_gradient ? *planned.with_table_gradient : planned.graph;
  return frontier([&](const Numerics&) { return graph; }, planned.plan, budgets);
}

// Points for the HTML picture's chart of speed against memory.
std::vector<FrontierPoint> frontier_points(const Planned& planned) {
  const double tokens = static_cast<double>(planned.plan.request.global_batch) *
                        static_cast<double>(planned.plan.request.sequence);
  std::vector<FrontierPoint> points;
  const std::vector<ParetoPoint> pareto = pareto_points_of(planned, 40);
  for (const ParetoPoint& p : pareto) {
    // The chart ends where less than a thousandth is left to gain, but not before the plan itself.
    const bool flat =
        !points.empty() && points.back().peak_bytes >= planned.plan.bytes.peak &&
        points.back().tokens_per_second * static_cast<double>(pareto.back().step_picoseconds) * 1e-12 >
            0.999 * tokens;
    if (flat) break;
    points.push_back({p.peak_bytes, tokens / (static_cast<double>(p.step_picoseconds) * 1e-12),
                      "micro-batch " + std::to_string(p.decisions.micro_batch) + ", " +
                          std::to_string(p.decisions.loss_chunks) +
                          (p.decisions.loss_chunks == 1 ? " loss chunk" : " loss chunks"),
                      p.is_knee});
  }
  return points;
}

}  // namespace

extern "C" {

stw_status stw_plan_create(stw_plan** out, const stw_model* model, const stw_plan_options* options,
                           stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (out) *out = nullptr;
    if (!out || !model) return api::fail(error, Code::bad_argument, "out or model is NULL");
    stw_plan_options o;
    STW_API_TRY(api::read_options(options, o, "plan options", false));
    STW_API_TRY(api::check_mask(o.set_mask, STW_SET_RESERVE, "plan options"));
    auto request = request_of(o, *model->model);
    STW_API_TRY(request);
    const LongCall call = plan_call(o.watch);
    auto planned = Planned::make(*model->model, *request);
    STW_API_TRY(planned);
    const Plan& plan = (*planned)->plan;
    if (plan.fits) {
      *out = new stw_plan{std::move(*planned)};
      return STW_OK;
    }
    const Error e = api::over_budget(plan);
    *out = new stw_plan{std::move(*planned)};
    return api::fail(error, e);
  });
}

void stw_plan_destroy(stw_plan* plan) STW_NOEXCEPT {
  const api::Entry entry;
  delete plan;
}

stw_status stw_plan_query(const stw_plan* plan, stw_plan_info* out) STW_NOEXCEPT {
  return api::guard(nullptr, [&]() -> stw_status {
    if (!plan || !out) return STW_BAD_ARGUMENT;
    const Plan& p = plan->planned->plan;
    stw_plan_info info{};
    info.fits = p.fits;
    info.micro_batch = static_cast<uint64_t>(p.decisions.micro_batch);
    info.accumulation_steps = static_cast<uint64_t>(p.accumulation_steps);
    info.last_micro_batch = static_cast<uint64_t>(p.last_micro_batch);
    info.loss_chunks = static_cast<uint64_t>(p.decisions.loss_chunks);
    info.global_batch = static_cast<uint64_t>(p.request.global_batch);
    info.sequence = static_cast<uint64_t>(p.request.sequence);
    info.texts = static_cast<uint64_t>(p.request.inputs.texts);
    uint64_t* const classes[class_count] = {
        &info.parameters, &info.gradients, &info.optimizer, &info.saved_activations,
        &info.transient,  &info.workspace, &info.inputs};
    for (int c = 0; c < class_count; ++c) *classes[c] = p.bytes.of[c];
    info.padding = p.bytes.padding;
    info.arena = p.bytes.arena;
    info.reserve = p.bytes.reserve;
    info.peak = p.bytes.peak;
    info.budget = p.bytes.budget;
    info.host = p.bytes.host;
    info.minimum_bytes = p.minimum_bytes;
    info.state_bits = static_cast<uint32_t>(p.numerics.state_bits);
    info.precision = api::precision_of(p.numerics.precision);
    const double step = static_cast<double>(p.step_picoseconds) * 1e-12;
    info.step_seconds = step;
    info.tokens_per_second =
        static_cast<double>(p.request.global_batch) * static_cast<double>(p.request.sequence) / step;
    info.recompute_fraction =
        static_cast<double>(p.recompute_picoseconds) / static_cast<double>(p.step_picoseconds);
    api::copy_text(info.fingerprint, plan_fingerprint(plan->planned->json));
    info.proven = p.fits && p.step_picoseconds == p.bound_picoseconds;
    info.bound_seconds = static_cast<double>(p.bound_picoseconds) * 1e-12;
    info.unlimited_seconds = static_cast<double>(p.unlimited_picoseconds) * 1e-12;
    info.copied_bytes = p.copied_bytes;
    info.next_gib_seconds = static_cast<double>(p.next_gib_picoseconds) * 1e-12;
    for (const TiledBlocks& run : tiled_blocks(plan->planned->graph, p.decisions)) {
      const uint64_t rows = static_cast<uint64_t>(run.rows);
      info.tiled_blocks += static_cast<uint64_t>(run.last - run.first + 1);
      info.tile_rows = info.tile_rows == 0 ? rows : std::min(info.tile_rows, rows);
    }
    return api::write_info(info, out);
  });
}

const char* stw_plan_json(const stw_plan* plan) STW_NOEXCEPT {
  return plan ? plan->planned->json.c_str() : nullptr;
}
const char* stw_plan_report(const stw_plan* plan) STW_NOEXCEPT {
  return plan ? plan->planned->report.c_str() : nullptr;
}

stw_status stw_plan_load(stw_plan** out, const stw_model* model, const char* json, size_t json_size,
                         stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (out) *out = nullptr;
    if (!out || !model || !json) return api::fail(error, Code::bad_argument, "out, model or json is NULL");
    auto planned = Planned::load(*model->model, {json, json_size});
    STW_API_TRY(planned);
    *out = new stw_plan{std::move(*planned)};
    return STW_OK;
  });
}

stw_status stw_plan_verify(const stw_plan* plan, stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!plan) return api::fail(error, Code::bad_argument, "plan is NULL");
    STW_API_TRY(plan->planned->verify());
    return STW_OK;
  });
}

stw_status stw_plan_relaxation_at(const stw_plan* plan, size_t index, stw_relaxation_info* out) STW_NOEXCEPT {
  if (!plan || !out || index >= plan->planned->plan.relaxations.size()) return STW_BAD_ARGUMENT;
  const Relaxation& r = plan->planned->plan.relaxations[index];
  stw_relaxation_info info{};
  info.changes_numerics = r.changes_numerics;
  info.saves_bytes = r.saves_bytes;
  info.costs_fraction = r.costs_fraction;
  info.fits = r.fits ? 1 : 0;
  api::copy_text(info.change, r.change);
  api::copy_text(info.flags, r.flags);
  api::copy_text(info.effect, r.effect);
  info.tokens_per_second = r.tokens_per_second;
  info.peak = r.peak_bytes;
  info.host = r.host_bytes;
  info.least_host = r.least_host_bytes;
  return api::write_info(info, out);
}

stw_status stw_plan_offload_at(const stw_plan* plan, size_t index, stw_offload_info* out) STW_NOEXCEPT {
  return api::guard(nullptr, [&]() -> stw_status {
    if (!plan || !out) return STW_BAD_ARGUMENT;
    const Planned& p = *plan->planned;
    const std::vector<OffloadedTensors> list = offloaded_tensors(p.graph, p.plan.decisions);
    if (index >= list.size()) return STW_BAD_ARGUMENT;
    const OffloadedTensors& o = list[index];
    stw_offload_info info{};
    info.outside_blocks = o.others;
    info.blocks = static_cast<uint32_t>(o.last + 1);
    info.bytes = o.bytes;
    info.tensors = offloaded_names[static_cast<int>(o.what)];
    return api::write_info(info, out);
  });
}

stw_status stw_plan_frontier(const stw_plan* plan, stw_frontier_point* out, size_t capacity, size_t* count,
                             stw_error* error) STW_NOEXCEPT {
  return stw_plan_frontier_watched(plan, out, capacity, count, nullptr, error);
}

stw_status stw_plan_frontier_watched(const stw_plan* plan, stw_frontier_point* out, size_t capacity,
                                     size_t* count, stw_watch* watch, stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!plan || !count || (capacity > 0 && !out))
      return api::fail(error, Code::bad_argument, "plan, out or count is NULL");
    if (capacity == 0) {
      *count = 0;
      return STW_OK;
    }
    const uint32_t size = out->struct_size;
    if (size < sizeof(uint32_t) || size % alignof(stw_frontier_point) != 0)
      return api::fail(error, Code::bad_struct_size, "out[0].struct_size is too small, or no multiple of 8");
    const Plan& p = plan->planned->plan;
    const LongCall call = plan_call(watch);
    const std::vector<ParetoPoint> pareto =
        pareto_points_of(*plan->planned, static_cast<int>(std::clamp<size_t>(capacity, 2, 1000)));
    const double tokens =
        static_cast<double>(p.request.global_batch) * static_cast<double>(p.request.sequence);
    *count = 0;
    for (const ParetoPoint& s : pareto) {
      if (*count == capacity) break;
      stw_frontier_point point{};
      point.is_knee = s.is_knee;
      point.peak = s.peak_bytes;
      point.micro_batch = static_cast<uint64_t>(s.decisions.micro_batch);
      point.loss_chunks = static_cast<uint64_t>(s.decisions.loss_chunks);
      point.step_seconds = static_cast<double>(s.step_picoseconds) * 1e-12;
      point.tokens_per_second = tokens / point.step_seconds;
      auto* at = reinterpret_cast<stw_frontier_point*>(reinterpret_cast<char*>(out) + *count * size);
      std::memcpy(at, &size, sizeof size);
      api::write_info(point, at);
      ++*count;
    }
    return STW_OK;
  });
}

stw_status stw_plan_longest_sequence(const stw_model* model, const stw_plan_options* options,
                                     uint64_t* sequence, stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!model || !sequence) return api::fail(error, Code::bad_argument, "model or sequence is NULL");
    stw_plan_options o;
    STW_API_TRY(api::read_options(options, o, "plan options", false));
    STW_API_TRY(api::check_mask(o.set_mask, STW_SET_RESERVE, "plan options"));
    o.sequence = 1;
    auto request = request_of(o, *model->model);
    STW_API_TRY(request);
    const LongCall call = plan_call(o.watch);
    const ModelConfig& config = model->model->config();
    STW_API_TRY(check_numerics(config, numerics_of(*request, 32)));
    auto fits = [&](int64_t length) -> Result<bool> {
      request->sequence = length;
      return anything_fits([&](const Numerics& n) { return build_model(config, length, n); }, *request);
    };
    int64_t low = 0, high = longest_text(config);  // low fits, or is 0
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      auto answer = fits(middle);
      STW_API_TRY(answer);
      if (*answer) low = middle;
      else high = middle - 1;
    }
    if (low == 0) {
      request->sequence = 1;
      auto least = Planned::make(*model->model, *request);
      STW_API_TRY(least);
      Error e = api::over_budget((*least)->plan);
      e.message = "does not fit: not even a sequence of one token, for which the smallest budget is " +
                  std::to_string(e.bytes_needed);
      const std::vector<Relaxation>& helps = (*least)->plan.relaxations;
      if (!helps.empty() && helps[0].fits) e.message += "; it fits with " + helps[0].change;
      return api::fail(error, e);
    }
    *sequence = static_cast<uint64_t>(low);
    return STW_OK;
  });
}

stw_status stw_plan_picture(const stw_plan* plan, uint32_t kind, char* out, size_t capacity, size_t* needed,
                            stw_error* error) STW_NOEXCEPT {
  return stw_plan_picture_watched(plan, kind, out, capacity, needed, nullptr, error);
}

stw_status stw_plan_picture_watched(const stw_plan* plan, uint32_t kind, char* out, size_t capacity,
                                    size_t* needed, stw_watch* watch, stw_error* error) STW_NOEXCEPT {
  return api::guard(error, [&]() -> stw_status {
    if (!plan) return api::fail(error, Code::bad_argument, "plan is NULL");
    if (!out && capacity > 0)
      return api::fail(error, Code::bad_argument, "out is NULL, but capacity is not 0");
    const Planned& p = *plan->planned;
    const LongCall call = plan_call(watch);
    check_in();  // frontier_points() may be cancelled; this makes the other kinds cancellable too
    std::string text;
    switch (kind) {
      case STW_PICTURE_SVG: text = picture_svg(p.graph, p.plan, p.programs); break;
      case STW_PICTURE_HTML: text = picture_html(p.graph, p.plan, p.programs, frontier_points(p)); break;
      case STW_PICTURE_CSV: text = picture_csv(p.graph, p.programs); break;
      default: return api::fail(error, Code::bad_argument, "plan: unknown kind of picture");
    }
    if (needed) *needed = text.size() + 1;
    if (!out) return STW_OK;
    if (capacity <= text.size())
      return api::fail(
          error, Error{Code::bad_argument, "plan: the picture takes " + std::to_string(text.size() + 1) +
                                               " bytes, the capacity is " + std::to_string(capacity)});
    std::memcpy(out, text.c_str(), text.size() + 1);
    return STW_OK;
  });
}

size_t stw_plan_buffer_count(const stw_plan* plan) STW_NOEXCEPT {
  if (!plan) return 0;
  return plan->planned->programs.arena.persistent.size() + plan->planned->programs.micro_next.buffers.size();
}

stw_status stw_plan_buffer_at(const stw_plan* plan, size_t index, stw_buffer_info* out) STW_NOEXCEPT {
  if (!plan || !out || index >= stw_plan_buffer_count(plan)) return STW_BAD_ARGUMENT;
  const Planned& p = *plan->planned;
  const std::vector<Buffer>& persistent = p.programs.arena.persistent;
  const bool lasts = index < persistent.size();
  const Buffer& b = lasts ? persistent[index] : p.programs.micro_next.buffers[index - persistent.size()];
  stw_buffer_info info{};
  info.persistent = lasts;
  info.name = b.tensor < 0 ? "workspace" : p.graph.at(b.tensor).name.c_str();
  info.owner = class_names[static_cast<size_t>(b.owner)];
  info.offset = b.offset;
  info.bytes = b.bytes;
  info.first = static_cast<uint32_t>(b.first);
  info.last = static_cast<uint32_t>(b.last);
  return api::write_info(info, out);
}

}  // extern "C"
