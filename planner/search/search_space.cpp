#include "planner/search/search_space.h"

#include <algorithm>
#include <set>

#include "planner/graph/kept_rows.h"

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
// The most further offload choices that are tried for each promising one.
constexpr size_t refinements = 24;
// A further choice has to save at least this part of the step: smaller gains are not worth the time to find
// them.
constexpr uint64_t least_gain = 1024;

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

// Whether SegmentChoices of one request serve the other too, if their graphs are alike.
bool are_for_same_segments(const Request& a, const Request& b) {
  return a.global_batch == b.global_batch && a.recompute == b.recompute && a.threads == b.threads;
}

// The numbers from 0 to `parts` in this many steps.
std::vector<int> steps(int parts, int count) {
  std::set<int> values{0};
  for (int i = 1; i <= count; ++i) values.insert((i * parts + count - 1) / count);
  return {values.begin(), values.end()};
}

}  // namespace

std::shared_ptr<KnownHeights> SearchSpace::known_heights(const SearchSpace* like, const Graph& graph) {
  if (like == nullptr) return std::make_shared<KnownHeights>();
  const Graph& other = like->graph_;
  const bool is_same = other.tensors == graph.tensors && other.update_ops == graph.update_ops &&
                       other.generate_ops == graph.generate_ops && other.table_ops == graph.table_ops &&
                       other.table_gradient_ops == graph.table_gradient_ops &&
                       other.evaluate_table_ops == graph.evaluate_table_ops &&
                       have_same_micro_steps(other, graph);
  return is_same ? like->known_ : std::make_shared<KnownHeights>(like->known_->for_another_graph());
}

SearchSpace::SearchSpace(const GraphSource& source, const Numerics& numerics, const Request& request,
                         const DeviceProfile& device, Effort effort)
    : SearchSpace(source, numerics, request, device, effort, nullptr) {}

SearchSpace::SearchSpace(const GraphSource& source, const Numerics& numerics, const Request& request,
                         const DeviceProfile& device, Effort effort, const SearchSpace* like)
    : numerics_(numerics),
      effort_(effort),
      request_(request),
      device_(device),
      graph_(source(numerics)),
      pricing_(graph_, device, request.threads),
      traces_(like != nullptr ? like->traces_ : std::make_shared<TraceCache>()),
      segments_(like != nullptr && are_for_same_segments(like->request_, request) &&
                        have_same_micro_steps(like->graph_, graph_)
                    ? like->segments_
                    : std::make_shared<SegmentChoices>(graph_, request_, pricing_, *traces_)),
      known_(known_heights(like, graph_)),
      like_(like) {
  micro_batches_ = micro_batches(request);
  std::sort(micro_batches_.begin(), micro_batches_.end());
  micro_batches_.erase(std::partition_point(micro_batches_.begin(), micro_batches_.end(),
                                            [&](int64_t m) { return is_countable(graph_, m); }),
                       micro_batches_.end());
  list_choices();
  if (request.recompute != Recompute::choose || !graph_.has_adapters() || is_empty()) return;
  Request full_recompute = request;
  full_recompute.recompute = Recompute::full;
  full_recompute_ = std::make_unique<SearchSpace>(
      source, numerics, full_recompute, device, effort,
      like != nullptr && like->full_recompute_ ? like->full_recompute_.get() : this);
}

void SearchSpace::limit_host_bytes(uint64_t bytes) {
  request_.host_bytes = bytes;
  // Fewer micro-batches fit if their inputs lie in host memory.
  for (OffloadChoice& c : choices_)
    if (c.figures.offload[Offloaded::inputs] > 0) c.search.reset();
  if (bound_) bound_->forget_searches();
  smallest_choice_.reset();
  smallest_without_full_recompute_.reset();
  smallest_.reset();
  if (keeping_rows_) keeping_rows_->limit_host_bytes(bytes);
  if (full_recompute_) full_recompute_->limit_host_bytes(bytes);
}

