#include "planner/search/offload_bound.h"

#include <algorithm>
#include <array>
#include <set>

#include "planner/base/check_in.h"
#include "planner/program/micro_builder.h"
#include "planner/search/micro_batch_order.h"

namespace stw {

namespace {

// At most so many cells are cut in two.
constexpr int most_cuts = 192;
// Cells whose bound is this close to the time of the plan are not cut.
constexpr double close_enough = 1e-3;
// If the gap is larger, searches of cells' corners give closer bounds: at most so many, and a search of a
// single choice counts as several.
constexpr double large_gap = 0.05;
constexpr int most_work = 1536, work_of_search = 8;
// At most so much work is done for a smaller gap, and by promising().
constexpr int work_to_refine = 96;
// At first the numbers of states are cut into so many ranges.
constexpr int first_cells = 8;

// For every tensor: whether the update reads or writes it. It does not copy others.
std::vector<bool> updated(const Graph& graph) {
  std::vector<bool> is_updated(graph.tensors.size());
  for (const Op& op : graph.update_ops)
    for (const std::vector<int>* operands : {&op.inputs, &op.outputs})
      for (int t : *operands)
        if (t >= 0) is_updated[t] = true;
  return is_updated;
}

}  // namespace

OffloadBound::OffloadBound(const SearchContext& context, OffloadSearch& plain)
    : context_(context), plain_(plain), is_updated_(updated(context.graph)), nothing_(measure_whole({})) {}

int OffloadBound::most_states() const {
  const bool has_masters = std::any_of(context_.graph.tensors.begin(), context_.graph.tensors.end(),
                                       [](const Tensor& t) { return t.role == Role::master; });
  return (context_.graph.blocks() + 1) * (has_masters ? 2 : 1);
}

Offload OffloadBound::offload(const Corner& corner) const {
  const auto [states, gradients, weights, inputs] = corner;
  const int all = context_.graph.blocks() + 1;
  Offload offload;
  offload.parts = {std::min(states, all), std::max(0, states - all), gradients, weights, inputs};
  offload.overlap = context_.device.cuda && offload.any();
  return offload;
}

OffloadBound::Corner OffloadBound::corner(const Offload& offload) const {
  return {offload[Offloaded::optimizer] + offload[Offloaded::masters], offload[Offloaded::gradients],
          offload[Offloaded::weights], offload[Offloaded::inputs]};
}

OffloadFigures OffloadBound::measure(const Offload& offload) {
  OffloadFigures sum = nothing_;
  sum.offload = offload;
  for (int k = 0; k < offloaded_count; ++k) {
    const auto kind = static_cast<Offloaded>(k);
    if (offload[kind] == 0) continue;
    const auto [entry, is_new] = of_kinds_.try_emplace({kind, offload[kind], offload.overlap});
    OffloadFigures& f = entry->second;
    if (is_new) {
      Offload alone;
      alone[kind] = offload[kind];
      alone.overlap = offload.overlap;
      f = measure_whole(alone);
    }
    sum.resident_bytes -= nothing_.resident_bytes - f.resident_bytes;
    for (uint64_t OffloadFigures::*figure :
         {&OffloadFigures::host_bytes, &OffloadFigures::update_bytes, &OffloadFigures::gradient_bytes,
          &OffloadFigures::first_fetches, &OffloadFigures::next_fetches, &OffloadFigures::stores})
      sum.*figure = size_add(sum.*figure, f.*figure);
    sum.inputs.insert(sum.inputs.end(), f.inputs.begin(), f.inputs.end());
  }
  return sum;
}

OffloadFigures OffloadBound::measure_whole(const Offload& offload) const {
  const Graph& graph = context_.graph;
  const Arena arena = make_arena(graph, context_.device.alignment, offload);
  OffloadFigures f;
  f.offload = offload;
  f.resident_bytes = arena.gradients_end;
  f.host_bytes = arena.host_bytes - offloaded_input_bytes(graph, offload, 1, context_.device.alignment);
  for (const Buffer& b : arena.host) {
    const Role role = graph.at(b.tensor).role;
    if (role != Role::activation && is_updated_[b.tensor]) f.update_bytes = size_add(f.update_bytes, b.bytes);
    if (role == Role::gradient) f.gradient_bytes = size_add(f.gradient_bytes, b.bytes);
  }
  if (!offload.overlap) return f;
  const auto price = [&](OpKind kind, int t) {
    return context_.pricing.op(graph.op(kind == OpKind::fetch ? graph.fetch_op(t) : graph.store_op(t)), 1);
  };
  for (size_t s = 0; s + 1 < graph.segments.size(); ++s) {
    for (const Phase phase : {Phase::forward, Phase::backward})
      for (const int t : host_reads(graph, arena, s, phase, true)) {
        if (graph.at(t).per_sample) continue;
        f.next_fetches = size_add(f.next_fetches, price(OpKind::fetch, t));
        if (graph.at(t).role != Role::gradient)
          f.first_fetches = size_add(f.first_fetches, price(OpKind::fetch, t));
      }
    for (const int t : host_writes(graph, arena, s))
      if (!graph.at(t).per_sample) f.stores = size_add(f.stores, price(OpKind::store, t));
    if (const int input = input_on_host(graph, graph.segments[s], offload); input >= 0)
      f.inputs.push_back(input);
  }
  return f;
}

uint64_t OffloadBound::copying(OpKind kind, uint64_t bytes) const {
  return bytes == 0 ? 0
                    : op_picoseconds(context_.device, kind, Peak::fp32, context_.request.threads, {0, bytes});
}

uint64_t OffloadBound::least_update(const OffloadFigures& choice) const {
  // The update reads gradients and does not write them. It reads and writes all other tensors.
  const uint64_t ops = plain_.update_picoseconds(), fetched = copying(OpKind::fetch, choice.update_bytes),
                 stored = copying(OpKind::store, choice.update_bytes - choice.gradient_bytes);
  return context_.device.cuda ? std::max({ops, fetched, stored}) : size_add(ops, size_add(fetched, stored));
}

uint64_t OffloadBound::copies(const OffloadFigures& choice, const MicroBatches& range) const {
  const Graph& graph = context_.graph;
  const int64_t batch = context_.request.global_batch;
  const auto later = static_cast<uint64_t>((batch + range.most - 1) / range.most - 1);
  uint64_t input_fetches = 0, input_stores = 0;  // in one micro-step
  for (const int t : choice.inputs) {
    input_fetches = size_add(input_fetches, context_.pricing.op(graph.op(graph.fetch_op(t)), range.most));
    input_stores = size_add(input_stores, context_.pricing.op(graph.op(graph.store_op(t)), range.most));
  }
  const auto in_step = [&](uint64_t one) {
    return Pricing::least_in_step(one, one, range, choice.inputs.size(), batch);
  };
  return std::max(
      size_add(size_add(choice.first_fetches, size_mul(choice.next_fetches, later)), in_step(input_fetches)),
      size_add(size_mul(choice.stores, later + 1), in_step(input_stores)));
}

uint64_t OffloadBound::of_cell(const OffloadFigures& lower, const OffloadFigures& upper, uint64_t arena_bytes,
                               uint64_t limit) {
  const uint64_t host_bytes = context_.request.host_bytes;
  if (lower.host_bytes > host_bytes) return UINT64_MAX;
  const uint64_t ops = plain_.update_picoseconds(), update = least_update(lower);
  const uint64_t saved = nothing_.resident_bytes - upper.resident_bytes;
  const auto inputs_of = [&](const OffloadFigures& figures, int64_t m) {
    return offloaded_input_bytes(context_.graph, figures.offload, m, context_.device.alignment);
  };
  const auto within_host = [&](int64_t m) {
    return size_add(lower.host_bytes, inputs_of(lower, m)) <= host_bytes;
  };
  // A tensor takes as many bytes in host memory as it saves.
  const auto bytes = [&](int64_t m) {
    return size_add(arena_bytes, std::min(size_add(saved, inputs_of(upper, m)), host_bytes));
  };
  const auto with_copies = [&](uint64_t least, const MicroBatches& range) {
    return least == UINT64_MAX ? least : size_add(update, std::max(least - ops, copies(lower, range)));
  };
  return least_bound(context_.micro_batches, context_.micro_batches.size(),
                     {[&](const MicroBatches& range) {
                        if (!within_host(range.fewest)) return UINT64_MAX;
                        return with_copies(plain_.least(range, bytes(range.most)), range);
                      },
                      [&](int64_t m) {
                        return with_copies(plain_.ops(m), {m, m});
                      },
                      [&](int64_t m) {
                        if (!within_host(m) || !plain_.fits(m, bytes(m))) return UINT64_MAX;
                        return with_copies(plain_.relaxed(m, bytes(m)), {m, m});
                      }},
                     limit);
}

const OffloadFigures& OffloadBound::figures(const Corner& corner) {
  const auto [entry, is_new] = figures_.try_emplace(corner);
  if (is_new) entry->second = measure(offload(corner));
  return entry->second;
}

uint64_t OffloadBound::of_cell_by_search(const Corner& lower, const Corner& upper, uint64_t arena_bytes,
                                         uint64_t limit) {
  std::unique_ptr<OffloadSearch>& search = searches_[lower];
  const OffloadFigures &least = figures(lower), &most = figures(upper);
  if (!search) search = std::make_unique<OffloadSearch>(context_, least.offload, least_update(least));
  const auto inputs_of = [&](const OffloadFigures& figures, int64_t m) {
    return offloaded_input_bytes(context_.graph, figures.offload, m, context_.device.alignment);
  };
  return search->quick_bound(
      [&](int64_t m) {
        return size_add(size_add(arena_bytes, least.resident_bytes - most.resident_bytes),
                        inputs_of(most, m) - inputs_of(least, m));
      },
      limit);
}

// The cells that may contain a faster plan, least bound first.
class OffloadBound::Cells {
 public:
  Cells(OffloadBound& bound, uint64_t arena_bytes, uint64_t time)
      : bound_(bound), arena_bytes_(arena_bytes), time_(time) {
    for (size_t d = 0; d < dimensions; ++d) {
      Corner alone{};
      alone[d] = bound.most_parts(d);
      const OffloadFigures& f = bound.figures(alone);
      const uint64_t bytes = size_add(
          bound.nothing_.resident_bytes - f.resident_bytes,
          offloaded_input_bytes(bound.context_.graph, f.offload, 1, bound.context_.device.alignment));
      part_bytes_[d] = bytes / static_cast<uint64_t>(std::max(1, alone[d]));
    }
    const int states = bound.most_states(), blocks = bound.most_blocks();
    for (int n = 0, begin = 0; n < first_cells; ++n) {
      const int end = states * (n + 1) / first_cells;
      if (end >= begin) add({begin, 0, 0, 0}, {end, blocks, blocks, blocks}, 0);
      begin = std::max(begin, end + 1);
    }
  }

