#include "planner/search/pricing.h"

#include <algorithm>
#include <set>

#include "planner/graph/feed_forward.h"
#include "planner/graph/fuse.h"
#include "planner/graph/kept_rows.h"
#include "planner/program/overlap.h"
#include "planner/search/segment_class.h"

namespace stw {

// picoseconds · part / whole
static uint64_t share_of(uint64_t picoseconds, int64_t part, int64_t whole) {
  const auto product = static_cast<unsigned __int128>(picoseconds) * static_cast<unsigned __int128>(part);
  return static_cast<uint64_t>(
      std::min<unsigned __int128>(product / static_cast<uint64_t>(whole), size_limit));
}

uint64_t Pricing::least_in_step(uint64_t first, uint64_t next, const MicroBatches& range, uint64_t prices,
                                int64_t global_batch) {
  const int64_t steps = (global_batch + range.fewest - 1) / range.fewest;
  const uint64_t sum = size_add(first, share_of(next, global_batch - range.most, range.most)),
                 rounded_off = size_mul(2 * prices, static_cast<uint64_t>(steps));
  return sum > rounded_off ? sum - rounded_off : 0;
}

Pricing::Pricing(const Graph& graph, const DeviceProfile& device, int threads)
    : graph_(graph), device_(device), threads_(threads), classes_(segment_classes(graph)) {
  auto add = [&](int op, int ops, int64_t elements = 0) {
    Instruction i{};
    i.op = op, i.ops = ops, i.kind = graph.op(op).kind, i.samples = 1, i.rows = graph.rows_of(graph.op(op));
    i.elements = elements;
    update_ = size_add(update_, instruction(i));
  };
  for (const UpdateRun& run : update_runs(graph)) {
    if (!reads_formed(graph, graph.op(run.op))) {
      add(run.op, run.ops);
      continue;
    }
    const auto count = static_cast<int64_t>(graph.at(graph.kept.formed).shape.elements());
    const int64_t slice = formed_slice(graph);
    for (int64_t first = 0; first < count; first += slice)
      for (const int op : {graph.kept.forming_op, run.op}) add(op, 1, std::min(slice, count - first));
  }
  for (size_t k = 0; k < graph.table_ops.size(); ++k) add(graph.first_table_op() + static_cast<int>(k), 1);
  for (size_t k = 0; k < graph.table_gradient_ops.size(); ++k)
    add(graph.first_table_gradient_op() + static_cast<int>(k), 1);
  for (int op : recomputed_table_ops(graph)) add(op, 1);
  for (const std::vector<FusedUpdate>& updates : graph.updates_after)
    for (const FusedUpdate& u : updates) add(u.square_sum, 1), add(u.update, 1);
  if (graph.fuses_updates()) add(graph.begin_update, 1);
  for (size_t s = 0; s + 1 < graph.segments.size(); ++s) {
    // Classes are numbered in the order of first appearance.
    const auto c = static_cast<size_t>(classes_[s]);
    if (c == distinct_.size()) distinct_.push_back({s, 0});
    distinct_[c].second += 1;
  }
}

uint64_t Pricing::op(const Op& o, int64_t samples, int64_t rows, int64_t elements) const {
  return op_picoseconds(
      device_, o.kind, graph_.peak_of(o), threads_,
      op_row(o.kind).cost(graph_, o, extent_of(graph_, o, samples, rows, threads_, elements)));
}

uint64_t Pricing::forming_with_copies() const {
  if (graph_.kept.formed < 0) return 0;
  const int64_t slice = formed_slice(graph_, Offload{}.slice),
                all = static_cast<int64_t>(graph_.at(graph_.kept.formed).shape.elements());
  return size_mul(op(graph_.op(graph_.kept.forming_op), 1, 0, slice),
                  static_cast<uint64_t>((all + slice - 1) / slice));
}

uint64_t Pricing::instruction(const Instruction& i) const {
  return op_picoseconds(device_, i.kind, graph_.peak_of(graph_.op(i.op)), threads_,
                        cost_of(graph_, i, threads_));
}

uint64_t Pricing::run(int first, int count, int64_t samples, int64_t rows) const {
  Instruction i{};
  i.op = first, i.ops = count, i.kind = graph_.op(first).kind, i.samples = samples,
  i.rows = rows > 0 ? rows : samples * graph_.rows_of(graph_.op(first));
  return instruction(i);
}

uint64_t Pricing::ops(int first, int count, int64_t samples) const {
  const auto [entry, is_new] = ops_.try_emplace({first, count, samples}, 0);
  if (!is_new) return entry->second;
  uint64_t sum = 0;
  for (int at = first, length; at < first + count; at += length) {
    length = fused_run(graph_, at);
    sum = size_add(sum, run(at, length, samples));
  }
  return entry->second = sum;
}

uint64_t Pricing::fused(int op, int64_t samples, int64_t rows) const {
  return graph_.op(op).fused ? run(op - 1, 2, samples, rows) - run(op - 1, 1, samples, rows)
                             : run(op, 1, samples, rows);
}

uint64_t Pricing::unshared_launch(int weight_gradient, int64_t samples) const {
  const uint64_t apart = size_add(run(weight_gradient, 1, samples), run(weight_gradient + 1, 1, samples)),
                 together = run(weight_gradient, 2, samples);
  return apart > together ? apart - together : 0;
}

uint64_t Pricing::program(const Program& program, bool overlap) const {
  auto price = [&](const Instruction& i) { return instruction(i); };
  if (overlap) return overlapped_picoseconds(program, price);
  uint64_t sum = 0;
  for (const Instruction& i : program.instructions) sum = size_add(sum, price(i));
  return sum;
}

std::vector<int> Pricing::recomputed_ops(const Segment& segment, uint32_t saved) const {
  std::set<int> saved_ops, recomputed;  // ops whose outputs are saved, and ops that run again
  for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
    if (saved >> bit & 1) saved_ops.insert(segment.saveable[bit]);
  auto require = [&](auto&& self, int tensor) -> void {
    if (tensor < 0) return;
    const int p = graph_.producer[tensor];
    if (p < segment.first_op || p >= segment.first_op + segment.op_count || tensor == segment.output) return;
    if (saved_ops.count(p) || !recomputed.insert(p).second) return;
    for (int t : graph_.ops[p].inputs) self(self, t);
  };
  for (int i = 0; i < segment.gradient_op_count; ++i)
    for (int t : graph_.gradient_ops[segment.first_gradient_op + i].inputs) require(require, t);
  return {recomputed.begin(), recomputed.end()};
}

TilePrices Pricing::tiles(const Segment& segment, int64_t samples, int64_t tile_rows, bool even) const {
  const FeedForward& part = segment.feed_forward;
  const int64_t all = rows_in_tiles(graph_, segment);
  const Tiling tiling = tiling_of(samples * all, all, tile_rows);
  auto in_tiles = [&](const auto& price) {  // price(rows)
    if (even) return share_of(price(tiling.rows), samples * all, tiling.rows);
    const uint64_t sum = size_mul(price(tiling.rows), static_cast<uint64_t>(tiling.count));
    if (tiling.short_count == 0) return sum;
    return size_add(sum, size_mul(price(tiling.short_rows), static_cast<uint64_t>(tiling.short_count)));
  };
  // The time of tiles minus the time of one pass over all rows, summed over the runs of fused ops in [first,
  // first + count).
  auto excess = [&](int first, int count) {
    uint64_t sum = 0;
    for (int at = first, length; at < first + count; at += length) {
      length = fused_run(graph_, at);
      const auto price = [&](int64_t rows) { return run(at, length, samples, rows); };
      const uint64_t tiles = in_tiles(price), one = price(samples * all);
      sum = size_add(sum, tiles > one ? tiles - one : 0);
    }
    return sum;
  };
  TilePrices prices;
  prices.forward = excess(part.first_op, part.op_count);
  prices.backward =
      excess(static_cast<int>(graph_.ops.size()) + part.first_gradient_op, part.gradient_op_count);
  for (int i = part.first_op; i < part.first_op + part.op_count; ++i) {
    prices.ops.push_back(in_tiles([&](int64_t rows) { return run(i, 1, samples, rows); }));
    prices.fused.push_back(in_tiles([&](int64_t rows) { return fused(i, samples, rows); }));
  }
  return prices;
}

Pricing::Choice Pricing::choice(size_t s, uint32_t saved, int64_t tile_rows, int64_t samples) const {
  const Segment& segment = graph_.segments[s];
  const FeedForward& part = segment.feed_forward;
  const TilePrices tile = tile_rows > 0 ? tiles(segment, samples, tile_rows) : TilePrices{};
  Choice c{0, size_add(tile.forward, tile.backward)};
  for (const int op : unshared_weight_gradients(graph_, segment, saved))
    c.tiles = size_add(c.tiles, unshared_launch(op, samples));
  int before = -1;  // the op that ran last
  for (int i : recomputed_ops(segment, saved)) {
    const bool in_tiles = tile_rows > 0 && is_inner(part, graph_.ops[i].outputs[0]);
    const bool is_fused = graph_.ops[i].fused && before == i - 1;
    const auto place = static_cast<size_t>(i - part.first_op);
    c.recompute = size_add(c.recompute, in_tiles   ? (is_fused ? tile.fused[place] : tile.ops[place])
                                        : is_fused ? fused(i, samples)
                                                   : run(i, 1, samples));
    before = i;
  }
  return c;
}

Pricing::Choice Pricing::choices(const Decisions& decisions, int64_t samples) const {
  Choice sum;
  for (size_t s = 0; s + 1 < graph_.segments.size(); ++s) {
    const int64_t tile_rows = decisions.tile_rows_of(s);
    const auto [entry, is_new] =
        choice_.try_emplace({classes_[s], decisions.saved[s], tile_rows, samples}, Choice{});
    if (is_new) entry->second = choice(s, decisions.saved[s], tile_rows, samples);
    sum.recompute = size_add(sum.recompute, entry->second.recompute);
    sum.tiles = size_add(sum.tiles, entry->second.tiles);
  }
  return sum;
}

uint64_t Pricing::body(int64_t samples) const {
  const auto [entry, is_new] = body_.try_emplace(samples, 0);
  if (!is_new) return entry->second;
  uint64_t sum = 0;
  for (const auto& [index, count] : distinct_) {
    const Segment& s = graph_.segments[index];
    const uint64_t one = size_add(
        ops(s.first_op, s.op_count, samples),
        ops(static_cast<int>(graph_.ops.size()) + s.first_gradient_op, s.gradient_op_count, samples));
    sum = size_add(sum, size_mul(one, count));
  }
  return entry->second = sum;
}

uint64_t Pricing::head(int64_t samples, int64_t chunks) const {
  const auto [entry, is_new] = head_.try_emplace({samples, chunks}, 0);
  if (!is_new) return entry->second;
  const Segment& s = graph_.segments.back();
  const std::vector<Tile> list = loss_chunks(graph_, samples, chunks);
  auto chunk = [&](int64_t n) {
    const uint64_t logits = op(graph_.ops[s.first_op], samples, n);
    uint64_t t = logits;
    // The losses are computed before the gradients, and with several chunks the logits are recomputed.
    if (graph_.preference != Preference::none) {
      t = size_add(t, op(graph_.ops[s.first_op + 1], samples, n));
      if (list.size() > 1) t = size_add(t, logits);
    }
    for (int i = 0; i < s.gradient_op_count; ++i)
      t = size_add(t, op(graph_.gradient_ops[s.first_gradient_op + i], samples, n));
    return t;
  };
  std::map<int64_t, uint64_t> lengths;  // rows of a chunk, and the number of such chunks
  for (const Tile& c : list) ++lengths[c.rows];
  uint64_t sum = 0;
  for (const auto& [n, count] : lengths) sum = size_add(sum, size_mul(count, chunk(n)));
  return entry->second = size_add(sum, op(graph_.ops[s.first_op + s.op_count - 1], samples));
}

uint64_t Pricing::micro(int64_t samples, int64_t chunks) const {
  return size_add(body(samples), head(samples, chunks));
}

// Time of the head's recompute: a preference loss recomputes logits.
uint64_t Pricing::logits_again(int64_t samples, int64_t chunks) const {
  const std::vector<Tile> list = loss_chunks(graph_, samples, chunks);
  uint64_t sum = 0;
  for (const Tile& c : list)
    if (graph_.preference != Preference::none && list.size() > 1)
      sum = size_add(sum, op(graph_.ops[graph_.segments.back().first_op], samples, c.rows));
  return sum;
}

uint64_t Pricing::recompute(const Decisions& decisions, int64_t global_batch) const {
  return over_micro_steps(global_batch, decisions.micro_batch, [&](int64_t samples) {
    return size_add(choices(decisions, samples).recompute, logits_again(samples, decisions.loss_chunks));
  });
}

uint64_t Pricing::micro_steps(int64_t micro_batch, int64_t chunks, int64_t global_batch) const {
  return over_micro_steps(global_batch, micro_batch, [&](int64_t samples) { return micro(samples, chunks); });
}

uint64_t Pricing::fixed(int64_t micro_batch, int64_t chunks, int64_t global_batch) const {
  return size_add(update_, micro_steps(micro_batch, chunks, global_batch));
}

uint64_t Pricing::step(const Decisions& decisions, int64_t global_batch) const {
  const uint64_t chosen = over_micro_steps(global_batch, decisions.micro_batch, [&](int64_t samples) {
    const Choice c = choices(decisions, samples);
    return size_add(c.recompute, c.tiles);
  });
  return size_add(fixed(decisions.micro_batch, decisions.loss_chunks, global_batch), chosen);
}

// The time of a micro-step is a constant plus maxima of linear functions. Therefore fewer, larger micro-steps
// are never slower.
uint64_t Pricing::fastest(int64_t global_batch, int64_t micro_batch, Recompute recompute) const {
  Decisions largest{micro_batch > 0 ? micro_batch : global_batch, 1, {}, {}, {}};
  for (const Segment& s : graph_.segments)
    largest.saved.push_back(recompute == Recompute::full && s.kind == SegmentKind::block ? 0 : ~0u);
  return step(largest, global_batch);
}

}  // namespace stw