void SearchSpace::list_choices() {
  choices_.emplace_back();  // offloads nothing
  if (request_.host_bytes == 0 || is_empty()) return;
  bound_ = std::make_unique<OffloadBound>(context(), search_of(0));
  const int blocks = graph_.blocks();
  // States come first, then master weights. A byte of either costs the same time.
  std::vector<std::pair<int, int>> states;
  for (int n : steps(blocks + 1, state_steps)) states.push_back({n, 0});
  if (bound_->most_parts(0) > blocks + 1)
    for (int n : steps(blocks + 1, state_steps / 2))
      if (n > 0) states.push_back({blocks + 1, n});
  const std::vector<int> part = steps(blocks, effort_ == Effort::full ? block_steps : 1);
  auto add = [&](std::pair<int, int> of_states, int inputs, int gradients, int weights) {
    Offload offload;
    offload.parts = {of_states.first, of_states.second, gradients, weights, inputs};
    offload.overlap = device_.cuda && offload.any();
    if (offload.any()) choices_.push_back({bound_->measure(offload), nullptr});
    else choices_[0].figures = bound_->measure(offload);
  };
  // States are copied once a step, gradients and weights in every micro-step. So states come first.
  for (const auto& s : states)
    for (int inputs : part) add(s, inputs, 0, 0);
  for (int gradients : part)
    for (int weights : part)
      for (int inputs : part)
        if ((gradients > 0 && !request_.gradient_hook) || (gradients == 0 && weights > 0))
          add(states.back(), inputs, gradients, weights);
}

OffloadSearch& SearchSpace::search_of(size_t choice) {
  OffloadChoice& c = choices_[choice];
  if (!c.search) c.search = std::make_unique<OffloadSearch>(context(), c.figures.offload);
  return *c.search;
}

SearchSpace* SearchSpace::keeping_rows() {
  if (!has_kept_rows_)
    has_kept_rows_ = !is_empty() && may_keep_rows(graph_, request_.global_batch, !request_.gradient_hook);
  if (!*has_kept_rows_) return nullptr;
  if (keeping_rows_) return keeping_rows_.get();
  const GraphSource source = [this](const Numerics&) {
    Graph graph = graph_;
    keep_rows(graph, request_.global_batch);
    return graph;
  };
  keeping_rows_ =
      std::make_unique<SearchSpace>(source, numerics_, request_, device_, effort_,
                                    like_ && like_->keeping_rows_ ? like_->keeping_rows_.get() : this);
  return keeping_rows_.get();
}

uint64_t SearchSpace::unlimited() {
  const uint64_t own = pricing_.fastest(request_.global_batch, request_.micro_batch, request_.recompute);
  return keeping_rows() ? std::min(own, keeping_rows()->unlimited()) : own;
}

uint64_t SearchSpace::bound_of_slower(uint64_t arena_bytes, uint64_t to_beat) {
  const std::optional<Candidate> point = search_of(0).fastest_with_live_bytes(arena_bytes, to_beat);
  return point ? point->bound_picoseconds : to_beat;
}

std::optional<Candidate> SearchSpace::fastest(uint64_t arena_bytes, uint64_t to_beat) {
  SearchSpace* const others = keeping_rows();
  if (!others) return fastest_without_kept_rows(arena_bytes, to_beat);
  if (!others->smallest_fits(arena_bytes)) return std::nullopt;  // as the reported minimum says
  if (request_.host_bytes > 0) {
    std::optional<Candidate> best = search_of(0).fastest(arena_bytes, std::min(to_beat, unlimited() + 1));
    if (!best) {
      best = others->fastest(arena_bytes, to_beat);
      const uint64_t known = best ? best->picoseconds : to_beat;
      if (search_of(0).bound(arena_bytes, known) >= known) return best;
      std::optional<Candidate> own = search_of(0).fastest(arena_bytes, known);
      if (!own) return best;
      best = std::move(own);
    }
    best->bound_picoseconds = 0;
    return best;
  }
  std::optional<Candidate> chosen = fastest_without_kept_rows(arena_bytes, to_beat);
  if (chosen && chosen->picoseconds <= unlimited()) return chosen;
  const uint64_t known = chosen ? chosen->picoseconds : to_beat;
  std::optional<Candidate> other = others->fastest(arena_bytes, known);
  if (!other) {
    if (chosen)
      chosen->bound_picoseconds =
          std::min(chosen->bound_picoseconds, others->bound_of_slower(arena_bytes, known));
    return chosen;
  }
  // A plan with the gradient may fit by its live bytes, but not as it was laid out.
  other->bound_picoseconds =
      std::min(other->bound_picoseconds,
               chosen ? chosen->bound_picoseconds : bound_of_slower(arena_bytes, other->picoseconds));
  return other;
}

