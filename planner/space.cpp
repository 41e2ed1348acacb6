#include "planner/space.h"

#include <algorithm>

#include "planner/inference.h"

namespace stw {

namespace {

// Sums of bytes stay far from the ends of 64 bits.
constexpr uint64_t most_bytes = uint64_t{1} << 56;
// Every micro-batch up to this one is tried, and of larger ones those that a number of micro-steps gives.
constexpr int64_t dense_micro_batches = 1024;

std::vector<int64_t> micro_batches(const Request& request) {
  const int64_t batch = request.global_batch;
  if (request.micro_batch > 0) return {request.micro_batch};
  std::vector<int64_t> list;
  for (int64_t m = 1; m <= std::min(batch, dense_micro_batches); ++m) list.push_back(m);
  for (int64_t steps = 1; (batch + steps - 1) / steps > dense_micro_batches; steps += steps < 16 ? 1 : steps / 8)
    list.push_back((batch + steps - 1) / steps);
  return list;
}

}  // namespace

Space::Space(const GraphSource& source, const Numerics& numerics, const Request& request, const DeviceProfile& device)
    : numerics_(numerics), request_(request), device_(device), graph_(source(numerics)),
      arena_(make_arena(graph_, device.alignment)), pricing_(graph_, device, request.threads) {
  const std::vector<int>& classes = pricing_.classes();
  for (size_t s = 0; s + 1 < graph_.segments.size(); ++s) {
    const auto c = static_cast<size_t>(classes[s]);   // numbered in the order of first appearance
    if (c == profiles_.size()) profiles_.emplace_back(graph_, arena_, s, request.threads, request.recompute);
    if (!runs_.empty() && runs_.back().first == c) runs_.back().second += 1;
    else runs_.push_back({c, 1});
  }
  const Program update = build_update(graph_, arena_, request.threads);
  const auto [prefill, decode] = build_generate(graph_, arena_, request.threads);
  for (const Program* p : {&update, &prefill, &decode})
    if (!p->instructions.empty()) floor_ = std::max(floor_, live_bound(*p, device.alignment));
  micro_batches_ = micro_batches(request);
  std::erase_if(micro_batches_, [&](int64_t m) { return !is_countable(m); });
  std::stable_sort(micro_batches_.begin(), micro_batches_.end(), [&](int64_t a, int64_t b) {
    const uint64_t x = pricing_.fixed(a, 1, request.global_batch), y = pricing_.fixed(b, 1, request.global_batch);
    return x != y ? x < y : a < b;
  });
}

// All tensors of a micro-step at once are more than any choice keeps.
bool Space::is_countable(int64_t m) const {
  uint64_t sum = 0;
  for (const Tensor& t : graph_.tensors) sum = size_add(sum, t.bytes(m));
  return sum <= most_bytes;
}

// Bytes that every choice needs: what is there before, and what every segment leaves to the next.
uint64_t Space::least_bytes(int64_t m) const {
  uint64_t sum = arena_.gradients_end;
  for (const Segment& s : graph_.segments)
    if (s.output >= 0) sum = size_add(sum, graph_.at(s.output).bytes(m));
  return sum;
}

const Space::Choices& Space::choices(int64_t m) {
  const auto [entry, is_new] = choices_.try_emplace(m);
  Choices& c = entry->second;
  if (!is_new) return c;
  const int64_t batch = request_.global_batch, rest = batch % m;
  const uint64_t steps = static_cast<uint64_t>(batch / m);
  std::vector<Stretch> runs;
  for (const SegmentProfile& profile : profiles_) {
    Stretch run;
    run.variants = profile.at(m, pricing_);
    for (Variant& v : run.variants) v.picoseconds = size_mul(v.picoseconds, steps);
    if (rest > 0) {
      const std::vector<Variant> last = profile.at(rest, pricing_);
      for (size_t v = 0; v < last.size(); ++v)
        run.variants[v].picoseconds = size_add(run.variants[v].picoseconds, last[v].picoseconds);
    }
    normalise(run);
    runs.push_back(std::move(run));
  }
  for (const auto& [profile, count] : runs_) {
    c.runs.push_back(runs[profile]);
    c.runs.back().count = count;
  }
  Stretch head;
  for (int64_t chunks = 1; chunks <= largest_loss_chunks; chunks *= 2) {
    if (chunks > 1 && chunk_rows(m * graph_.sequence, chunks) == chunk_rows(m * graph_.sequence, chunks / 2)) break;
    head.variants.push_back(head_variant(graph_, arena_, request_.threads, m, chunks));
    head.variants.back().picoseconds = pricing_.fixed(m, chunks, batch);
  }
  normalise(head);
  c.runs.push_back(std::move(head));
  c.fixed_bytes = static_cast<int64_t>(arena_.gradients_end);
  for (int t : {graph_.tokens, graph_.targets}) c.fixed_bytes += static_cast<int64_t>(round_up(graph_.at(t).bytes(m), device_.alignment));
  return c;
}

Candidate Space::candidate(int64_t m, const StackChoice& choice) {
  const Choices& c = choices(m);
  Candidate result;
  result.decisions.micro_batch = m;
  for (size_t run = 0; run < c.runs.size(); ++run)
    for (const auto& [variant, count] : choice.parts[run]) {
      const uint32_t saved = c.runs[run].variants[static_cast<size_t>(variant)].saved;
      if (run + 1 == c.runs.size()) result.decisions.loss_chunks = saved;
      result.decisions.saved.insert(result.decisions.saved.end(), static_cast<size_t>(count), run + 1 == c.runs.size() ? ~0u : saved);
    }
  result.picoseconds = result.bound_picoseconds = choice.picoseconds;
  result.live_bytes = std::max(floor_, static_cast<uint64_t>(c.fixed_bytes + choice.peak));
  return result;
}

std::optional<Candidate> Space::fastest_alive(uint64_t arena_bytes) {
  if (floor_ > arena_bytes) return std::nullopt;
  struct Found { int64_t micro_batch; StackChoice choice; };
  std::vector<Found> best;      // all of the same time
  uint64_t bound = UINT64_MAX;
  const auto limit_of = [&](int64_t m) {
    return static_cast<int64_t>(std::min<uint64_t>(arena_bytes, size_limit)) - choices(m).fixed_bytes;
  };
  std::vector<std::pair<uint64_t, int64_t>> order;   // by the relaxation
  for (int64_t m : micro_batches_)
    if (least_bytes(m) <= arena_bytes) order.push_back({relaxed_picoseconds(choices(m).runs, limit_of(m)), m});
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [least, m] : order) {
    const uint64_t known = best.empty() ? UINT64_MAX : best[0].choice.picoseconds + 1;   // equal ones are wanted too
    if (least >= known) break;
    StackAnswer answer = choose(choices(m).runs, limit_of(m), known);
    bound = std::min(bound, answer.bound_picoseconds);
    if (!answer.choice) continue;
    if (!best.empty() && answer.choice->picoseconds < best[0].choice.picoseconds) best.clear();
    best.push_back({m, std::move(*answer.choice)});
  }
  if (best.empty()) return std::nullopt;
  // Of equal times the smallest peak.
  std::optional<Candidate> answer;
  for (Found& f : best) {
    const Choices& c = choices(f.micro_batch);
    for (;;) {
      StackAnswer tighter = choose(c.runs, f.choice.peak - 1, f.choice.picoseconds + 1);
      if (!tighter.choice) break;
      f.choice = std::move(*tighter.choice);
    }
    Candidate made = candidate(f.micro_batch, f.choice);
    if (!answer || made.live_bytes < answer->live_bytes) answer = std::move(made);
  }
  answer->bound_picoseconds = std::min(bound, answer->picoseconds);
  return answer;
}

