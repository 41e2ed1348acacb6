// Answers a request with a plan: chooses the format of the optimizer's states, finds the fastest candidate,
// and fills in the plan's figures.
#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/contract/cuda_workspace.h"
#include "planner/plan/plan.h"
#include "planner/search/offers.h"
#include "planner/search/relaxations.h"
#include "planner/search/search_space.h"

namespace stw {

namespace {

// Picoseconds. Longer steps are refused, so that sums of times do not saturate.
constexpr uint64_t longest_step = size_limit / 4;

uint64_t copied_bytes(const Graph& graph, const Programs& programs, int64_t steps, bool short_last) {
  auto of = [&](const Program& p) {
    uint64_t sum = 0;
    for (const Instruction& i : p.instructions)
      if (is_transfer(i.kind)) {
        const Op& op = graph.op(i.op);
        sum = size_add(sum, op_row(i.kind).cost(graph, op, extent_of(graph, i, p.threads)).bytes);
      }
    return sum;
  };
  uint64_t sum = 0;
  for (const Program* p :
       {&programs.micro_first, &programs.update, &programs.tables, &programs.table_gradients})
    sum = size_add(sum, of(*p));
  const int64_t whole = steps - 1 - (short_last ? 1 : 0);
  if (whole > 0) sum = size_add(sum, size_mul(of(programs.micro_next), static_cast<uint64_t>(whole)));
  return short_last ? size_add(sum, of(programs.micro_short)) : sum;
}

// Whether a calibration measured the device with the plan's settings.
bool is_measured(const Plan& plan) {
  const DeviceProfile& device = profile_of(plan.request);
  const Calibration& measured = device.calibration;
  return device.is_calibrated() && measured.precision == plan.numerics.precision &&
         (device.cuda ? measured.kernels == plan.numerics.kernels : measured.threads == plan.request.threads);
}

// The time of a step at the ceiling of libraries: the step's own, scaled by the times of its programs.
uint64_t ceiling_picoseconds(const Plan& plan, const Graph& graph, const Pricing& own,
                             const Programs& programs) {
  const DeviceProfile fast = at_ceiling(profile_of(plan.request));
  const Pricing ceiling(graph, fast, plan.request.threads);
  const auto time = [&](const Pricing& pricing) {
    const auto of = [&](const Program& p) {
      return static_cast<double>(pricing.program(p, plan.decisions.offload.overlap));
    };
    const bool has_short = !programs.micro_short.instructions.empty();
    const auto later = static_cast<double>(plan.accumulation_steps - 1 - has_short);
    return of(programs.micro_first) + later * of(programs.micro_next) + of(programs.micro_short) +
           of(programs.tables) + of(programs.table_gradients) + of(programs.update);
  };
  const double share = std::min(1.0, time(ceiling) / time(own));
  return std::max(uint64_t{1}, static_cast<uint64_t>(static_cast<double>(plan.step_picoseconds) * share));
}

void fill_plan(Plan& plan, SearchSpace& all, const Candidate& c, uint64_t reserve, uint64_t budget,
               bool with_range) {
  SearchSpace& space = all.of(c.decisions);
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
  plan.copied_bytes = copied_bytes(space.graph(), programs, plan.accumulation_steps,
                                   plan.last_micro_batch != c.decisions.micro_batch);
  plan.step_picoseconds = c.picoseconds;
  plan.recompute_picoseconds = space.pricing().recompute(c.decisions, batch);
  plan.bound_picoseconds = c.bound_picoseconds;
  plan.unlimited_picoseconds = all.unlimited();
  if (with_range && !is_measured(plan))
    plan.ceiling_picoseconds = ceiling_picoseconds(plan, space.graph(), space.pricing(), programs);
}

void name_model(Plan& plan, const Graph& graph) {
  plan.architecture = graph.architecture;
  plan.parameters = graph.parameter_count();
  plan.trainable = graph.trainable_count();
  plan.layers = graph.blocks();
}

uint64_t host_bytes(SearchSpace& space, const Candidate& c, const DeviceProfile& device) {
  return make_arena(space.of(c.decisions).graph(), device.alignment, c.decisions.offload,
                    c.decisions.micro_batch)
      .host_bytes;
}

// Sets only the figures that need no program.
void fill_figures(Plan& plan, SearchSpace& all, const Candidate& c, uint64_t reserve) {
  plan.decisions = c.decisions;
  plan.bytes.arena = all.arena(c.decisions);
  plan.bytes.reserve = reserve;
  plan.bytes.peak = size_add(plan.bytes.arena, reserve);
  plan.bytes.host = host_bytes(all, c, profile_of(plan.request));
  plan.step_picoseconds = c.picoseconds;
}

// Sets the time of the plan with a GiB more.
void look_beyond(Plan& plan, SearchSpace& space, uint64_t arena_budget) {
  const uint64_t arena = std::max(arena_budget, plan.bytes.arena);
  const std::optional<Candidate> next = space.fastest(size_add(arena, uint64_t{1} << 30));
  if (next) plan.next_gib_picoseconds = next->picoseconds;
}

}  // namespace

static bool uses_library_attention(const Graph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(),
                     [&](const Op& op) { return graph.is_library_attention(op); });
}