std::optional<Candidate> SearchSpace::fastest_without_kept_rows(uint64_t arena_bytes, uint64_t to_beat) {
  std::optional<Candidate> chosen = fastest_without_full_recompute(arena_bytes, to_beat);
  if (!full_recompute_) return chosen;
  // With host memory, candidates have no bound yet, so a plan that is no faster is of no use.
  if (chosen && request_.host_bytes > 0) to_beat = chosen->picoseconds;
  const std::optional<Candidate> full = full_recompute_->fastest(arena_bytes, to_beat);
  if (!chosen || !full) return chosen ? chosen : full;
  const uint64_t bound = std::min(chosen->bound_picoseconds, full->bound_picoseconds);
  if (full->picoseconds < chosen->picoseconds) chosen = full;
  chosen->bound_picoseconds = bound;
  return chosen;
}

const Candidate& SearchSpace::smallest() {
  if (keeping_rows()) return keeping_rows()->smallest();
  if (smallest_) return *smallest_;
  if (full_recompute_ && full_recompute_->smallest_fits(least_arena() - 1))
    return *(smallest_ = full_recompute_->smallest());
  smallest_ = smallest_without_full_recompute();
  if (full_recompute_ &&
      full_recompute_->within(full_recompute_->smallest().decisions, arena(smallest_->decisions) - 1))
    smallest_ = full_recompute_->smallest();
  return *smallest_;
}

std::set<SearchSpace::Node> SearchSpace::choices_by_sums(uint64_t arena_bytes) {
  uint64_t micro_steps = UINT64_MAX;
  for (int64_t m : micro_batches_)
    micro_steps = std::min(micro_steps, search_of(0).ops(m) - search_of(0).update_picoseconds());
  std::set<Node> open;
  for (size_t c = 0; c < choices_.size(); ++c)
    if (const OffloadFigures& f = choices_[c].figures;
        f.host_bytes <= request_.host_bytes && f.resident_bytes <= arena_bytes)
      open.insert({size_add(micro_steps, bound_->least_update(f)), c, BoundFrom::sums});
  return open;
}

bool SearchSpace::may_beat(uint64_t picoseconds, uint64_t arena_bytes) {
  return may_beat_without_full_recompute(picoseconds, arena_bytes) ||
         (keeping_rows() && keeping_rows()->may_beat(picoseconds, arena_bytes)) ||
         (full_recompute_ && full_recompute_->may_beat(picoseconds, arena_bytes));
}

bool SearchSpace::may_beat_without_full_recompute(uint64_t picoseconds, uint64_t arena_bytes) {
  if (is_empty()) return false;
  if (choices_.size() == 1) return search_of(0).bound(arena_bytes, picoseconds) < picoseconds;
  std::set<Node> open = choices_by_sums(arena_bytes);
  while (!open.empty() && open.begin()->least < picoseconds) {
    const auto [least, c, from] = *open.begin();
    open.erase(open.begin());
    if (from == BoundFrom::own_search) return true;
    const OffloadFigures& f = choices_[c].figures;
    // Live bytes may count gradients that the smallest plan does not fetch.
    const uint64_t bytes = size_add(arena_bytes, f.gradient_bytes);
    if (from == BoundFrom::sums)
      open.insert({std::max(least, bound_->of_cell(f, f, bytes, picoseconds)), c, BoundFrom::first_search});
    else open.insert({std::max(least, search_of(c).bound(bytes, picoseconds)), c, BoundFrom::own_search});
  }
  return false;
}

