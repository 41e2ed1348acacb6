#include "planner/search/relaxations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "planner/base/check_in.h"
#include "planner/base/figures.h"
#include "planner/graph/kept_rows.h"
#include "planner/search/offers.h"

namespace stw {

namespace {

constexpr size_t most_lines = 8, most_formats = 4, most_adapters = 2, most_misses = 2;

// The format of states that needs the fewest bytes and that the request allows.
int smallest_state_bits(const Request& r) {
  return r.state_bits == 32 || !optimizer_row(r.optimizer).has_8bit_states ? 32 : 8;
}

// "--lora 16 --seq 32" as words: "lora 16, seq 32". They are no advice.
std::string words_of(std::string flags) {
  for (size_t at; (at = flags.find(" --")) != std::string::npos;) flags.replace(at, 3, ", ");
  return flags.substr(2);
}

// Answers questions about changed requests.
class Advisor {
 public:
  Advisor(const GraphSource& source, const Request& request, const Alternatives& alternatives,
          SearchSpace& space, uint64_t arena_budget)
      : source_(source),
        request_(request),
        alternatives_(alternatives),
        space_(space),
        reserve_(reserve_of(request, profile_of(request))),
        budget_(size_add(arena_budget, reserve_)),
        least_(size_add(space.arena(space.smallest().decisions), reserve_)),
        has_adapters_(space.graph().has_adapters()),
        possible_(possible_steps(request, has_adapters_, alternatives)),
        free_(free_offers(possible_)) {}

  Advice advice();

 private:
  // An offer that does not fit, and its smallest budget, or if that is not known, a lower bound of it.
  struct Miss {
    Offer offer;
    uint64_t bytes;
    bool is_known;
  };
  std::optional<GraphSource> source_of(const Offer& offer, const Request& changed) const;
  // The smallest budget of the changed request, or where that does not fit, maybe only a lower bound of it
  // that does not fit either. Empty if the request is invalid. Remembers it for the lists.
  std::optional<uint64_t> least_bytes(const Offer& offer);
  std::optional<uint64_t> find_least_bytes(const Offer& offer);
  // The smallest budget, or something near it on the same side of the budget: more if `is_upper`, otherwise
  // less.
  struct Least {
    uint64_t bytes;
    bool is_upper;
  };
  static std::optional<Least> least_bytes(const GraphSource& source, const Request& request,
                                          const SearchSpace* like, bool is_exact);
  std::optional<Least> measured_least_bytes(const Offer& offer, bool is_exact) const;
  // A lower bound of the smallest budget, computed fast, if that does not fit.
  std::optional<uint64_t> persistent_bytes(const Offer& offer) const;
  // Of each kind of offer that does not fit, the one that needs the fewest bytes; and of these the best.
  std::vector<Miss> closest_misses();
  bool fits(const Offer& offer);
  // The same for an offer without values. Remembers the answer for is_pruned().
  bool try_steps(Steps steps);
  bool contains_fitting(Steps steps) const;
  // Whether the answer for these steps is known from that for others.
  bool is_pruned(Steps steps) const;
  // Adds the offers of a list that fit, at most `most`.
  void add(const std::vector<Steps>& list, size_t most);
  // The same with all changes of `free_`, where nothing fits without them.
  void add_with_free(const std::vector<Steps>& list, size_t most);
  void add_host();
  // Host memory together with other changes, for requests that fit neither with the one nor with the others.
  // Shorter samples and smaller models only with the smallest of these changes.
  void add_host_with_changes();
  // The relaxations of lines_ that fit.
  std::vector<Relaxation> fitting_lines();
  // The least host memory with which the offer fits. Empty if it does not, with a rough search maybe too
  // often.
  std::optional<uint64_t> least_host_bytes(const Offer& offer, Effort effort);
  void add_shorter(const std::vector<Steps>& bases);
  int64_t longest_sequence(Offer offer, int64_t least);  // 0: not even the least fits
  void add_smaller(const std::vector<Steps>& bases);
  // The combinations that the last two are added to: the request's own settings, the smallest formats, and
  // these.
  std::vector<Steps> bases(std::vector<Steps> adapters) const;
  std::optional<Relaxation> relaxation(const Offer& offer);
  double tokens_per_second(const Request& changed, uint64_t picoseconds) const;
  std::string shortage(const Offer& best, const std::string& change);  // `change`: its text
  std::string smallest_card(const Offer& offer);