std::optional<Candidate> Space::fastest(uint64_t arena_bytes) {
  if (is_empty()) return std::nullopt;
  uint64_t limit = arena_bytes;
  std::optional<uint64_t> bound;   // of the first stair: whatever fits needs this long
  while (auto stair = fastest_alive(limit)) {
    if (!bound) bound = stair->bound_picoseconds;
    if (arena(stair->decisions) <= arena_bytes) {
      stair->bound_picoseconds = *bound;
      return stair;
    }
    limit = stair->live_bytes - 1;
  }
  Candidate last = smallest();
  if (arena(last.decisions) > arena_bytes) return std::nullopt;
  last.bound_picoseconds = bound.value_or(last.picoseconds);
  return last;
}

const Candidate& Space::smallest() {
  if (smallest_) return *smallest_;
  std::vector<int64_t> order = micro_batches_;
  std::sort(order.begin(), order.end());
  for (int64_t m : order) {
    Candidate c = candidate(m, stw::smallest(choices(m).runs));
    if (smallest_ && c.live_bytes >= arena(smallest_->decisions)) break;   // more samples need more
    if (!smallest_ || arena(c.decisions) < arena(smallest_->decisions)) smallest_ = std::move(c);
  }
  // Where its layout has a gap, a stair with more bytes alive may have the smaller arena.
  uint64_t limit = arena(smallest_->decisions) - 1;
  while (auto stair = fastest_alive(limit)) {
    limit = stair->live_bytes - 1;
    if (arena(stair->decisions) >= arena(smallest_->decisions)) continue;
    smallest_ = std::move(*stair);
  }
  return *smallest_;
}

uint64_t Space::arena(const Decisions& decisions) {
  std::vector<int64_t> key{decisions.micro_batch, decisions.loss_chunks};
  key.insert(key.end(), decisions.saved.begin(), decisions.saved.end());
  const auto [entry, is_new] = arenas_.try_emplace(std::move(key), 0);
  if (is_new) entry->second = programs(decisions).arena_bytes;
  return entry->second;
}

Programs Space::programs(const Decisions& decisions) const {
  return make_programs(graph_, decisions, request_.global_batch, request_.threads, device_.alignment);
}

}  // namespace stw
