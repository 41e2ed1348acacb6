// Search of a plan, in two steps: prices of all candidates in closed form, then exact programs for the fastest first.
//
// A candidate is a micro-batch, a number of loss chunks and a save-set per block. Blocks of a stack are alike, so their
// save-sets come from one ladder: the lower convex hull of (bytes kept, seconds of recompute) over all save-sets of one
// block. Two neighbouring rungs share the stack; the blocks that keep less come first, because they run backward last,
// when what the others kept is gone.
//
// The candidates do not depend on the budget, and the answer is the fastest one whose peak fits, ties to the smaller
// peak. So a tighter budget never raises the peak and a looser one never slows the plan.
#include <algorithm>
#include <map>
#include <memory>

#include "planner/plan.h"
#include "planner/pricing.h"

namespace stw {

namespace {

constexpr int64_t largest_batch = INT32_MAX;   // samples are counted in 32 bits
constexpr int largest_threads = 1024;

struct Candidate {
  Decisions decisions;
  uint64_t picoseconds = 0;   // of a step
  uint64_t least_bytes = 0;   // arena bytes that it certainly needs
};

std::vector<int64_t> micro_batches(const Request& request) {
  const int64_t batch = request.global_batch;
  if (request.micro_batch > 0) return {request.micro_batch};
  std::vector<int64_t> list;
  for (int64_t steps = 1; steps <= batch; steps += steps < 16 ? 1 : steps / 8) list.push_back((batch + steps - 1) / steps);
  for (int64_t m = 1; m <= std::min<int64_t>(batch, 16); ++m) list.push_back(m);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

// All candidates of one graph, fastest first.
std::vector<Candidate> candidates(const Graph& graph, const Pricing& pricing, const Request& request) {
  std::vector<Candidate> list;
  const std::vector<Rung> ladder = pricing.ladder(request.recompute);
  const int64_t blocks = graph.blocks();
  for (int64_t m : micro_batches(request)) {
    for (int64_t chunks = 1; chunks <= 64; chunks *= 2) {
      if (chunks > 1 && chunk_rows(m * graph.sequence, chunks) == chunk_rows(m * graph.sequence, chunks / 2)) break;
      for (size_t rung = 0; rung < ladder.size(); ++rung) {
        const bool last = rung + 1 == ladder.size();
        const int64_t shares = last || blocks < 2 ? 1 : std::min<int64_t>(blocks, 8);
        for (int64_t share = 0; share < shares; ++share) {
          const int64_t lean = blocks * share / shares;  // blocks on the next rung
          Candidate c;
          c.decisions.micro_batch = m;
          c.decisions.loss_chunks = chunks;
          for (const Segment& s : graph.segments) {
            const bool leaner = s.kind == SegmentKind::block && s.block < lean;
            c.decisions.saved.push_back(s.kind != SegmentKind::block ? ~0u : ladder[leaner ? rung + 1 : rung].saved);
          }
          c.picoseconds = pricing.step(c.decisions, request.global_batch);
          c.least_bytes = pricing.least_bytes(c.decisions);
          list.push_back(std::move(c));
        }
      }
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Candidate& a, const Candidate& b) {
    return a.picoseconds != b.picoseconds ? a.picoseconds < b.picoseconds : a.least_bytes < b.least_bytes;
  });
  return list;
}

// One numerics: its graph, prices, candidates, and the exact arenas that were computed so far.
class Space {
 public:
  Space(const GraphSource& source, const Numerics& numerics, const Request& request, const DeviceProfile& device)
      : numerics_(numerics), request_(request), device_(device), graph_(source(numerics)),
        pricing_(graph_, device, request.threads), candidates_(candidates(graph_, pricing_, request)) {}

  // Index of the fastest candidate whose arena fits, or -1.
  int fastest(uint64_t arena_budget) {
    int best = -1;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (best >= 0 && candidates_[i].picoseconds > candidates_[static_cast<size_t>(best)].picoseconds) break;
      if (candidates_[i].least_bytes > arena_budget) continue;
      if (arena(i) > arena_budget) continue;
      if (best < 0 || arena(i) < arena(static_cast<size_t>(best))) best = static_cast<int>(i);
    }
    return best;
  }

  // The candidate with the smallest arena.
  int smallest() {
    std::vector<int> order(candidates_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return candidates_[static_cast<size_t>(a)].least_bytes < candidates_[static_cast<size_t>(b)].least_bytes;
    });
    int best = -1;
    for (int i : order) {
      if (best >= 0 && candidates_[static_cast<size_t>(i)].least_bytes >= arena(static_cast<size_t>(best))) break;
      if (best < 0 || arena(static_cast<size_t>(i)) < arena(static_cast<size_t>(best))) best = i;
    }
    return best;
  }

