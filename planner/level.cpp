#include "planner/level.h"

#include <algorithm>
#include <array>

#include "planner/inference.h"

namespace stw {

uint64_t offloaded_input_bytes(const Graph& graph, const Offload& offload, int64_t samples, uint64_t alignment) {
  uint64_t sum = 0;
  for (const Segment& s : graph.segments)
    if (s.kind == SegmentKind::block && s.block < offload[Offloaded::inputs])
      sum = size_add(sum, round_up(graph.at(s.input).bytes(samples), alignment));
  return sum;
}

Level::Level(const SearchContext& context, const Offload& offload)
    : c_(context), offload_(offload), arena_(make_arena(c_.graph, c_.device.alignment, offload)) {
  const Program update = build_update(c_.graph, arena_, c_.request.threads);
  update_ = c_.pricing.program(update, offload.overlap);
  const auto [prefill, decode] = build_generate(c_.graph, arena_, c_.request.threads);
  for (const Program* p : {&update, &prefill, &decode})
    if (!p->instructions.empty()) floor_ = std::max(floor_, live_bound(*p, c_.device.alignment));
  make_profiles();
  const uint64_t one = offloaded_input_bytes(c_.graph, offload, 1, c_.device.alignment);
  for (int64_t m : c_.micro_batches) {
    const uint64_t inputs = offloaded_input_bytes(c_.graph, offload, m, c_.device.alignment);
    if (!offload.any() || size_add(arena_.host_bytes - one, inputs) <= c_.request.host_bytes) micro_batches_.push_back(m);
  }
}

// Segments are of one kind where they and what is copied beside them are alike.
void Level::make_profiles() {
  const std::vector<int>& classes = c_.pricing.classes();
  const std::vector<Segment>& segments = c_.graph.segments;
  using Place = std::array<int, 3>;   // class, which of its tensors lie in host memory, whether its output does
  auto place = [&](size_t s) {
    int away = 0;
    for (Offloaded what : {Offloaded::gradients, Offloaded::weights, Offloaded::inputs})
      away = 2 * away + (segments[s].kind == SegmentKind::block && segments[s].block < offload_[what]);
    return Place{classes[s], away, segments[s].output >= 0 && arena_.on_host(segments[s].output)};
  };
  std::map<std::array<Place, 3>, size_t> known;
  const Place none{-1, 0, 0};
  for (size_t s = 0; s + 1 < segments.size(); ++s) {
    const Place before = s > 0 ? place(s - 1) : none, after = place(s + 1);
    const bool beside = offload_.overlap && offload_.any();
    const auto [entry, is_new] = known.try_emplace({place(s), beside && before[1] ? before : none, beside && after[1] ? after : none}, known.size());
    if (is_new) profiles_.emplace_back(c_.graph, arena_, s, c_.request.threads, c_.request.recompute, neighbour_copies(c_.graph, arena_, s));
    if (!runs_.empty() && runs_.back().first == entry->second) runs_.back().second += 1;
    else runs_.push_back({entry->second, 1});
  }
}

// Bytes that every choice needs: what is there before, and what every segment leaves to the next.
uint64_t Level::least_bytes(int64_t m) const {
  uint64_t sum = arena_.gradients_end;
  for (const Segment& s : c_.graph.segments)
    if (s.output >= 0 && !arena_.on_host(s.output)) sum = size_add(sum, c_.graph.at(s.output).bytes(m));
  return sum;
}

const Level::Choices& Level::choices(int64_t m) {
  const auto [entry, is_new] = choices_.try_emplace(m);
  Choices& c = entry->second;
  if (!is_new) return c;
  const int64_t batch = c_.request.global_batch, rest = batch % m;
  const uint64_t next_steps = static_cast<uint64_t>(batch / m) - 1;
  std::vector<Stretch> runs;
  for (const SegmentProfile& profile : profiles_) {
    // One first micro-step, whole ones after it, and a short one.
    Stretch run;
    run.variants = profile.at(m, c_.pricing, !offload_.any());
    auto add = [&](const std::vector<Variant>& more, uint64_t times) {
      for (size_t v = 0; v < more.size(); ++v)
        run.variants[v].picoseconds = size_add(run.variants[v].picoseconds, size_mul(more[v].picoseconds, times));
    };
    if (next_steps > 0) add(offload_.any() ? profile.at(m, c_.pricing) : run.variants, next_steps);
    if (rest > 0) add(profile.at(rest, c_.pricing), 1);
    normalise(run);
    runs.push_back(std::move(run));
  }
  for (const auto& [profile, count] : runs_) {
    c.runs.push_back(runs[profile]);
    c.runs.back().count = count;
  }
  Stretch head;
  for (int64_t chunks = 1; chunks <= largest_loss_chunks; chunks *= 2) {
    if (chunks > 1 && chunk_rows(m * c_.graph.sequence, chunks) == chunk_rows(m * c_.graph.sequence, chunks / 2)) break;
    head.variants.push_back(head_variant(c_.graph, arena_, c_.request.threads, m, chunks));
    head.variants.back().picoseconds = size_add(c_.pricing.micro_steps(m, chunks, batch), update_);
  }
  normalise(head);
  c.runs.push_back(std::move(head));
  c.fixed_bytes = static_cast<int64_t>(arena_.gradients_end);
  for (int t : {c_.graph.tokens, c_.graph.targets}) c.fixed_bytes += static_cast<int64_t>(round_up(c_.graph.at(t).bytes(m), c_.device.alignment));
  return c;
}

Candidate Level::candidate(int64_t m, const StackChoice& choice) {
  const Choices& c = choices(m);
  Candidate result;
  result.decisions.micro_batch = m;
  result.decisions.offload = offload_;
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

int64_t Level::limit_of(int64_t m, uint64_t arena_bytes) {
  return static_cast<int64_t>(std::min<uint64_t>(arena_bytes, size_limit)) - choices(m).fixed_bytes;
}

uint64_t Level::relaxed(int64_t m, uint64_t arena_bytes) { return relaxed_picoseconds(choices(m).runs, limit_of(m, arena_bytes)); }

std::optional<Candidate> Level::fastest_alive(uint64_t arena_bytes) {
  if (floor_ > arena_bytes) return std::nullopt;
  struct Found { int64_t micro_batch; StackChoice choice; };
  std::vector<Found> best;      // all of the same time
  uint64_t bound = UINT64_MAX;
  std::vector<std::pair<uint64_t, int64_t>> order;   // by the relaxation
  for (int64_t m : micro_batches_)
    if (least_bytes(m) <= arena_bytes) order.push_back({relaxed(m, arena_bytes), m});
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [least, m] : order) {
    const uint64_t known = best.empty() ? UINT64_MAX : best[0].choice.picoseconds + 1;   // equal ones are wanted too
    if (least >= known) break;
    StackAnswer answer = choose(choices(m).runs, limit_of(m, arena_bytes), known);
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

std::optional<Candidate> Level::fastest(uint64_t arena_bytes) {
  if (micro_batches_.empty()) return std::nullopt;
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
  Candidate last = *smallest();
  if (arena(last.decisions) > arena_bytes) return std::nullopt;
  last.bound_picoseconds = bound.value_or(last.picoseconds);
  return last;
}

const std::optional<Candidate>& Level::smallest() {
  if (knows_smallest_ || micro_batches_.empty()) return smallest_;
  knows_smallest_ = true;
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
  return smallest_;
}

uint64_t Level::arena(const Decisions& decisions) {
  std::vector<int64_t> key{decisions.micro_batch, decisions.loss_chunks};
  key.insert(key.end(), decisions.saved.begin(), decisions.saved.end());
  const auto [entry, is_new] = arenas_.try_emplace(std::move(key), 0);
  if (is_new) entry->second = programs(decisions).arena_bytes;
  return entry->second;
}

Programs Level::programs(const Decisions& decisions) const {
  return make_programs(c_.graph, decisions, c_.request.global_batch, c_.request.threads, c_.device.alignment);
}

}  // namespace stw