  const GraphSource& source_;
  const Request& request_;
  const Alternatives& alternatives_;
  SearchSpace& space_;
  const uint64_t reserve_, budget_, least_;
  const bool has_adapters_;
  const Steps possible_;
  const std::vector<Steps> free_;
  std::vector<Offer> lines_;
  std::vector<Steps> fitting_, failing_;  // without values
  std::vector<Miss> misses_;
  std::map<std::string, std::optional<uint64_t>> least_bytes_;  // by the change's text
};

std::optional<GraphSource> Advisor::source_of(const Offer& offer, const Request& changed) const {
  if (!check(changed)) return std::nullopt;
  if (!alternatives_.source) return source_;
  auto source = alternatives_.source(model_change(offer), changed);
  return source ? std::optional(std::move(*source)) : std::nullopt;
}

std::optional<Advisor::Least> Advisor::least_bytes(const GraphSource& source, const Request& request,
                                                   const SearchSpace* like, bool is_exact) {
  check_in();
  const DeviceProfile& device = profile_of(request);
  // The smallest plan offloads everything, which a rough search tries, too.
  SearchSpace space(source, numerics_of(request, smallest_state_bits(request)), request, device,
                    request.host_bytes > 0 ? Effort::rough : Effort::full, like);
  if (space.is_empty()) return std::nullopt;
  const uint64_t reserve = reserve_of(request, device), live = size_add(space.fewest_live_bytes(), reserve),
                 budget = budget_of(request, device);
  if (live > budget || space.smallest_fits(budget - reserve)) return Least{live, false};
  if (!is_exact) return Least{size_add(space.arena_with_fewest_live_bytes(), reserve), true};
  return Least{size_add(space.arena(space.smallest().decisions), reserve), false};
}

std::optional<uint64_t> Advisor::least_bytes(const Offer& offer) {
  const auto [known, is_unknown] = least_bytes_.try_emplace(change_text(request_, offer));
  if (is_unknown) known->second = find_least_bytes(offer);
  return known->second;
}

std::optional<Advisor::Least> Advisor::measured_least_bytes(const Offer& offer, bool is_exact) const {
  const Request changed = changed_request(request_, offer);
  const std::optional<GraphSource> source = source_of(offer, changed);
  return source ? least_bytes(*source, changed, &space_, is_exact) : std::nullopt;
}

std::optional<uint64_t> Advisor::persistent_bytes(const Offer& offer) const {
  const Request changed = changed_request(request_, offer);
  if (changed.host_bytes > 0) return std::nullopt;
  const std::optional<GraphSource> source = source_of(offer, changed);
  if (!source) return std::nullopt;
  Graph graph = (*source)(numerics_of(changed, smallest_state_bits(changed)));
  if (may_keep_rows(graph, changed.global_batch)) keep_rows(graph, changed.global_batch);
  const uint64_t bytes =
      size_add(make_arena(graph, profile_of(changed).alignment, {}).gradients_end, reserve_);
  return bytes > budget_ ? std::optional(bytes) : std::nullopt;
}

std::optional<uint64_t> Advisor::find_least_bytes(const Offer& offer) {
  if (const std::optional<uint64_t> bound = persistent_bytes(offer)) {
    misses_.push_back({offer, *bound, false});
    return bound;
  }
  const std::optional<Least> least = measured_least_bytes(offer, false);
  if (!least) return std::nullopt;
  if (least->bytes > budget_)
    misses_.push_back({offer, least->is_upper ? budget_ + 1 : least->bytes, !least->is_upper});
  return least->bytes;
}

std::vector<Advisor::Miss> Advisor::closest_misses() {
  std::map<int, Miss> of_kinds;
  for (Miss& miss : misses_) {
    const Offer& offer = miss.offer;
    const int kind = offer.has(Step::model)                   ? 4
                     : offer.has(Step::sequence)              ? 3
                     : has_adapters_ || offer.has(Step::lora) ? 2
                     : offer.has(Step::host_memory)           ? 0
                                                              : 1;
    const auto best = of_kinds.find(kind);
    const auto is_best = [&] { return best == of_kinds.end() || miss.bytes < best->second.bytes; };
    if (!is_best()) continue;
    if (!miss.is_known)
      miss.bytes = measured_least_bytes(offer, true).value_or(Least{size_limit, false}).bytes;
    if (is_best()) of_kinds.insert_or_assign(kind, miss);
  }
  std::vector<Miss> list;
  for (const auto& [kind, miss] : of_kinds)
    if (miss.bytes < least_) list.push_back(miss);
  std::stable_sort(list.begin(), list.end(), [](const Miss& a, const Miss& b) { return a.bytes < b.bytes; });
  if (list.size() > most_misses) list.resize(most_misses);
  return list;
}

bool Advisor::fits(const Offer& offer) {
  const std::optional<uint64_t> bytes = least_bytes(offer);
  return bytes && *bytes <= budget_;
}

bool Advisor::try_steps(Steps steps) {
  const std::optional<uint64_t> bytes = least_bytes(Offer{steps});
  if (!bytes) return false;
  (*bytes <= budget_ ? fitting_ : failing_).push_back(steps);
  return *bytes <= budget_;
}

bool Advisor::contains_fitting(Steps steps) const {
  return std::any_of(fitting_.begin(), fitting_.end(), [&](Steps f) { return contains(steps, f); });
}

bool Advisor::is_pruned(Steps steps) const {
  // A fused update may need more bytes: it computes the whole batch at once.
  const auto is_part = [&](Steps f) {
    return contains(f, steps) && ((f ^ steps) & bit(Step::fused_update)) == 0;
  };
  return contains_fitting(steps) || std::any_of(failing_.begin(), failing_.end(), is_part);
}

void Advisor::add(const std::vector<Steps>& list, size_t most) {
  size_t added = 0;
  for (Steps steps : list) {
    if (added == most) return;
    if (is_pruned(steps) || !try_steps(steps)) continue;
    lines_.push_back({steps});
    ++added;
  }
}

void Advisor::add_with_free(const std::vector<Steps>& list, size_t most) {
  const size_t before = lines_.size();
  add(list, most);
  if (lines_.size() > before || free_.empty()) return;
  std::vector<Steps> with;
  for (Steps steps : list) with.push_back(steps | free_.back());
  add(with, most);
}

void Advisor::add_host() {
  if (!(possible_ & bit(Step::host_memory))) return;
  const auto fits = [&](Steps with) {
    return least_host_bytes({bit(Step::host_memory) | with, size_limit}, Effort::rough).has_value();
  };
  std::vector<Steps> list{0};
  list.insert(list.end(), free_.begin(), free_.end());
  std::erase_if(list, [&](Steps with) { return contains_fitting(with); });
  for (Steps with : list) {
    if (!fits(with)) continue;
    lines_.push_back({bit(Step::host_memory) | with, size_limit});
    return;
  }
}

std::optional<uint64_t> Advisor::least_host_bytes(const Offer& offer, Effort effort) {
  const Request changed = changed_request(request_, offer);
  const std::optional<GraphSource> source = source_of(offer, changed);
  if (!source) return std::nullopt;
  SearchSpace space(*source, numerics_of(changed, smallest_state_bits(changed)), changed, profile_of(changed),
                    effort, &space_);
  return space.least_host_bytes(budget_ - reserve_);
}

std::vector<Steps> Advisor::bases(std::vector<Steps> adapters) const {
  std::vector<Steps> list{0};
  if (!free_.empty()) list.push_back(free_.back());
  std::vector<Steps> smallest = smallest_formats(possible_);
  // Another optimizer or no clipping as well as shorter samples is far from the request.
  if (smallest.size() > 1 && !fitting_.empty()) smallest.resize(1);
  smallest.insert(smallest.end(), adapters.begin(), adapters.end());
  for (Steps steps : smallest) list.push_back(steps | (free_.empty() ? 0 : free_.back()));
  std::erase_if(list, [&](Steps steps) { return contains_fitting(steps); });
  return list;
}

// Interpolates between a length that fits and one that does not, since bytes grow nearly in proportion.
int64_t Advisor::longest_sequence(Offer offer, int64_t least) {
  Offer unchanged = offer;
  unchanged.steps &= ~bit(Step::sequence);
  const std::optional<uint64_t> whole = least_bytes(unchanged);
  auto excess_of = [&](int64_t length) {
    offer.sequence = length;
    const auto bytes = static_cast<double>(least_bytes(offer).value_or(size_limit));
    return bytes - static_cast<double>(budget_);
  };
  int64_t low = least / sequence_step * sequence_step, high = request_.sequence;
  double below = excess_of(low),
         above = static_cast<double>(whole.value_or(0)) - static_cast<double>(budget_);
  if (!whole || below > 0 || above <= 0) return 0;
  for (int last = 0; high - low > sequence_step;) {  // the end that moved last: 1 is `high`, -1 `low`
    const double share = below / (below - above);
    const auto steps = static_cast<int64_t>(share * static_cast<double>((high - low) / sequence_step));
    const int64_t middle =
        low + std::clamp<int64_t>(steps, 1, (high - low - 1) / sequence_step) * sequence_step;
    const double excess = excess_of(middle);
    // If one end moves twice, halving the other's excess draws the next length towards that end.
    const int now = excess > 0 ? 1 : -1;
    if (now > 0) high = middle, above = excess;
    else low = middle, below = excess;
    if (now == last) (now > 0 ? below : above) /= 2;
    last = now;
  }
  return low;
}

void Advisor::add_shorter(const std::vector<Steps>& bases) {
  if (!(possible_ & bit(Step::sequence))) return;
  // Much shorter samples are a last resort.
  const int64_t least =
      fitting_.empty() ? shortest_sequence : std::max(shortest_sequence, request_.sequence / 4);
  for (Steps base : bases) {
    Offer offer{base | bit(Step::sequence)};
    offer.sequence = longest_sequence(offer, least);
    if (offer.sequence == 0) continue;
    lines_.push_back(offer);
    return;
  }
}

void Advisor::add_smaller(const std::vector<Steps>& bases) {
  if (!(possible_ & bit(Step::model))) return;
  for (const std::string& preset : alternatives_.smaller_presets()) {
    for (Steps base : bases) {
      Offer offer{base | bit(Step::model)};
      offer.preset = preset;
      if (!fits(offer)) continue;
      // Fewer changes may be enough.
      for (Steps steps : format_offers(possible_)) {
        Offer fewer = offer;
        fewer.steps = steps | bit(Step::model);
        if (!contains(base, steps) || !fits(fewer)) continue;
        offer = fewer;
        break;
      }
      lines_.push_back(offer);
      return;
    }
  }
}

void Advisor::add_host_with_changes() {
  if (!(possible_ & bit(Step::host_memory)) || budget_ <= reserve_) return;
  const std::vector<Steps> adapters = adapter_offers(possible_, has_adapters_);
  std::vector<Offer> offers;
  for (Steps steps : bases(adapters.empty() ? adapters : std::vector{adapters.back()}))
    if (!(steps & bit(Step::fused_update))) offers.push_back({steps | bit(Step::host_memory), size_limit});
  const auto adds = [&](const Offer& offer) {
    if (!least_host_bytes(offer, Effort::rough)) return false;
    lines_.push_back(offer);
    return true;
  };
  if (offers.empty() || std::any_of(offers.begin(), offers.end(), adds)) return;
  const Offer smallest = offers.back();
  if (possible_ & bit(Step::sequence)) {
    Offer shorter = smallest;
    shorter.steps |= bit(Step::sequence);
    shorter.sequence = longest_sequence(shorter, shortest_sequence);
    if (shorter.sequence > 0 && adds(shorter)) return;
  }
  if (!(possible_ & bit(Step::model))) return;
  for (const std::string& preset : alternatives_.smaller_presets()) {
    Offer smaller = smallest;
    smaller.steps |= bit(Step::model);
    smaller.preset = preset;
    if (adds(smaller)) return;
  }
}

double Advisor::tokens_per_second(const Request& changed, uint64_t picoseconds) const {
  return static_cast<double>(changed.global_batch) * static_cast<double>(changed.sequence) /
         (static_cast<double>(picoseconds) * 1e-12);
}

std::optional<Relaxation> Advisor::relaxation(const Offer& given) {
  Offer offer = given;
  const Request changed = changed_request(request_, offer);
  const std::optional<GraphSource> source = source_of(offer, changed);
  if (!source) return std::nullopt;
  const bool to_host = offer.has(Step::host_memory);
  const auto planned = [&](const Request& to, bool tight_host) {
    return search_alone(*source, to, space_,
                        {.minimum = to_host ? Wanted::Minimum::none : Wanted::Minimum::rough,
                         .programs = false,
                         .tight_host = tight_host});
  };
  Result<Plan> plan = planned(changed, to_host);
  if (plan && to_host) {
    // If the host memory is still unlimited, no plan fits, and this is the smallest plan.
    const bool is_limited = plan->request.host_bytes < given.host_bytes;
    offer.host_bytes = is_limited ? plan->request.host_bytes : round_up(plan->bytes.host, mebibyte);
    if (!plan->fits) {
      // With more host memory, a search may reach a plan that it does not reach with what that plan takes.
      const uint64_t least = least_host_bytes(given, Effort::full).value_or(0);
      offer.host_bytes = std::max(round_up(least, mebibyte), offer.host_bytes);
      plan = planned(changed_request(request_, offer), false);
    }
  }
  if (!plan) return std::nullopt;
  Relaxation r;
  r.change = change_text(request_, offer);
  r.flags = flags_text(r.change);
  r.effect = effect_text(offer);
  r.fits = plan->fits;
  r.changes_numerics = changes_numerics(offer.steps);
  r.peak_bytes = plan->fits ? plan->bytes.peak : plan->minimum_bytes;
  const uint64_t now = to_host ? plan->bytes.peak : plan->minimum_bytes;
  r.saves_bytes = least_ > now ? least_ - now : 0;
  r.tokens_per_second = tokens_per_second(changed, plan->step_picoseconds);
  const uint64_t unlimited = space_.unlimited();
  r.costs_fraction = tokens_per_second(request_, unlimited) / r.tokens_per_second - 1;
  r.host_bytes = plan->bytes.host;
  if (to_host && plan->fits)
    r.least_host_bytes = std::min(least_host_bytes(given, Effort::full).value_or(r.host_bytes), r.host_bytes);
  return r;
}

std::string Advisor::smallest_card(const Offer& offer) {
  std::vector<const DeviceProfile*> cards;
  for (const DeviceProfile& card : device_profiles())
    if (card.cuda && card.memory_bytes > budget_) cards.push_back(&card);
  std::stable_sort(cards.begin(), cards.end(), [](const DeviceProfile* a, const DeviceProfile* b) {
    return a->memory_bytes < b->memory_bytes;
  });
  for (const DeviceProfile* card : cards) {
    Request on_card = changed_request(request_, offer);
    on_card.device = card->name;
    on_card.calibrated.reset();
    on_card.device_memory = on_card.memory_bytes = card->memory_bytes;
    const std::optional<GraphSource> source = source_of(offer, on_card);
    const std::optional<Least> needs = source ? least_bytes(*source, on_card, nullptr, false) : std::nullopt;
    if (needs && needs->bytes <= card->memory_bytes)
      return std::string(card->name) + " (" + human_bytes(card->memory_bytes) + ")";
  }
  return "";
}

std::string Advisor::shortage(const Offer& best, const std::string& change) {
  const Request changed = changed_request(request_, best);
  const std::optional<GraphSource> source = source_of(best, changed);
  if (!source) return "";
  const Result<Plan> plan = search_alone(*source, changed, space_, {});
  if (!plan) return "";
  const Bytes& b = plan->bytes;
  std::string text = "no setting makes this fit: ";
  if (!change.empty() && reserve_ < budget_) text += "even with " + words_of(flags_text(change)) + ", ";
  uint64_t lasting = 0;
  for (MemoryClass c : {MemoryClass::parameters, MemoryClass::gradients, MemoryClass::optimizer})
    lasting = size_add(lasting, b.of[static_cast<size_t>(c)]);
  if (reserve_ >= budget_)
    text += "the device's reserve of " + human_bytes(reserve_) + " takes the whole budget";
  else if (size_add(lasting, reserve_) >= budget_)
    text += "the weights, with gradients and states, take " + human_bytes(lasting);
  else text += "one sample's activations take " + human_bytes(b.arena - lasting);
  if (reserve_ > 0 && reserve_ < budget_) text += " beside a reserve of " + human_bytes(reserve_);
  if (!profile_of(request_).cuda)
    return text + "; the smallest budget that would do is " + human_bytes(plan->minimum_bytes);
  const std::string as_it_is = smallest_card({});
  if (!as_it_is.empty()) return text + "; the smallest card for the request is " + as_it_is;
  const std::string with = smallest_card(best);
  return text + (with.empty() ? "; no card with a profile would do"
                              : "; with these settings the smallest card is " + with);
}

std::vector<Relaxation> Advisor::fitting_lines() {
  std::vector<Relaxation> list;
  for (const Offer& offer : lines_)
    if (std::optional<Relaxation> r = relaxation(offer); r && r->fits) list.push_back(std::move(*r));
  return list;
}

Advice Advisor::advice() {
  add(free_, free_.size());
  const bool is_free = !lines_.empty();
  add_host();
  if (!is_free) {
    // Answers for the smallest combinations save most other questions.
    std::vector<Steps> smallest = smallest_formats(possible_);
    const std::vector<Steps> adapters = adapter_offers(possible_, has_adapters_);
    if (!adapters.empty() && !fits({adapters[0]})) smallest.push_back(adapters.back());
    for (Steps steps : smallest)
      if (const auto bytes = least_bytes(Offer{steps}); bytes && *bytes > budget_) failing_.push_back(steps);
    add_with_free(format_offers(possible_), most_formats);
    size_t formats_end = lines_.size();
    add_with_free(adapters, most_adapters);
    add_shorter(bases(adapters.empty() ? adapters : std::vector{adapters.back()}));
    add_smaller(bases(adapters));
    while (lines_.size() > most_lines) lines_.erase(lines_.begin() + static_cast<ptrdiff_t>(--formats_end));
  }
  Advice advice{fitting_lines(), ""};
  if (!advice.relaxations.empty()) return advice;
  lines_.clear();
  add_host_with_changes();
  advice.relaxations = fitting_lines();
  if (!advice.relaxations.empty()) return advice;
  if (possible_ & bit(Step::host_memory)) least_bytes({bit(Step::host_memory), size_limit});
  const std::vector<Miss> misses = closest_misses();
  for (const Miss& miss : misses)
    if (std::optional<Relaxation> r = relaxation(miss.offer)) advice.relaxations.push_back(std::move(*r));
  advice.shortage = shortage(misses.empty() ? Offer{} : misses[0].offer,
                             advice.relaxations.empty() ? "" : advice.relaxations[0].change);
  return advice;
}

}  // namespace

Candidate fastest_of_smallest(SearchSpace& space) {
  return *space.fastest(space.arena(space.smallest().decisions));
}

Advice relaxations(const GraphSource& source, const Request& request, const Alternatives& alternatives,
                   SearchSpace& space, uint64_t arena_budget) {
  return Advisor(source, request, alternatives, space, arena_budget).advice();
}

}  // namespace stw
