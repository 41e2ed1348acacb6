#include "planner/space.h"

#include <algorithm>
#include <set>

namespace stw {

namespace {

// Sums of bytes stay far from the ends of 64 bits.
constexpr uint64_t most_bytes = uint64_t{1} << 56;
// Every micro-batch up to this one is tried, and of larger ones those that a number of micro-steps gives.
constexpr int64_t dense_micro_batches = 1024;
// Steps of the grid: the update's copies always cost time, those of a micro-step mostly none or too much.
constexpr int state_steps = 8, block_steps = 2;

std::vector<int64_t> micro_batches(const Request& request) {
  const int64_t batch = request.global_batch;
  if (request.micro_batch > 0) return {request.micro_batch};
  std::vector<int64_t> list;
  for (int64_t m = 1; m <= std::min(batch, dense_micro_batches); ++m) list.push_back(m);
  for (int64_t steps = 1; (batch + steps - 1) / steps > dense_micro_batches; steps += steps < 16 ? 1 : steps / 8)
    list.push_back((batch + steps - 1) / steps);
  return list;
}

// All tensors of a micro-step at once are more than any choice keeps.
bool is_countable(const Graph& graph, int64_t m) {
  uint64_t sum = 0;
  for (const Tensor& t : graph.tensors) sum = size_add(sum, t.bytes(m));
  return sum <= most_bytes;
}

// 0 to `parts` in so many steps.
std::vector<int> steps(int parts, int count) {
  std::set<int> values{0};
  for (int i = 1; i <= count; ++i) values.insert((i * parts + count - 1) / count);
  return {values.begin(), values.end()};
}

}  // namespace

Space::Space(const GraphSource& source, const Numerics& numerics, const Request& request, const DeviceProfile& device)
    : numerics_(numerics), request_(request), device_(device), graph_(source(numerics)), pricing_(graph_, device, request.threads) {
  micro_batches_ = micro_batches(request);
  std::erase_if(micro_batches_, [&](int64_t m) { return !is_countable(graph_, m); });
  std::stable_sort(micro_batches_.begin(), micro_batches_.end(), [&](int64_t a, int64_t b) {
    const uint64_t x = pricing_.fixed(a, 1, request.global_batch), y = pricing_.fixed(b, 1, request.global_batch);
    return x != y ? x < y : a < b;
  });
  make_rungs();
}

void Space::make_rungs() {
  if (request_.host_bytes == 0) {
    rungs_.emplace_back();
    return;
  }
  const int blocks = graph_.blocks();
  // States first, then masters: each of their bytes costs the same.
  std::vector<std::pair<int, int>> states;
  for (int n : steps(blocks + 1, state_steps)) states.push_back({n, 0});
  if (numerics_.precision == Precision::bf16)
    for (int n : steps(blocks + 1, state_steps / 2))
      if (n > 0) states.push_back({blocks + 1, n});
  const std::vector<int> part = steps(blocks, block_steps);
  const size_t sizes[] = {states.size(), part.size(), part.size(), part.size()};
  for (size_t u = 0; u < sizes[0]; ++u)
    for (size_t x = 0; x < sizes[1]; ++x)
      for (size_t g = 0; g < sizes[2]; ++g)
        for (size_t w = 0; w < sizes[3]; ++w) {
          Rung rung;
          rung.offload.parts = {states[u].first, states[u].second, part[g], part[w], part[x]};
          rung.offload.overlap = device_.cuda && rung.offload.any();
          auto index = [&](size_t a, size_t b, size_t c, size_t d) { return ((a * sizes[1] + b) * sizes[2] + c) * sizes[3] + d; };
          auto next = [&](size_t i, size_t k) { return std::min(i + 1, sizes[k] - 1); };
          rung.upper = index(next(u, 0), next(x, 1), next(g, 2), next(w, 3));
          measure(rung);
          rungs_.push_back(std::move(rung));
        }
}

void Space::measure(Rung& rung) const {
  const Arena arena = make_arena(graph_, device_.alignment, rung.offload);
  rung.resident_bytes = arena.gradients_end;
  rung.host_bytes = arena.host_bytes - offloaded_input_bytes(graph_, rung.offload, 1, device_.alignment);
  for (const Buffer& b : arena.host) {
    const Kind kind = graph_.at(b.tensor).kind;
    if (kind == Kind::activation) continue;
    rung.update_bytes = size_add(rung.update_bytes, b.bytes);
    if (kind == Kind::parameter) rung.weight_bytes = size_add(rung.weight_bytes, b.bytes);
    if (kind == Kind::gradient) rung.gradient_bytes = size_add(rung.gradient_bytes, b.bytes);
  }
}

Level& Space::level(size_t rung) {
  Rung& r = rungs_[rung];
  if (!r.level) r.level = std::make_unique<Level>(SearchContext{graph_, request_, device_, pricing_, micro_batches_}, r.offload);
  return *r.level;
}

uint64_t Space::copying(uint64_t bytes) const {
  return bytes == 0 ? 0 : op_picoseconds(device_, OpKind::fetch, graph_.compute, request_.threads, {0, bytes});
}

uint64_t Space::bound(const Rung& lower, const Rung& upper, uint64_t arena_bytes) {
  Level& plain = level(0);
  const uint64_t saved = rungs_[0].resident_bytes - upper.resident_bytes;
  const bool overlap = device_.cuda;
  // Gradients are read by the update and not written; all else goes both ways. Of two directions at once the longer counts.
  const uint64_t update_copies = copying(overlap ? lower.update_bytes : 2 * lower.update_bytes - lower.gradient_bytes);
  uint64_t least = UINT64_MAX;
  for (int64_t m : micro_batches_) {
    const uint64_t inputs = offloaded_input_bytes(graph_, lower.offload, m, device_.alignment);
    if (lower.offload.any() && size_add(lower.host_bytes, inputs) > request_.host_bytes) continue;
    const uint64_t room = offloaded_input_bytes(graph_, upper.offload, m, device_.alignment);
    const uint64_t relaxed = plain.relaxed(m, size_add(arena_bytes, size_add(saved, room)));
    if (relaxed == UINT64_MAX) continue;
    const uint64_t ops = relaxed - plain.update_picoseconds();
    const uint64_t steps = static_cast<uint64_t>((request_.global_batch + m - 1) / m);
    // In each direction; weights come twice and do not go, gradients come in all micro-steps but the first.
    const uint64_t in = 2 * lower.weight_bytes * steps + lower.gradient_bytes * (steps - 1), out = lower.gradient_bytes * steps;
    const uint64_t batch_inputs = size_mul(inputs / static_cast<uint64_t>(m), static_cast<uint64_t>(request_.global_batch)) / 2;
    const uint64_t micro = overlap ? std::max(ops, copying(std::max(in, out) + batch_inputs))
                                   : size_add(ops, copying(in + out + 2 * batch_inputs));
    const uint64_t update = overlap ? std::max(plain.update_picoseconds(), update_copies)
                                    : size_add(plain.update_picoseconds(), update_copies);
    least = std::min(least, size_add(micro, update));
  }
  return least;
}

std::optional<Candidate> Space::fastest(uint64_t arena_bytes) {
  if (is_empty()) return std::nullopt;
  if (rungs_.size() == 1) return level(0).fastest(arena_bytes);
  std::vector<std::pair<uint64_t, size_t>> order;
  uint64_t bound_of_all = UINT64_MAX;
  for (size_t r = 0; r < rungs_.size(); ++r) {
    order.push_back({bound(rungs_[r], rungs_[r], arena_bytes), r});
    bound_of_all = std::min(bound_of_all, bound(rungs_[r], rungs_[rungs_[r].upper], arena_bytes));
  }
  std::sort(order.begin(), order.end());
  std::optional<Candidate> best;
  size_t best_rung = 0;
  for (const auto& [least, r] : order) {
    if (least == UINT64_MAX || (best && least > best->picoseconds)) break;
    if (best && least == best->picoseconds && r > best_rung) continue;
    std::optional<Candidate> found = level(r).fastest(arena_bytes);
    if (!found) continue;
    if (best && std::pair(found->picoseconds, r) >= std::pair(best->picoseconds, best_rung)) continue;
    best = std::move(found);
    best_rung = r;
  }
  if (best) best->bound_picoseconds = std::min(best->picoseconds, bound_of_all);
  return best;
}

const Candidate& Space::smallest() {
  if (smallest_) return *smallest_;
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t r = 0; r < rungs_.size(); ++r)
    if (rungs_[r].host_bytes <= request_.host_bytes) order.push_back({rungs_[r].resident_bytes, r});
  std::sort(order.begin(), order.end());
  uint64_t least = UINT64_MAX;
  for (const auto& [resident, r] : order) {
    if (resident >= least) break;
    const std::optional<Candidate>& found = level(r).smallest();
    if (!found) continue;
    const uint64_t bytes = level(r).arena(found->decisions);
    if (bytes >= least) continue;
    least = bytes;
    smallest_ = *found;
  }
  return *smallest_;
}

uint64_t Space::arena(const Decisions& decisions) {
  for (size_t r = 0; r < rungs_.size(); ++r)
    if (rungs_[r].offload == decisions.offload) return level(r).arena(decisions);
  return programs(decisions).arena_bytes;
}

Programs Space::programs(const Decisions& decisions) const {
  return make_programs(graph_, decisions, request_.global_batch, request_.threads, device_.alignment);
}

}  // namespace stw
