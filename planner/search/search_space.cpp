#include "planner/search/search_space.h"

#include <algorithm>
#include <set>

namespace stw {

namespace {

// Sums of bytes up to this many stay far from the limits of 64 bits.
constexpr uint64_t most_bytes = uint64_t{1} << 56;
// Every micro-batch up to this one is tried. Larger ones are tried only if they cut the batch into 1 to 16
// micro-steps, or into numbers of micro-steps that grow by an eighth from there.
constexpr int64_t dense_micro_batches = 1024;
// The numbers of steps between offloading no part and offloading all parts. States have more steps, because
// copies of the update always cost time. Copies of a micro-step are mostly free (they run while ops compute)
// or far too slow, so two steps are enough.
constexpr int state_steps = 8, block_steps = 2;

std::vector<int64_t> micro_batches(const Request& request) {
  const int64_t batch = request.global_batch;
  if (request.fused_update) return {batch};
  if (request.micro_batch > 0) return {request.micro_batch};
  std::vector<int64_t> list;
  for (int64_t m = 1; m <= std::min(batch, dense_micro_batches); ++m) list.push_back(m);
  for (int64_t steps = 1; (batch + steps - 1) / steps > dense_micro_batches;
       steps += steps < 16 ? 1 : steps / 8)
    list.push_back((batch + steps - 1) / steps);
  return list;
}

// Whether sums of bytes at this micro-batch stay in range. No plan keeps more than all tensors of a
// micro-step together.
bool is_countable(const Graph& graph, int64_t m) {
  uint64_t sum = 0;
  for (const Tensor& t : graph.tensors) sum = size_add(sum, t.bytes(m));
  return sum <= most_bytes;
}

// The numbers from 0 to `parts` in this many steps.
std::vector<int> steps(int parts, int count) {
  std::set<int> values{0};
  for (int i = 1; i <= count; ++i) values.insert((i * parts + count - 1) / count);
  return {values.begin(), values.end()};
}

}  // namespace

SearchSpace::SearchSpace(const GraphSource& source, const Numerics& numerics, const Request& request,
                         const DeviceProfile& device, Effort effort)
    : numerics_(numerics),
      effort_(effort),
      request_(request),
      device_(device),
      graph_(source(numerics)),
      pricing_(graph_, device, request.threads),
      segments_(graph_, request, pricing_) {
  micro_batches_ = micro_batches(request);
  std::erase_if(micro_batches_, [&](int64_t m) { return !is_countable(graph_, m); });
  std::sort(micro_batches_.begin(), micro_batches_.end());
  list_choices();
  if (request.recompute != Recompute::choose || !graph_.has_adapters() || is_empty()) return;
  full_recompute_request_ = request;
  full_recompute_request_->recompute = Recompute::full;
  full_recompute_ = std::make_unique<SearchSpace>(source, numerics, *full_recompute_request_, device, effort);
}

void SearchSpace::list_choices() {
  if (request_.host_bytes == 0) {
    choices_.emplace_back();
    return;
  }
  const int blocks = graph_.blocks();
  // States come first, then master weights. A byte of either costs the same time.
  std::vector<std::pair<int, int>> states;
  for (int n : steps(blocks + 1, state_steps)) states.push_back({n, 0});
  if (numerics_.precision == Precision::bf16)
    for (int n : steps(blocks + 1, state_steps / 2))
      if (n > 0) states.push_back({blocks + 1, n});
  const std::vector<int> part = steps(blocks, effort_ == Effort::full ? block_steps : 1);
  auto add = [&](std::pair<int, int> of_states, int inputs, int gradients, int weights) {
    OffloadChoice choice;
    choice.offload.parts = {of_states.first, of_states.second, gradients, weights, inputs};
    choice.offload.overlap = device_.cuda && choice.offload.any();
    measure(choice);
    choices_.push_back(std::move(choice));
  };
  // States are copied once a step, gradients and weights in every micro-step. So states come first.
  for (const auto& s : states)
    for (int inputs : part) add(s, inputs, 0, 0);
  for (int gradients : part)
    for (int weights : part)
      for (int inputs : part)
        if (gradients > 0 || weights > 0) add(states.back(), inputs, gradients, weights);
  // A cell contains all plans between two offload choices: from one number of states up to the next, with any
  // numbers of the other parts.
  for (size_t s = 0; s + 1 < states.size(); ++s) {
    OffloadChoice upper;
    upper.offload.parts = {states[s + 1].first, states[s + 1].second, blocks, blocks, blocks};
    measure(upper);
    cells_.push_back({s * part.size(), std::move(upper)});
  }
}

void SearchSpace::measure(OffloadChoice& choice) const {
  const Arena arena = make_arena(graph_, device_.alignment, choice.offload);
  choice.resident_bytes = arena.gradients_end;
  choice.host_bytes = arena.host_bytes - offloaded_input_bytes(graph_, choice.offload, 1, device_.alignment);
  for (const Buffer& b : arena.host) {
    const Role role = graph_.at(b.tensor).role;
    if (role != Role::activation) choice.update_bytes = size_add(choice.update_bytes, b.bytes);
    if (role == Role::gradient) choice.gradient_bytes = size_add(choice.gradient_bytes, b.bytes);
  }
}

OffloadSearch& SearchSpace::search_of(size_t choice) {
  OffloadChoice& c = choices_[choice];
  if (!c.search)
    c.search = std::make_unique<OffloadSearch>(
        SearchContext{graph_, request_, device_, pricing_, segments_, micro_batches_, effort_}, c.offload);
  return *c.search;
}

uint64_t SearchSpace::copying(OpKind kind, uint64_t bytes) const {
  return bytes == 0 ? 0 : op_picoseconds(device_, kind, Peak::fp32, request_.threads, {0, bytes});
}

uint64_t SearchSpace::least_update(const OffloadChoice& choice) {
  // The update reads gradients and does not write them. It reads and writes all other tensors.
  const uint64_t fetches = copying(OpKind::fetch, choice.update_bytes),
                 ops = search_of(0).update_picoseconds();
  const uint64_t stores = copying(OpKind::store, choice.update_bytes - choice.gradient_bytes);
  return device_.cuda ? std::max({ops, fetches, stores}) : size_add(ops, size_add(fetches, stores));
}

uint64_t SearchSpace::bound(const OffloadChoice& lower, const OffloadChoice& upper, uint64_t arena_bytes) {
  if (lower.host_bytes > request_.host_bytes) return UINT64_MAX;
  OffloadSearch& plain = search_of(0);
  const uint64_t ops = plain.update_picoseconds(), update = least_update(lower);
  const uint64_t saved = choices_[0].resident_bytes - upper.resident_bytes;
  uint64_t least = UINT64_MAX;
  for (size_t i = micro_batches_.size(); i-- > 0;) {
    const int64_t m = micro_batches_[i];
    if (plain.ops(m) - ops + update >= least) continue;
    const uint64_t inputs = offloaded_input_bytes(graph_, upper.offload, m, device_.alignment);
    const uint64_t bytes = size_add(arena_bytes, size_add(saved, inputs));
    if (plain.fits(m, bytes)) least = std::min(least, plain.relaxed(m, bytes) - ops + update);
  }
  return least;
}

std::optional<Candidate> SearchSpace::fastest(uint64_t arena_bytes) {
  std::optional<Candidate> chosen = fastest_without_full_recompute(arena_bytes);
  if (!full_recompute_) return chosen;
  const std::optional<Candidate> full = full_recompute_->fastest(arena_bytes);
  if (!chosen || !full) return chosen ? chosen : full;
  const uint64_t bound = std::min(chosen->bound_picoseconds, full->bound_picoseconds);
  if (full->picoseconds < chosen->picoseconds) chosen = full;
  chosen->bound_picoseconds = bound;
  return chosen;
}

const Candidate& SearchSpace::smallest() {
  if (smallest_) return *smallest_;
  smallest_ = smallest_without_full_recompute();
  if (full_recompute_ &&
      full_recompute_->arena(full_recompute_->smallest().decisions) < arena(smallest_->decisions))
    smallest_ = full_recompute_->smallest();
  return *smallest_;
}

std::optional<Candidate> SearchSpace::fastest_without_full_recompute(uint64_t arena_bytes) {
  if (is_empty()) return std::nullopt;
  // A Pareto point that smallest() has not tried may need fewer bytes than smallest(). It is not used for
  // budgets below smallest(), so that the reported minimum stays true.
  if (choices_.size() == 1)
    return search_of(0).smallest_fits(arena_bytes) ? search_of(0).fastest(arena_bytes) : std::nullopt;
  if (arena(smallest_without_full_recompute().decisions) > arena_bytes) return std::nullopt;
  uint64_t micro_steps = UINT64_MAX;
  for (int64_t m : micro_batches_)
    micro_steps = std::min(micro_steps, search_of(0).ops(m) - search_of(0).update_picoseconds());
  std::set<Node> open;  // `least`: picoseconds of a step
  for (size_t c = 0; c < choices_.size(); ++c)
    if (choices_[c].host_bytes <= request_.host_bytes && choices_[c].resident_bytes <= arena_bytes)
      open.insert({size_add(micro_steps, least_update(choices_[c])), c, BoundFrom::sums});
  std::optional<Candidate> best;
  size_t best_choice = 0;
  while (!open.empty()) {
    const auto [least, c, from] = *open.begin();
    open.erase(open.begin());
    if (least == UINT64_MAX || (best && least > best->picoseconds)) break;
    if (best && least == best->picoseconds && c > best_choice) continue;
    if (from == BoundFrom::sums)
      open.insert(
          {std::max(least, bound(choices_[c], choices_[c], arena_bytes)), c, BoundFrom::first_search});
    if (from == BoundFrom::first_search)
      open.insert({std::max(least, search_of(c).bound(arena_bytes)), c, BoundFrom::own_search});
    if (from != BoundFrom::own_search) continue;
    // Among equally fast answers, the one of the first offload choice wins.
    std::optional<Candidate> found =
        search_of(c).fastest(arena_bytes, best ? best->picoseconds + (c < best_choice) : UINT64_MAX);
    if (!found) continue;
    best = std::move(found);
    best_choice = c;
  }
  // Live bytes are counted as if every micro-step fetched gradients, but the first micro-step does not. If a
  // step has only one micro-step, the smallest plan may need fewer bytes than counted, and may be faster than
  // the plans of the searches.
  const Candidate& least = smallest_without_full_recompute();
  if (arena(least.decisions) <= arena_bytes && (!best || least.picoseconds < best->picoseconds)) best = least;
  if (!best) return best;
  best->bound_picoseconds = best->picoseconds;
  for (const auto& [lower, upper] : cells_)
    best->bound_picoseconds = std::min(best->bound_picoseconds, bound(choices_[lower], upper, arena_bytes));
  return best;
}

const Candidate& SearchSpace::smallest_without_full_recompute() {
  if (smallest_without_full_recompute_) return *smallest_without_full_recompute_;
  std::set<Node> open;  // `least`: live bytes; at first the resident bytes
  for (size_t c = 0; c < choices_.size(); ++c)
    if (choices_[c].host_bytes <= request_.host_bytes)
      open.insert({choices_[c].resident_bytes, c, BoundFrom::sums});
  uint64_t least = UINT64_MAX;
  size_t choice = 0;
  while (!open.empty()) {
    const auto [live_bytes, c, from] = *open.begin();
    open.erase(open.begin());
    if (live_bytes >= least) break;
    if (from != BoundFrom::own_search) {
      open.insert({search_of(c).fewest_live_bytes(), c, BoundFrom::own_search});
      continue;
    }
    const Candidate& found = search_of(c).with_fewest_live_bytes();
    const uint64_t bytes = search_of(c).arena(found.decisions);
    if (bytes >= least) continue;
    least = bytes;
    choice = c;
  }
  smallest_without_full_recompute_ = *search_of(choice).smallest();
  return *smallest_without_full_recompute_;
}

uint64_t SearchSpace::fewest_live_bytes() {
  uint64_t least = full_recompute_ ? full_recompute_->fewest_live_bytes() : UINT64_MAX;
  for (size_t c = 0; c < choices_.size(); ++c)
    if (choices_[c].host_bytes <= request_.host_bytes && choices_[c].resident_bytes < least)
      least = std::min(least, search_of(c).fewest_live_bytes());
  return least;
}

std::optional<uint64_t> SearchSpace::least_host_bytes(uint64_t arena_bytes) {
  std::vector<std::pair<uint64_t, size_t>> choices;  // host bytes at the smallest micro-batch
  for (size_t c = 0; c < choices_.size(); ++c)
    if (choices_[c].resident_bytes <= arena_bytes && !is_empty())
      choices.emplace_back(
          size_add(choices_[c].host_bytes,
                   offloaded_input_bytes(graph_, choices_[c].offload, micro_batches_[0], device_.alignment)),
          c);
  std::sort(choices.begin(), choices.end());
  const std::optional<uint64_t> full =
      full_recompute_ ? full_recompute_->least_host_bytes(arena_bytes) : std::nullopt;
  for (const auto& [bytes, c] : choices) {
    if (bytes > request_.host_bytes || (full && *full <= bytes)) break;
    if (search_of(c).fewest_live_bytes() <= arena_bytes &&
        search_of(c).arena(search_of(c).with_fewest_live_bytes().decisions) <= arena_bytes)
      return bytes;
  }
  return full;
}

uint64_t SearchSpace::arena(const Decisions& decisions) {
  for (size_t c = 0; c < choices_.size(); ++c)
    if (choices_[c].offload == decisions.offload) return search_of(c).arena(decisions);
  return programs(decisions).arena_bytes;
}

Programs SearchSpace::programs(const Decisions& decisions) const {
  return make_programs(graph_, decisions, request_.global_batch, request_.threads, device_.alignment);
}

}  // namespace stw