static bool has_large_relative_heads(const Graph& graph) {
  return std::any_of(graph.ops.begin(), graph.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::attention && graph.relative.tensor >= 0 &&
           op.attributes.head_dim > kernels::cuda_workspace::most_relative_head;
  });
}

Status check_graph(const Graph& graph, const Request& request, const DeviceProfile& device) {
  if (request.attention == Attention::cudnn && !uses_library_attention(graph))
    return Error{Code::unsupported_shape,
                 "cuDNN's attention takes heads whose size is a multiple of 8 up to 128, no dropout, no "
                 "ALiBi and no sliding window shorter than a sample; the attention of this model needs the "
                 "kernels `own`"};
  if (device.cuda && has_large_relative_heads(graph))
    return Error{Code::unsupported_shape,
                 "the kernels for GPUs take relative positions with heads of at most " +
                     std::to_string(kernels::cuda_workspace::most_relative_head) + " elements"};
  return ok();
}

// Finds the fastest plan with either format of the optimizer's states.
class StatesChoice {
 public:
  // `request`: that of the plan.
  StatesChoice(const GraphSource& source, const Request& request, const DeviceProfile& device,
               const SearchSpace* like)
      : source_(source),
        request_(request),
        device_(device),
        like_(like),
        wide_(source, numerics_of(request, request.state_bits == 8 ? 8 : 32), request, device, Effort::full,
              like) {}

  struct Answer {
    SearchSpace* space;
    std::optional<Candidate> candidate;  // empty: none fits
    const char* reason;                  // for the format
  };
  Answer fastest(uint64_t arena_bytes);
  SearchSpace& wide() { return wide_; }
  SearchSpace& smallest() { return narrow_ ? *narrow_ : wide_; }  // after fastest()
  void limit_host_bytes(uint64_t bytes) {
    wide_.limit_host_bytes(bytes);
    if (narrow_) narrow_->limit_host_bytes(bytes);
  }

 private:
  const GraphSource& source_;
  const Request& request_;
  const DeviceProfile& device_;
  const SearchSpace* like_;
  SearchSpace wide_;
  std::unique_ptr<SearchSpace> narrow_;  // 8-bit states, if the planner may choose them
};

StatesChoice::Answer StatesChoice::fastest(uint64_t arena_bytes) {
  Answer answer{&wide_, wide_.fastest(arena_bytes), "as requested"};
  if (request_.state_bits != 0) return answer;
  answer.reason = "this optimizer has no 8-bit states";
  if (!optimizer_row(request_.optimizer).has_8bit_states) return answer;
  if (!narrow_)
    narrow_ =
        std::make_unique<SearchSpace>(source_, numerics_of(request_, 8), request_, device_, Effort::full,
                                      like_ != nullptr && wide_.shares_segments(*like_) ? like_ : &wide_);
  answer.reason = "32-bit states fit";
  const std::optional<Candidate>& found = answer.candidate;
  const bool is_unlimited = found && found->picoseconds <= wide_.unlimited();
  if (is_unlimited && found->picoseconds / 10 * 9 <= narrow_->unlimited()) return answer;
  const uint64_t to_beat = found ? found->picoseconds / 10 * 9 : UINT64_MAX;
  const bool may_win = !found || narrow_->may_beat(to_beat, arena_bytes);
  std::optional<Candidate> other = may_win ? narrow_->fastest(arena_bytes, to_beat) : std::nullopt;
  if (!found && !other) answer.reason = "neither 32-bit nor 8-bit states fit";
  else if (!found) answer = {narrow_.get(), std::move(other), "32-bit states do not fit"};
  else if (other)
    answer = {narrow_.get(), std::move(other), "32-bit states cost more than 10 % of the speed here"};
  else answer.reason = "32-bit states cost less than 10 % of the speed here";
  return answer;
}

