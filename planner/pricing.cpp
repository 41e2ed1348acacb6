#include "planner/pricing.h"

#include <algorithm>
#include <set>

namespace stw {

Pricing::Pricing(const Graph& graph, const DeviceProfile& device, int threads)
    : graph_(graph), device_(device), threads_(threads), persistent_(make_arena(graph, device.alignment).gradients_end) {
  for (const Op& o : graph.update_ops) update_ = size_add(update_, op(o, 1, graph.sequence));
}

uint64_t Pricing::op(const Op& o, int64_t samples, int64_t rows) const {
  return op_picoseconds(device_, graph_.compute, threads_, op_row(o.kind).cost(graph_, o, {samples, rows, threads_}));
}

uint64_t Pricing::program(const Program& program) const {
  uint64_t sum = 0;
  for (const Instruction& i : program.instructions) sum = size_add(sum, op(graph_.op(i.op), i.samples, i.rows));
  return sum;
}

std::vector<int> Pricing::recomputed_ops(const Segment& segment, uint32_t saved) const {
  std::set<int> there, again;   // ops whose outputs are at hand, ops that run again
  for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
    if (saved >> bit & 1) there.insert(segment.saveable[bit]);
  auto need = [&](auto&& self, int tensor) -> void {
    if (tensor < 0) return;
    const int p = graph_.producer[static_cast<size_t>(tensor)];
    if (p < segment.first_op || p >= segment.first_op + segment.op_count || tensor == segment.output) return;
    if (there.count(p) || !again.insert(p).second) return;
    for (int t : graph_.ops[static_cast<size_t>(p)].inputs) self(self, t);
  };
  for (int i = 0; i < segment.gradient_op_count; ++i)
    for (int t : graph_.gradient_ops[static_cast<size_t>(segment.first_gradient_op + i)].inputs) need(need, t);
  return {again.begin(), again.end()};
}

uint64_t Pricing::recompute_segment(size_t s, uint32_t saved, int64_t samples) const {
  uint64_t sum = 0;
  for (int i : recomputed_ops(graph_.segments[s], saved))
    sum = size_add(sum, op(graph_.ops[static_cast<size_t>(i)], samples, samples * graph_.sequence));
  return sum;
}

uint64_t Pricing::kept_bytes(const Segment& segment, uint32_t saved) const {
  uint64_t sum = graph_.at(segment.output).bytes(1);
  for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
    if (saved >> bit & 1)
      for (int t : graph_.ops[static_cast<size_t>(segment.saveable[bit])].outputs)
        if (t != segment.output) sum = size_add(sum, graph_.at(t).bytes(1));
  return sum;
}

std::vector<Rung> Pricing::ladder(Recompute recompute) const {
  size_t block = graph_.segments.size();
  for (size_t s = 0; s < graph_.segments.size() && block == graph_.segments.size(); ++s)
    if (graph_.segments[s].kind == SegmentKind::block) block = s;
  if (block == graph_.segments.size()) return {{~0u, 0, 0}};
  const Segment& segment = graph_.segments[block];
  const uint32_t sets = 1u << segment.saveable.size();
  std::vector<Rung> all;
  for (uint32_t saved = 0; saved < sets; ++saved) {
    if (recompute == Recompute::none && saved != sets - 1) continue;
    if (recompute == Recompute::full && saved != 0) continue;
    all.push_back({saved, kept_bytes(segment, saved), recompute_segment(block, saved, 1)});
  }
  // Most bytes first; of equal bytes the cheapest. Then the lower convex hull of time over bytes.
  std::stable_sort(all.begin(), all.end(), [](const Rung& a, const Rung& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.picoseconds < b.picoseconds;
  });
  std::vector<Rung> pareto;   // fewest bytes first, cheaper and cheaper
  for (auto rung = all.rbegin(); rung != all.rend(); ++rung) {
    while (!pareto.empty() && pareto.back().bytes == rung->bytes && pareto.back().picoseconds >= rung->picoseconds) pareto.pop_back();
    if (pareto.empty() || rung->picoseconds < pareto.back().picoseconds) pareto.push_back(*rung);
  }
  std::vector<Rung> hull;
  for (const Rung& r : pareto) {
    auto above = [&] {   // is the middle point above the line from the one before it to r?
      const Rung &a = hull[hull.size() - 2], &b = hull.back();
      return static_cast<__int128>(b.bytes - a.bytes) * static_cast<__int128>(a.picoseconds - r.picoseconds) >=
             static_cast<__int128>(r.bytes - a.bytes) * static_cast<__int128>(a.picoseconds - b.picoseconds);
    };
    while (hull.size() >= 2 && above()) hull.pop_back();
    hull.push_back(r);
  }
  std::reverse(hull.begin(), hull.end());
  return hull;
}

uint64_t Pricing::micro(const Decisions& decisions, int64_t samples) const {
  auto [entry, is_new] = micro_.try_emplace({samples, decisions.loss_chunks}, 0);
  if (is_new) entry->second = compute_micro(decisions, samples);
  return entry->second;
}

uint64_t Pricing::compute_micro(const Decisions& decisions, int64_t samples) const {
  const int64_t rows = samples * graph_.sequence;
  const Segment& head = graph_.segments.back();
  uint64_t sum = 0;
  for (int i = 0; i < head.first_op; ++i) sum = size_add(sum, op(graph_.ops[static_cast<size_t>(i)], samples, rows));
  for (size_t i = static_cast<size_t>(head.gradient_op_count); i < graph_.gradient_ops.size(); ++i)
    sum = size_add(sum, op(graph_.gradient_ops[i], samples, rows));
  const int64_t step = chunk_rows(rows, decisions.loss_chunks);
  auto chunk = [&](int64_t n) {
    uint64_t t = op(graph_.ops[static_cast<size_t>(head.first_op)], samples, n);
    for (int i = 0; i < head.gradient_op_count; ++i) t = size_add(t, op(graph_.gradient_ops[static_cast<size_t>(i)], samples, n));
    return t;
  };
  sum = size_add(sum, size_mul(static_cast<uint64_t>(rows / step), chunk(step)));
  if (rows % step > 0) sum = size_add(sum, chunk(rows % step));
  return size_add(sum, op(graph_.ops[static_cast<size_t>(head.first_op + head.op_count - 1)], samples, rows));
}

namespace {

template <class F>
uint64_t over_micro_steps(int64_t global_batch, int64_t m, const F& time) {
  const uint64_t whole = size_mul(static_cast<uint64_t>(global_batch / m), time(m));
  return global_batch % m == 0 ? whole : size_add(whole, time(global_batch % m));
}

}  // namespace

uint64_t Pricing::recompute(const Decisions& decisions, int64_t global_batch) const {
  return over_micro_steps(global_batch, decisions.micro_batch, [&](int64_t samples) {
    // Blocks are alike: one price for each save-set.
    uint64_t sum = 0;
    for (size_t s = 0; s + 1 < graph_.segments.size(); ++s) {
      auto [entry, is_new] = recompute_.try_emplace({graph_.segments[s].kind, decisions.saved[s], samples}, 0);
      if (is_new) entry->second = recompute_segment(s, decisions.saved[s], samples);
      sum = size_add(sum, entry->second);
    }
    return sum;
  });
}

uint64_t Pricing::step(const Decisions& decisions, int64_t global_batch) const {
  const uint64_t work = over_micro_steps(global_batch, decisions.micro_batch,
                                         [&](int64_t samples) { return micro(decisions, samples); });
  return size_add(size_add(work, recompute(decisions, global_batch)), update_);
}

uint64_t Pricing::least_bytes(const Decisions& decisions) const {
  uint64_t sample = size_add(graph_.at(graph_.tokens).bytes(1), graph_.at(graph_.targets).bytes(1));
  for (size_t s = 0; s + 1 < graph_.segments.size(); ++s) {
    // The output of the last segment before the head is alive as the head's input.
    sample = size_add(sample, kept_bytes(graph_.segments[s], decisions.saved[s]));
  }
  return size_add(persistent_, size_mul(sample, static_cast<uint64_t>(decisions.micro_batch)));
}

uint64_t Pricing::fastest(int64_t global_batch, int64_t micro_batch) const {
  uint64_t best = UINT64_MAX;
  Decisions d;
  auto consider = [&](int64_t m) {
    d.micro_batch = m;
    best = std::min(best, size_add(update_, over_micro_steps(global_batch, m, [&](int64_t n) { return micro(d, n); })));
  };
  if (micro_batch > 0) {
    consider(micro_batch);
    return best;
  }
  // Times of a micro-step are sums of maxima of linear functions and a constant: fewer, larger steps are never slower.
  consider(global_batch);
  return best;
}

}  // namespace stw