std::optional<Candidate> SearchSpace::fastest_without_full_recompute(uint64_t arena_bytes, uint64_t to_beat) {
  if (is_empty()) return std::nullopt;
  // A Pareto point that smallest() has not tried may need fewer bytes than smallest(). It is not used for
  // budgets below smallest(), so that the reported minimum stays true.
  if (choices_.size() == 1)
    return search_of(0).smallest_fits(arena_bytes) ? search_of(0).fastest(arena_bytes, to_beat)
                                                   : std::nullopt;
  if (!smallest_fits_without_full_recompute(arena_bytes)) return std::nullopt;
  std::set<Node> open = choices_by_sums(arena_bytes);
  std::optional<Candidate> best;
  size_t best_choice = 0;
  while (!open.empty()) {
    const auto [least, c, from] = *open.begin();
    open.erase(open.begin());
    if (least >= to_beat || (best && least > best->picoseconds)) break;
    if (best && least == best->picoseconds && c > best_choice) continue;
    // Bounds from here on are of no use.
    const uint64_t limit = best ? best->picoseconds + 1 : to_beat;
    if (from == BoundFrom::sums) {
      const OffloadFigures& f = choices_[c].figures;
      open.insert({std::max(least, bound_->of_cell(f, f, arena_bytes, limit)), c, BoundFrom::first_search});
    }
    if (from == BoundFrom::first_search)
      open.insert({std::max(least, search_of(c).bound(arena_bytes, limit)), c, BoundFrom::own_search});
    if (from != BoundFrom::own_search) continue;
    // Among equally fast answers, the one of the first offload choice wins.
    std::optional<Candidate> found =
        search_of(c).fastest(arena_bytes, best ? best->picoseconds + (c < best_choice) : to_beat);
    if (!found) continue;
    best = std::move(found);
    best_choice = c;
  }
  // Live bytes are counted as if every micro-step fetched gradients, but the first micro-step does not. If a
  // step has only one micro-step, the smallest plan may need fewer bytes than counted, and may be faster than
  // the plans of the searches. It may also be a Pareto point that no search has tried.
  const uint64_t known = best ? best->picoseconds : to_beat;
  if ((smallest_may_beat(known, arena_bytes) || (!best && !smallest_is_searched(arena_bytes))) &&
      smallest_without_full_recompute().picoseconds < known)
    best = smallest_without_full_recompute();
  if (best) best->bound_picoseconds = 0;
  return best;
}

Candidate SearchSpace::refined(Candidate best, uint64_t arena_bytes) {
  if (!bound_) return best;
  if (SearchSpace* const others = keeping_rows())
    return best.decisions.keeps_rows ? others->refined(std::move(best), arena_bytes) : best;
  for (const OffloadBound::Corner& corner : bound_->promising(arena_bytes, best.picoseconds))
    refine(corner, arena_bytes, best);
  return full_recompute_ ? full_recompute_->refined(std::move(best), arena_bytes) : best;
}

Candidate SearchSpace::with_bound(Candidate best, uint64_t arena_bytes) {
  if (!bound_) return best;
  if (SearchSpace* const others = keeping_rows()) {
    if (best.picoseconds <= unlimited()) {
      best.bound_picoseconds = best.picoseconds;
      return best;
    }
    best = others->with_bound(std::move(best), arena_bytes);
    // A plan with the gradient is faster by at most this much, and takes more memory.
    const uint64_t own = pricing_.update(),
                   other = size_add(others->pricing_.update(), others->pricing_.forming_with_copies());
    best.bound_picoseconds -= std::min(best.bound_picoseconds, other > own ? other - own : 0);
    return best;
  }
  best.bound_picoseconds = bound_->of_all(arena_bytes, best.picoseconds);
  if (full_recompute_)
    best.bound_picoseconds =
        std::min(best.bound_picoseconds, full_recompute_->with_bound(best, arena_bytes).bound_picoseconds);
  return best;
}

bool SearchSpace::improves(const OffloadBound::Corner& to, uint64_t arena_bytes, Candidate& best) {
  const Offload offload = bound_->offload(to);
  if (request_.gradient_hook && offload[Offloaded::gradients] > 0) return false;
  const uint64_t to_beat = best.picoseconds - best.picoseconds / least_gain;
  if (std::any_of(choices_.begin(), choices_.end(),
                  [&](const OffloadChoice& c) { return c.figures.offload == offload; }) ||
      bound_->of_cell_by_search(to, to, arena_bytes, to_beat) >= to_beat)
    return false;
  // It stays on the list, so that a looser budget gets no slower plan.
  choices_.push_back({bound_->measure(offload), nullptr});
  std::optional<Candidate> found = search_of(choices_.size() - 1).fastest_point(arena_bytes, to_beat);
  if (!found) return false;
  best = std::move(*found);
  return true;
}