// Relaxations (null: none) and the time with more memory are computed only for the answer that is shown.
// `like`: a search space for the same batch and device that shares what is known (null: none).
static Result<Plan> answer(const GraphSource& source, const Request& request,
                           const Alternatives* alternatives, const SearchSpace* like, Wanted wanted) {
  STW_TRY(check(request));
  const DeviceProfile* device = &profile_of(request);
  Plan plan;
  plan.request = request;
  const uint64_t reserve = reserve_of(request, *device), budget = budget_of(request, *device);
  plan.request.memory_bytes = budget;
  if (device->cuda) plan.request.threads = 0;
  if (request.device_memory == 0) plan.request.device_memory = device->memory_bytes;
  const uint64_t arena_budget = budget > reserve ? budget - reserve : 0;

  StatesChoice choice(source, plan.request, *device, like);
  STW_TRY(check_graph(choice.wide().graph(), request, *device));
  if (choice.wide().is_empty())
    return Error{Code::bad_argument, "the tensors of a micro-step would take more than 2^56 bytes"};
  if (choice.wide().unlimited() > longest_step)
    return Error{Code::bad_argument, "a step would take weeks: global batch " +
                                         std::to_string(request.global_batch) +
                                         " is too large for this device's cost model"};
  StatesChoice::Answer fastest = choice.fastest(arena_budget);
  const uint64_t host =
      wanted.tight_host && fastest.candidate ? host_bytes(*fastest.space, *fastest.candidate, *device) : 0;
  if (host > 0) {
    plan.request.host_bytes = round_up(host, mebibyte);
    choice.limit_host_bytes(plan.request.host_bytes);
    fastest = choice.fastest(arena_budget);
  }
  SearchSpace* chosen = fastest.space;
  std::optional<Candidate> found = std::move(fastest.candidate);
  plan.states_reason = fastest.reason;
  name_model(plan, chosen->graph());
  plan.fits = found.has_value();
  SearchSpace& smallest_space = choice.smallest();
  if (wanted.minimum == Wanted::Minimum::exact || !plan.fits)
    plan.minimum_bytes = size_add(smallest_space.arena(smallest_space.smallest().decisions), reserve);
  else if (wanted.minimum == Wanted::Minimum::rough)
    plan.minimum_bytes = size_add(smallest_space.arena_with_fewest_live_bytes(), reserve);
  if (!plan.fits) {
    chosen = &smallest_space;
    found = fastest_of_smallest(smallest_space);
    if (alternatives && request.keep != keep_everything) {
      Advice advice = relaxations(source, plan.request, *alternatives, smallest_space, arena_budget);
      plan.relaxations = std::move(advice.relaxations);
      plan.shortage = std::move(advice.shortage);
    }
  }
  const uint64_t most = plan.fits ? arena_budget : chosen->arena(found->decisions);
  // Plans of advice are refined, too: a line has to name the figures of the plan that it leads to.
  found = chosen->refined(std::move(*found), most);
  // A plan that is not shown needs no bound.
  if (alternatives) found = chosen->with_bound(std::move(*found), most);
  if (wanted.programs) fill_plan(plan, *chosen, *found, reserve, budget, alternatives != nullptr);
  else fill_figures(plan, *chosen, *found, reserve);
  plan.next_gib_picoseconds = plan.step_picoseconds;
  if (alternatives) look_beyond(plan, *chosen, arena_budget);
  if (plan.step_picoseconds >= size_limit)
    return Error{Code::bad_argument,
                 "a step would take weeks within this budget, more than the cost model can count; set a "
                 "larger budget"};
  return plan;
}

Result<Plan> search(const GraphSource& source, const Request& request, const Alternatives& alternatives) {
  return answer(source, request, &alternatives, nullptr, {});
}

Result<Plan> search_alone(const GraphSource& source, const Request& request, const SearchSpace& like,
                          Wanted wanted) {
  return answer(source, request, nullptr, &like, wanted);
}

}  // namespace stw