  uint64_t arena(size_t i) {
    auto [entry, is_new] = arenas_.try_emplace(i, 0);
    if (is_new) entry->second = programs(i).arena_bytes;
    return entry->second;
  }
  Programs programs(size_t i) const {
    return make_programs(graph_, candidates_[i].decisions, request_.global_batch, request_.threads, device_.alignment);
  }
  const Candidate& candidate(size_t i) const { return candidates_[i]; }
  const Graph& graph() const { return graph_; }
  const Pricing& pricing() const { return pricing_; }
  const Numerics& numerics() const { return numerics_; }

 private:
  Numerics numerics_;
  const Request& request_;
  const DeviceProfile& device_;
  Graph graph_;
  Pricing pricing_;
  std::vector<Candidate> candidates_;
  std::map<size_t, uint64_t> arenas_;
};

void fill_plan(Plan& plan, Space& space, int index, uint64_t reserve, uint64_t budget) {
  const Candidate& c = space.candidate(static_cast<size_t>(index));
  const Programs programs = space.programs(static_cast<size_t>(index));
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
  plan.step_picoseconds = c.picoseconds;
  plan.recompute_picoseconds = space.pricing().recompute(c.decisions, batch);
  plan.bound_picoseconds = space.pricing().fastest(plan.request.global_batch, plan.request.micro_batch);
}

// What could be given up, cheapest first. Each is tried by itself.
std::vector<Relaxation> relaxations(const GraphSource& source, const Request& request, const DeviceProfile& device,
                                    Space& space) {
  std::vector<Relaxation> list;
  const int base = space.smallest();
  const uint64_t bytes = space.arena(static_cast<size_t>(base));
  const double seconds = static_cast<double>(space.candidate(static_cast<size_t>(base)).picoseconds);
  auto offer = [&](const std::string& change, const Request& changed, const Numerics& numerics, bool changes_numerics) {
    Space other(source, numerics, changed, device);
    const int i = other.smallest();
    const uint64_t needs = other.arena(static_cast<size_t>(i));
    if (needs >= bytes) return;
    const double cost = static_cast<double>(other.candidate(static_cast<size_t>(i)).picoseconds) / seconds - 1;
    list.push_back({change, bytes - needs, cost, changes_numerics});
  };
  Request free = request;
  free.micro_batch = 0;
  if (request.micro_batch > 1) offer("micro_batch auto", free, space.numerics(), false);
  free = request;
  free.recompute = Recompute::choose;
  if (request.recompute == Recompute::none) offer("recompute auto", free, space.numerics(), false);
  Numerics n = space.numerics();
  n.state_bits = 8;
  if (space.numerics().state_bits == 32) offer("states 8", request, n, true);
  n = space.numerics();
  n.precision = Precision::bf16;
  if (space.numerics().precision == Precision::fp32) offer("precision bf16", request, n, true);
  std::stable_sort(list.begin(), list.end(), [](const Relaxation& a, const Relaxation& b) {
    if (a.changes_numerics != b.changes_numerics) return b.changes_numerics;
    return a.costs_fraction < b.costs_fraction;
  });
  return list;
}

}  // namespace