void SearchSpace::refine(const OffloadBound::Corner& promising, uint64_t arena_bytes, Candidate& best) {
  const size_t most_choices = choices_.size() + refinements;
  const auto tries = [&](const OffloadBound::Corner& to) {
    return choices_.size() < most_choices && improves(to, arena_bytes, best);
  };
  const OffloadBound::Corner from = bound_->corner(best.decisions.offload);
  for (int quarters = 4; quarters > 0; --quarters) {
    OffloadBound::Corner to = from;
    for (size_t d = 0; d < to.size(); ++d) to[d] += (promising[d] - from[d]) * quarters / 4;
    tries(to);
  }
  for (const int step : {4, -4, 2, -2, 1, -1})
    for (size_t d = 0; d < OffloadBound::dimensions; ++d)
      for (int distance = step;; distance *= 2) {
        OffloadBound::Corner to = bound_->corner(best.decisions.offload);
        to[d] = std::clamp(to[d] + distance, 0, bound_->most_parts(d));
        if (!tries(to)) break;
      }
}

std::set<SearchSpace::Node> SearchSpace::choices_by_live_bytes() {
  std::set<Node> open;
  if (is_empty()) return open;
  const uint64_t at_least = choices_.size() > 1 ? search_of(0).fewest_step_bytes() : 0;
  for (size_t c = 0; c < choices_.size(); ++c) {
    const OffloadFigures& f = choices_[c].figures;
    if (f.host_bytes > request_.host_bytes) continue;
    // What is copied needs room in a step. Only inputs in host memory make a step need fewer bytes.
    const uint64_t of_step = f.offload[Offloaded::inputs] > 0 ? 0 : at_least;
    open.insert({size_add(f.resident_bytes, of_step), c, BoundFrom::sums});
  }
  return open;
}

size_t SearchSpace::smallest_choice() {
  if (smallest_choice_) return *smallest_choice_;
  std::set<Node> open = choices_by_live_bytes();
  std::optional<size_t> choice;
  const auto fewest = [&]() -> const Decisions& {
    return search_of(*choice).with_fewest_live_bytes().decisions;
  };
  while (!open.empty()) {
    const auto [live_bytes, c, from] = *open.begin();
    open.erase(open.begin());
    if (choice && search_of(*choice).within(fewest(), live_bytes)) break;
    if (from != BoundFrom::own_search) {
      if (const uint64_t least = search_of(c).fewest_live_bytes(); least != UINT64_MAX)
        open.insert({least, c, BoundFrom::own_search});
      continue;
    }
    const Decisions& found = search_of(c).with_fewest_live_bytes().decisions;
    if (!choice || search_of(c).within(found, search_of(*choice).arena(fewest()) - 1)) choice = c;
  }
  smallest_choice_ = choice.value_or(0);
  return *smallest_choice_;
}

uint64_t SearchSpace::least_arena() {
  if (choices_.size() == 1) return search_of(0).fewest_live_bytes();
  uint64_t least = UINT64_MAX;
  for (const OffloadChoice& c : choices_)
    if (c.figures.host_bytes <= request_.host_bytes) least = std::min(least, c.figures.resident_bytes);
  return least;
}

const Candidate& SearchSpace::smallest_without_full_recompute() {
  if (!smallest_without_full_recompute_)
    smallest_without_full_recompute_ = *search_of(smallest_choice()).smallest();
  return *smallest_without_full_recompute_;
}

bool SearchSpace::smallest_fits_without_full_recompute(uint64_t arena_bytes) {
  if (is_empty() || least_arena() > arena_bytes) return false;
  if (choices_.size() > 1) {
    // Usually the first choice is the smallest. The others need not be searched if its plan fits.
    OffloadSearch& first = search_of(choices_by_live_bytes().begin()->choice);
    if (first.fewest_live_bytes() <= arena_bytes &&
        first.within(first.with_fewest_live_bytes().decisions, arena_bytes))
      return true;
  }
  return search_of(smallest_choice()).smallest_fits(arena_bytes);
}