  // Whether the gap is larger than this.
  bool exceeds(double gap) const {
    return !open_.empty() &&
           static_cast<double>(open_.begin()->least) < static_cast<double>(time_) * (1 - gap);
  }
  uint64_t least() const { return open_.empty() ? time_ : open_.begin()->least; }
  std::optional<Corner> promising() const {
    return open_.empty() ? std::nullopt : std::optional(open_.begin()->upper);
  }

  // Cuts the first cell in two that share no plan, where most bytes are. False if it is a single choice.
  bool cut() {
    const Cell cell = *open_.begin();
    size_t widest = 0;
    const auto bytes_across = [&](size_t d) {
      return size_mul(part_bytes_[d], static_cast<uint64_t>(cell.upper[d] - cell.lower[d]));
    };
    for (size_t d = 1; d < dimensions; ++d)
      if (bytes_across(d) > bytes_across(widest)) widest = d;
    if (cell.upper[widest] == cell.lower[widest]) return false;
    open_.erase(open_.begin());
    Corner end = cell.upper, begin = cell.lower;
    end[widest] = (cell.lower[widest] + cell.upper[widest]) / 2;
    begin[widest] = end[widest] + 1;
    add(cell.lower, end, cell.least);
    add(begin, cell.upper, cell.least);
    return true;
  }