Result<Plan> search(const GraphSource& source, const Request& request) {
  const DeviceProfile* device = find_device(request.device);
  if (!device) {
    std::string names;
    for (const DeviceProfile& p : device_profiles()) names += std::string(names.empty() ? "" : ", ") + p.name;
    return Error{Code::bad_argument, "unknown device '" + request.device + "'; there are " + names};
  }
  if (request.global_batch < 1 || request.sequence < 1 || request.threads < 1)
    return Error{Code::bad_argument, "global batch, sequence and threads must be at least 1"};
  if (request.global_batch > largest_batch || request.threads > largest_threads)
    return Error{Code::bad_argument, "expected a global batch of at most " + std::to_string(largest_batch) + " and at most " +
                                         std::to_string(largest_threads) + " threads"};
  if (request.micro_batch > request.global_batch)
    return Error{Code::bad_argument, "micro-batch " + std::to_string(request.micro_batch) +
                                         " is larger than the global batch " + std::to_string(request.global_batch)};
  Plan plan;
  plan.request = request;
  const uint64_t reserve = request.reserve_bytes.value_or(device->reserve_bytes);
  const uint64_t memory = request.device_memory > 0 ? request.device_memory : device->memory_bytes;
  const uint64_t budget = request.memory_bytes > 0 ? request.memory_bytes : memory;
  if (budget == 0) return Error{Code::bad_argument, "the memory of device '" + request.device + "' is not known: give a budget"};
  plan.request.memory_bytes = budget;
  plan.request.device_memory = memory;
  const uint64_t arena_budget = budget > reserve ? budget - reserve : 0;

  Numerics numerics;
  numerics.precision = request.precision;
  numerics.optimizer = request.optimizer;
  numerics.state_bits = request.state_bits == 8 ? 8 : 32;
  Space wide(source, numerics, plan.request, *device);
  Space* chosen = &wide;
  int index = wide.fastest(arena_budget);
  std::unique_ptr<Space> narrow;
  if (request.state_bits == 0) {
    numerics.state_bits = 8;
    plan.states_reason = "32-bit states fit";
    narrow = std::make_unique<Space>(source, numerics, plan.request, *device);
    const bool slow = index >= 0 && !wide.pricing().is_unconstrained(wide.candidate(static_cast<size_t>(index)).picoseconds,
                                                                     request.global_batch, request.micro_batch);
    if (index < 0 || slow) {
      const int other = narrow->fastest(arena_budget);
      const bool worth = index >= 0 && other >= 0 &&
                         wide.candidate(static_cast<size_t>(index)).picoseconds / 10 * 9 >
                             narrow->candidate(static_cast<size_t>(other)).picoseconds;
      if (other >= 0 && (index < 0 || worth)) {
        plan.states_reason = index < 0 ? "32-bit states do not fit" : "32-bit states cost more than 10 % of the speed here";
        chosen = narrow.get();
        index = other;
      } else if (index < 0) {
        plan.states_reason = "neither 32-bit nor 8-bit states fit";
      } else {
        plan.states_reason = "32-bit states cost less than 10 % of the speed here";
      }
    }
  } else {
    plan.states_reason = "as requested";
  }
  const Graph& graph = chosen->graph();
  plan.architecture = graph.architecture;
  plan.parameters = graph.parameter_count();
  plan.trainable = graph.trainable_count();
  plan.layers = graph.blocks();
  plan.fits = index >= 0;
  Space& smallest_space = narrow ? *narrow : *chosen;
  const int smallest = smallest_space.smallest();
  plan.minimum_bytes = size_add(smallest_space.arena(static_cast<size_t>(smallest)), reserve);
  if (plan.fits) {
    fill_plan(plan, *chosen, index, reserve, budget);
  } else {
    fill_plan(plan, smallest_space, smallest, reserve, budget);
    plan.relaxations = relaxations(source, plan.request, *device, smallest_space);
  }
  return plan;
}

}  // namespace stw