bool SearchSpace::smallest_fits(uint64_t arena_bytes) {
  if (keeping_rows()) return keeping_rows()->smallest_fits(arena_bytes);
  // The space of plans that keep nothing has fewer variants, so its search is quicker and comes first.
  return (full_recompute_ && full_recompute_->smallest_fits(arena_bytes)) ||
         smallest_fits_without_full_recompute(arena_bytes);
}

uint64_t SearchSpace::arena_with_fewest_live_bytes() {
  if (keeping_rows()) return keeping_rows()->arena_with_fewest_live_bytes();
  OffloadSearch& search = search_of(smallest_choice());
  const uint64_t own = search.arena(search.with_fewest_live_bytes().decisions);
  return full_recompute_ ? std::min(own, full_recompute_->arena_with_fewest_live_bytes()) : own;
}

bool SearchSpace::smallest_is_searched(uint64_t arena_bytes) {
  OffloadSearch& search = search_of(smallest_choice());
  return search.within(search.with_fewest_live_bytes().decisions, arena_bytes);
}

bool SearchSpace::smallest_may_beat(uint64_t picoseconds, uint64_t arena_bytes) {
  if (smallest_without_full_recompute_) return true;  // it is known
  const OffloadFigures& f = choices_[smallest_choice()].figures;
  OffloadSearch& search = search_of(smallest_choice());
  // Live bytes count gradients that a single micro-step does not fetch.
  const uint64_t bytes = size_add(arena_bytes, f.gradient_bytes);
  return f.gradient_bytes > 0 && search.fits_in_one_step(bytes) &&
         search.bound(bytes, picoseconds) < picoseconds;
}

uint64_t SearchSpace::fewest_live_bytes() {
  if (keeping_rows()) return keeping_rows()->fewest_live_bytes();
  uint64_t least = full_recompute_ ? full_recompute_->fewest_live_bytes() : UINT64_MAX;
  for (const Node& node : choices_by_live_bytes()) {
    if (node.least >= least) break;
    least = std::min(least, search_of(node.choice).fewest_live_bytes());
  }
  return least;
}

std::optional<uint64_t> SearchSpace::least_host_bytes(uint64_t arena_bytes) {
  if (keeping_rows()) return keeping_rows()->least_host_bytes(arena_bytes);
  std::vector<std::pair<uint64_t, size_t>> choices;  // host bytes at the smallest micro-batch
  for (size_t c = 0; c < choices_.size(); ++c)
    if (choices_[c].figures.resident_bytes <= arena_bytes && !is_empty())
      choices.emplace_back(size_add(choices_[c].figures.host_bytes,
                                    offloaded_input_bytes(graph_, choices_[c].figures.offload,
                                                          micro_batches_[0], device_.alignment)),
                           c);
  std::sort(choices.begin(), choices.end());
  const std::optional<uint64_t> full =
      full_recompute_ ? full_recompute_->least_host_bytes(arena_bytes) : std::nullopt;
  for (const auto& [bytes, c] : choices) {
    if (bytes > request_.host_bytes || (full && *full <= bytes)) break;
    if (search_of(c).fewest_live_bytes() <= arena_bytes &&
        search_of(c).within(search_of(c).with_fewest_live_bytes().decisions, arena_bytes))
      return bytes;
  }
  return full;
}

OffloadSearch* SearchSpace::search_with(const Offload& offload) {
  for (size_t c = 0; c < choices_.size(); ++c)
    if (choices_[c].figures.offload == offload) return &search_of(c);
  return nullptr;
}

uint64_t SearchSpace::arena(const Decisions& decisions) {
  if (SearchSpace& space = of(decisions); &space != this) return space.arena(decisions);
  OffloadSearch* const search = search_with(decisions.offload);
  return search ? search->arena(decisions) : programs(decisions).arena_bytes;
}

bool SearchSpace::within(const Decisions& decisions, uint64_t bytes) {
  if (SearchSpace& space = of(decisions); &space != this) return space.within(decisions, bytes);
  OffloadSearch* const search = search_with(decisions.offload);
  return search ? search->within(decisions, bytes) : programs(decisions).arena_bytes <= bytes;
}

Programs SearchSpace::programs(const Decisions& decisions) {
  if (SearchSpace& space = of(decisions); &space != this) return space.programs(decisions);
  return make_programs(graph_, decisions, request_.global_batch, request_.threads, device_.alignment);
}

}  // namespace stw