  // Raises the bound of the first cell by a search, or cuts the cell. Returns the work; 0 if neither is
  // possible.
  int raise() {
    Cell cell = *open_.begin();
    if (cell.from == From::search) return 0;
    if (cell.from == From::quick && cut()) return 1;
    open_.erase(open_.begin());
    const bool is_quick = cell.from == From::figures;
    const uint64_t least =
        is_quick ? bound_.of_cell_by_search(cell.lower, cell.upper, arena_bytes_, time_)
                 : OffloadSearch(bound_.context_, bound_.offload(cell.lower)).bound(arena_bytes_, time_);
    cell.least = std::max(cell.least, least);
    cell.from = is_quick ? From::quick : From::search;
    if (cell.least < time_) open_.insert(cell);
    return is_quick ? 1 : work_of_search;
  }

 private:
  // How a bound was computed: from figures, by quick_bound, or by the search of a single choice.
  enum class From : uint8_t { figures, quick, search };
  struct Cell {
    uint64_t least;
    Corner lower, upper;
    From from = From::figures;
    auto operator<=>(const Cell&) const = default;
  };
  void add(const Corner& lower, const Corner& upper, uint64_t least) {
    const OffloadFigures &fewest = bound_.figures(lower), &most = bound_.figures(upper);
    least = std::max(least, bound_.of_cell(fewest, most, arena_bytes_, time_));
    if (least < time_) open_.insert({least, lower, upper});
  }

  OffloadBound& bound_;
  const uint64_t arena_bytes_, time_;
  std::array<uint64_t, dimensions> part_bytes_{};  // bytes of one part
  std::set<Cell> open_;
};

OffloadBound::Cells OffloadBound::cut_cells(uint64_t arena_bytes, uint64_t time) {
  Cells cells(*this, arena_bytes, time);
  for (int cuts = 0; cells.exceeds(close_enough) && cuts < most_cuts; ++cuts) {
    check_in();
    if (!cells.cut()) break;
  }
  return cells;
}

std::vector<OffloadBound::Corner> OffloadBound::promising(uint64_t arena_bytes, uint64_t time) {
  std::vector<Corner> list;
  Cells cells = cut_cells(arena_bytes, time);
  if (const auto first = cells.promising()) list.push_back(*first);
  raise(cells, large_gap, work_to_refine);
  if (!cells.exceeds(large_gap)) return {};
  if (const auto next = cells.promising(); next && *next != list[0]) list.push_back(*next);
  return list;
}

void OffloadBound::raise(Cells& cells, double gap, int most) const {
  for (int work = 0, more = 1; cells.exceeds(gap) && work < most && more > 0; work += more) {
    check_in();
    more = cells.raise();
  }
}

uint64_t OffloadBound::of_all(uint64_t arena_bytes, uint64_t time) {
  Cells cells = cut_cells(arena_bytes, time);
  if (context_.effort == Effort::full) {
    raise(cells, close_enough, work_to_refine);
    raise(cells, large_gap, most_work);
  }
  return cells.least();
}

}  // namespace stw
