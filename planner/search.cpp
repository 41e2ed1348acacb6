// From a request to a plan: whether it makes sense, which states it takes, and what could be given up where nothing fits.
#include <algorithm>
#include <memory>

#include "planner/plan.h"
#include "planner/space.h"

namespace stw {

namespace {

constexpr int64_t largest_batch = INT32_MAX;   // samples are counted in 32 bits
constexpr int most_threads = 1024;
constexpr uint64_t most_reserved = uint64_t{1} << 56;   // sums of bytes stay far from the ends of 64 bits
constexpr uint64_t longest_step = size_limit / 4;   // picoseconds; sums of times stay below where they saturate

uint64_t copied_bytes(const Graph& graph, const Programs& programs, int64_t steps, bool short_last) {
  auto of = [&](const Program& p) {
    uint64_t sum = 0;
    for (const Instruction& i : p.instructions)
      if (is_transfer(i.kind)) {
        const Op& op = graph.op(i.op);
        sum = size_add(sum, op_row(i.kind).cost(graph, op, {i.samples, i.rows, p.threads, i.elements}).bytes);
      }
    return sum;
  };
  uint64_t sum = size_add(of(programs.micro_first), of(programs.update));
  const int64_t whole = steps - 1 - (short_last ? 1 : 0);
  if (whole > 0) sum = size_add(sum, size_mul(of(programs.micro_next), static_cast<uint64_t>(whole)));
  return short_last ? size_add(sum, of(programs.micro_short)) : sum;
}

void fill_plan(Plan& plan, Space& space, const Candidate& c, uint64_t reserve, uint64_t budget) {
  const Programs programs = space.programs(c.decisions);
  const int64_t batch = plan.request.global_batch;
  plan.numerics = space.numerics();
  plan.decisions = c.decisions;
  plan.accumulation_steps = (batch + c.decisions.micro_batch - 1) / c.decisions.micro_batch;
  plan.last_micro_batch = batch - (plan.accumulation_steps - 1) * c.decisions.micro_batch;
  plan.bytes = account(programs);
  plan.bytes.reserve = reserve;
  plan.bytes.peak = size_add(plan.bytes.arena, reserve);
  plan.bytes.budget = budget;
  plan.layout_bound = programs.bound_bytes;
  plan.copied_bytes = copied_bytes(space.graph(), programs, plan.accumulation_steps, plan.last_micro_batch != c.decisions.micro_batch);
  plan.step_picoseconds = c.picoseconds;
  plan.recompute_picoseconds = space.pricing().recompute(c.decisions, batch);
  plan.bound_picoseconds = c.bound_picoseconds;
  plan.unlimited_picoseconds = space.pricing().fastest(batch, plan.request.micro_batch, plan.request.recompute);
}

// The fastest of the plans with the smallest arena: smallest() asks for bytes alone.
Candidate fastest_of_smallest(Space& space) {
  return *space.fastest(space.arena(space.smallest().decisions));
}

// What could be given up, cheapest first. Each is tried by itself. `base` is the fastest of the smallest plans without any of it.
std::vector<Relaxation> relaxations(const GraphSource& source, const Request& request, const DeviceProfile& device, Space& space, const Candidate& base,
                                    uint64_t arena_budget) {
  std::vector<Relaxation> list;
  const uint64_t bytes = space.arena(space.smallest().decisions);
  auto offer = [&](const std::string& change, const Request& changed, const Numerics& numerics, bool changes_numerics) {
    const bool to_host = changed.host_bytes != request.host_bytes;   // however much of it: then what is enough
    Space other(source, numerics, changed, device, to_host || request.host_bytes == 0 ? Effort::rough : Effort::full);
    if (other.is_empty()) return;
    const uint64_t needs = other.arena(other.smallest().decisions);
    if (needs >= bytes) return;
    const bool fits = needs <= arena_budget;
    const Candidate found = fits ? *other.fastest(arena_budget) : fastest_of_smallest(other);
    const double cost = static_cast<double>(found.picoseconds) / static_cast<double>(base.picoseconds) - 1;
    const Decisions& d = found.decisions;
    const std::string much = to_host ? " " + std::to_string(make_arena(other.graph(), device.alignment, d.offload, d.micro_batch).host_bytes) : "";
    list.push_back({change + much, bytes - (to_host ? other.arena(d) : needs), cost, changes_numerics, fits});
  };
  Request free = request;
  free.micro_batch = 0;
  if (request.micro_batch > 1 && !request.fused_update) offer("micro_batch auto", free, space.numerics(), false);
  free = request;
  free.recompute = Recompute::choose;
  if (request.recompute != Recompute::choose) offer("recompute auto", free, space.numerics(), false);
  Numerics n = space.numerics();
  n.state_bits = 8;
  if (space.numerics().state_bits == 32 && optimizer_row(n.optimizer).has_8bit_states) offer("states 8", request, n, true);
  n = space.numerics();
  n.master = Master::short_remainder;
  if (n.precision == Precision::bf16 && space.numerics().master == Master::exact) offer("master split8", request, n, true);
  for (const Quantize codes : {Quantize::int8, Quantize::nf4}) {
    n = space.numerics();
    const bool is_finer = n.quantize == Quantize::none || (n.quantize == Quantize::int8 && codes == Quantize::nf4);
    n.quantize = codes;
    if (is_finer && space.graph().has_adapters()) offer(std::string("quantize ") + name_of(n.quantize), request, n, true);
  }
  n = space.numerics();
  n.quantize_embeddings = Quantize::int8;
  if (space.numerics().quantize_embeddings == Quantize::none && space.graph().has_adapters()) offer("quantize_embeddings int8", request, n, true);
  n = space.numerics();
  n.attention = Attention::own;
  free = request;
  free.attention = Attention::own;
  if (request.attention == Attention::cudnn) offer("attention own", free, n, true);
  free = request;
  free.host_bytes = size_limit;
  if (!request.fused_update) offer("host_memory", free, space.numerics(), false);
  n = space.numerics();
  n.gradients = Gradients::bf16;
  if (!request.fused_update && n != space.numerics()) offer("gradients bf16", request, n, true);
  free = request;
  free.precision = Precision::bf16;
  n = space.numerics();
  n.precision = Precision::bf16;
  n.kernels = numerics_of(free, n.state_bits).kernels;
  if (space.numerics().precision == Precision::fp32) offer("precision bf16", request, n, true);
  n = space.numerics();
  n.gradients = Gradients::fp32;
  n.fused_update = true;
  free = request;
  free.fused_update = true;
  free.micro_batch = 0;
  // With what it does not go together with, which is given up as well.
  std::string fused = "fused_update";
  if (space.numerics().gradients != Gradients::fp32) fused += ", gradients fp32";
  if (request.micro_batch > 0 && request.micro_batch != request.global_batch) fused += ", micro_batch auto";
  if (!request.fused_update && request.host_bytes == 0 && n.precision != Precision::fp16) offer(fused, free, n, true);
  std::stable_sort(list.begin(), list.end(), [](const Relaxation& a, const Relaxation& b) {
    if (a.changes_numerics != b.changes_numerics) return b.changes_numerics;
    return a.costs_fraction < b.costs_fraction;
  });
  return list;
}

}  // namespace

uint64_t reserve_of(const Request& request, const DeviceProfile& device) {
  return request.reserve_bytes.value_or(device.reserve_bytes);
}

uint64_t budget_of(const Request& request, const DeviceProfile& device) {
  if (request.memory_bytes > 0) return request.memory_bytes;
  return request.device_memory > 0 ? request.device_memory : device.memory_bytes;
}

static bool is_for_cuda(const Request& request) {
  const DeviceProfile* device = request.calibrated ? &*request.calibrated : find_device(request.device);
  return device && device->cuda;
}

static Kernels default_kernels(const Request& request) {
  if (!is_for_cuda(request)) return Kernels::portable;
  if (request.fast) return Kernels::cublaslt;
  return request.precision == Precision::fp32 ? Kernels::portable : Kernels::tensor;
}

Numerics numerics_of(const Request& request, int state_bits) {
  Numerics n;
  n.precision = request.precision;
  n.optimizer = request.optimizer;
  n.state_bits = state_bits;
  n.master = request.master;
  n.gradients = request.gradients;
  n.fused_update = request.fused_update;
  n.groups = request.groups;
  n.inputs = request.inputs;
  n.kernels = request.kernels.value_or(default_kernels(request));
  n.attention = request.attention;
  n.quantize = request.quantize;
  n.quantize_embeddings = request.quantize_embeddings;
  n.exact = !(request.fast && n.kernels == Kernels::cublaslt);
  return n;
}

const DeviceProfile& profile_of(const Request& request) {
  return request.calibrated ? *request.calibrated : *find_device(request.device);
}

Status check(const Request& request) {
  const DeviceProfile* device = find_device(request.device);
  if (!device) {
    std::string names;
    for (const DeviceProfile& p : device_profiles()) names += std::string(names.empty() ? "" : ", ") + p.name;
    return Error{Code::bad_argument, "unknown device '" + request.device + "'; there are " + names};
  }
  if (request.calibrated && request.calibrated->name != request.device)
    return Error{Code::bad_argument, "the profile is of device '" + std::string(request.calibrated->name) +
                                         "', the plan is for '" + request.device + "'"};
  if (request.global_batch < 1 || request.sequence < 1 || (request.threads < 1 && !profile_of(request).cuda))
    return Error{Code::bad_argument, "global batch, sequence and threads must be at least 1"};
  if (request.global_batch > largest_batch)
    return Error{Code::bad_argument, "global batch " + std::to_string(request.global_batch) + ": expected at most " + std::to_string(largest_batch)};
  if (request.threads > most_threads)
    return Error{Code::bad_argument, std::to_string(request.threads) + " threads: expected at most " + std::to_string(most_threads)};
  if (request.reserve_bytes.value_or(0) > most_reserved)
    return Error{Code::bad_argument, "a reserve of " + std::to_string(*request.reserve_bytes) + " bytes: expected at most " + std::to_string(most_reserved)};
  if (request.micro_batch > request.global_batch)
    return Error{Code::bad_argument, "micro-batch " + std::to_string(request.micro_batch) +
                                         " is larger than the global batch " + std::to_string(request.global_batch)};
  if (request.master != Master::exact && request.precision != Precision::bf16)
    return Error{Code::bad_argument, std::string("a master of fewer bits is for bf16; ") + name_of(request.precision) + " keeps its own"};
  if (request.fused_update) {
    const char* const what = "a fused update uses each gradient inside the backward pass: ";
    if (request.precision == Precision::fp16)
      return Error{Code::bad_argument, std::string(what) + "it cannot take back a step that overflows; ask for bf16 instead of fp16"};
    if (request.gradients != Gradients::fp32)
      return Error{Code::bad_argument, std::string(what) + "there are none left to keep in bf16; ask for gradients in fp32"};
    if (request.micro_batch > 0 && request.micro_batch != request.global_batch)
      return Error{Code::bad_argument, std::string(what) + "there is only one micro-step; leave the micro-batch open or make it the global batch " +
                                           std::to_string(request.global_batch)};
    if (request.host_bytes > 0)
      return Error{Code::bad_argument, std::string(what) + "host memory does not go together with it; leave it at 0"};
  }
  const std::string place = std::string(", the plan is for ") + name_of(request.precision) + " on device '" + request.device + "'";
  if (request.kernels == Kernels::tensor && (!is_for_cuda(request) || request.precision == Precision::fp32))
    return Error{Code::bad_argument, "tensor cores are for 16-bit precisions on a GPU" + place};
  if (request.kernels == Kernels::wgmma && (!profile_of(request).has_wgmma || request.precision == Precision::fp32))
    return Error{Code::bad_argument, "products by wgmma are for 16-bit precisions on a GPU of compute capability 9.0 (H100, H200)" + place};
  if (request.kernels == Kernels::cublaslt && !is_for_cuda(request)) return Error{Code::bad_argument, "cuBLASLt is for GPUs" + place};
  if (request.attention == Attention::cudnn) {
    if (!is_for_cuda(request) || request.precision == Precision::fp32)
      return Error{Code::bad_argument, "cuDNN's attention is for 16-bit precisions on a GPU" + place};
    if (request.inputs.positions) return Error{Code::bad_argument, "cuDNN's attention sees whole samples; documents inside of them need our own"};
  }
  if (request.inputs.preference != Preference::none) {
    if (!request.inputs.positions) return Error{Code::bad_argument, "a preference is between documents: it needs the input of positions in them"};
    if (request.sequence < 2) return Error{Code::bad_argument, "a preference is between two documents of a sample: expected a sequence of 2 tokens or more"};
    if (request.inputs.weights) return Error{Code::bad_argument, "a preference weighs tokens by itself: leave out the input of weights"};
  }
  if (request.state_bits == 8 && !optimizer_row(request.optimizer).has_8bit_states)
    return Error{Code::bad_argument, std::string("optimizer ") + name_of(request.optimizer) + " has no 8-bit states; ask for 32 or auto"};
  if (budget_of(request, *device) == 0)
    return Error{Code::bad_argument, "the memory of device '" + request.device + "' is not known: give a budget"};
  return ok();
}

static bool uses_library_attention(const Graph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(), [&](const Op& op) { return graph.is_library_attention(op); });
}

Result<Plan> search(const GraphSource& source, const Request& request) {
  STW_TRY(check(request));
  const DeviceProfile* device = &profile_of(request);
  Plan plan;
  plan.request = request;
  const uint64_t reserve = reserve_of(request, *device), budget = budget_of(request, *device);
  plan.request.memory_bytes = budget;
  if (device->cuda) plan.request.threads = 0;
  if (request.device_memory == 0) plan.request.device_memory = device->memory_bytes;
  const uint64_t arena_budget = budget > reserve ? budget - reserve : 0;

  Space wide(source, numerics_of(request, request.state_bits == 8 ? 8 : 32), plan.request, *device);
  if (request.attention == Attention::cudnn && !uses_library_attention(wide.graph()))
    return Error{Code::unsupported_shape, "cuDNN's attention takes heads whose size is a multiple of 8 up to 128, no dropout, and no sliding window shorter than a sample; this model's needs our own"};
  if (wide.is_empty()) return Error{Code::bad_argument, "the tensors of a micro-step would take more than 2^56 bytes"};
  const uint64_t unlimited = wide.pricing().fastest(request.global_batch, request.micro_batch, request.recompute);
  if (unlimited > longest_step)
    return Error{Code::bad_argument, "a step would take weeks: global batch " + std::to_string(request.global_batch) +
                                         " is too large for this device's cost model"};
  Space* chosen = &wide;
  std::optional<Candidate> found = wide.fastest(arena_budget);
  std::unique_ptr<Space> narrow;
  if (request.state_bits == 0 && optimizer_row(request.optimizer).has_8bit_states) {
    plan.states_reason = "32-bit states fit";
    narrow = std::make_unique<Space>(source, numerics_of(request, 8), plan.request, *device);
    const uint64_t fastest_of_8 = narrow->pricing().fastest(request.global_batch, request.micro_batch, request.recompute);
    if (!found || found->picoseconds > unlimited || found->picoseconds / 10 * 9 > fastest_of_8) {
      std::optional<Candidate> other = narrow->fastest(arena_budget);
      const bool worth = found && other && found->picoseconds / 10 * 9 > other->picoseconds;
      if (other && (!found || worth)) {
        plan.states_reason = !found ? "32-bit states do not fit" : "32-bit states cost more than 10 % of the speed here";
        chosen = narrow.get();
        found = std::move(other);
      } else if (!found) {
        plan.states_reason = "neither 32-bit nor 8-bit states fit";
      } else {
        plan.states_reason = "32-bit states cost less than 10 % of the speed here";
      }
    }
  } else {
    plan.states_reason = request.state_bits == 0 ? "the only ones there are" : "as requested";
  }
  const Graph& graph = chosen->graph();
  plan.architecture = graph.architecture;
  plan.parameters = graph.parameter_count();
  plan.trainable = graph.trainable_count();
  plan.layers = graph.blocks();
  plan.fits = found.has_value();
  Space& smallest_space = narrow ? *narrow : *chosen;
  plan.minimum_bytes = size_add(smallest_space.arena(smallest_space.smallest().decisions), reserve);
  if (!plan.fits) {
    chosen = &smallest_space;
    found = fastest_of_smallest(smallest_space);
    plan.relaxations = relaxations(source, plan.request, *device, smallest_space, *found, arena_budget);
  }
  fill_plan(plan, *chosen, *found, reserve, budget);
  const std::optional<Candidate> next = chosen->fastest(size_add(std::max(arena_budget, plan.bytes.arena), uint64_t{1} << 30));
  plan.next_gib_picoseconds = next ? next->picoseconds : plan.step_picoseconds;
  if (plan.step_picoseconds >= size_limit)
    return Error{Code::bad_argument, "a step would take weeks within this budget: the device's cost model ends there"};
  return plan;
}

}  // namespace stw
