// Re-planning: the arena changes its size, and the tensors that outlive a step move to their new places.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "src/trainer/trainer.h"

namespace stw {

namespace {

struct Place {
  bool on_host;
  uint64_t offset, bytes;
};

Place place_of(const Arena& layout, int tensor) {
  const auto t = static_cast<size_t>(tensor);
  const bool on_host = layout.on_host(tensor);
  const Buffer& b = on_host ? layout.host[static_cast<size_t>(layout.host_of_tensor[t])]
                            : layout.persistent[static_cast<size_t>(layout.of_tensor[t])];
  return {on_host, b.offset, b.bytes};
}

// Whether the tensor outlives a step.
bool lasts(const Graph& graph, int tensor) {
  switch (graph.at(tensor).kind) {
    case Kind::state: case Kind::constant: case Kind::master: case Kind::optimizer: return true;
    case Kind::parameter: return graph.owns_bytes(tensor);
    default: return false;
  }
}

struct Move { Place from, to; };

// The end of the last tensor in the arena that outlives a step.
uint64_t kept_of(const std::vector<Move>& moves, Place Move::*place) {
  uint64_t end = 0;
  for (const Move& m : moves)
    if (const Place& p = m.*place; !p.on_host) end = std::max(end, size_add(p.offset, p.bytes));
  return end;
}

}  // namespace

Status Trainer::check_replan() const {
  STW_TRY(check_ready());
  if (progress().phase == TrainerPhase::idle) return ok();
  return Error{Code::bad_state, "trainer: it cannot be planned anew while it works, nor from one of its callbacks"};
}

uint64_t Trainer::memory_of_device() const {
  const uint64_t reserve = reserve_of(plan().request, profile_of(plan().request)), arena = memory_.arena_bytes();
  if (options_.arena) return size_add(options_.arena_bytes, reserve);
  const uint64_t free = device_.memory_free();
  // Memory outside of the arena that is already taken counts as part of the reserve.
  return free == 0 ? 0 : size_add(size_add(free, arena), std::min(device_.memory_outside(arena), reserve / 4 * 3));
}

Status Trainer::replan(std::shared_ptr<const Planned> planned) {
  STW_TRY(check_replan());
  const Plan& next = planned->plan;
  if (!next.fits) return Error{Code::bad_state, "trainer: the plan does not fit its budget"};
  if (!(next.numerics == plan().numerics) || next.request.global_batch != plan().request.global_batch ||
      next.request.sequence != plan().request.sequence || next.request.threads != plan().request.threads)
    return Error{Code::bad_state, "trainer: the plan has other numerics, another batch or another number of threads"};
  if (!next.numerics.exact && next.decisions.micro_batch != plan().decisions.micro_batch)
    return Error{Code::bad_state, "trainer: in fast mode the bits depend on the micro-batch, and the plan has another one"};
  STW_TRY(check_offload(next));
  const uint64_t bytes = next.bytes.arena;
  std::vector<Move> moves;   // in the order of the arena, which is the same for all plans
  for (int t = 0; t < static_cast<int>(graph().tensors.size()); ++t)
    if (lasts(graph(), t)) moves.push_back({place_of(planned_->programs.arena, t), place_of(planned->programs.arena, t)});
  std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.from.offset < b.from.offset; });

  const Computing computing(*this);   // the host's allocator is a callback too
  // Everything that can fail comes first.
  STW_TRY(stream_->wait());
  STW_ASSIGN(next_host, memory_.take_host(next.bytes.host, bytes));
  stream_->forget();
  STW_TRY(grow(bytes, kept_of(moves, &Move::from)));
  std::byte *const host = next_host.get(), *const arena = memory_.arena();

  auto from_host = [&](const Move& m) { return memory_.host() + m.from.offset; };
  for (const Move& m : moves)
    if (m.to.on_host) stream_->move(host + m.to.offset, m.from.on_host ? from_host(m) : arena + m.from.offset, m.from.bytes);
  // Tensors that stay in the arena keep their order. First those that move down are copied, in ascending
  // order, then those that move up, in descending order. No copy overwrites a tensor that has yet to move.
  auto slide = [&](const Move& m) { stream_->move(arena + m.to.offset, arena + m.from.offset, m.from.bytes); };
  auto stays = [](const Move& m) { return !m.from.on_host && !m.to.on_host; };
  for (const Move& m : moves)
    if (stays(m) && m.to.offset < m.from.offset) slide(m);
  for (auto m = moves.rbegin(); m != moves.rend(); ++m)
    if (stays(*m) && m->to.offset > m->from.offset) slide(*m);
  for (const Move& m : moves)
    if (m.from.on_host && !m.to.on_host) stream_->move(arena + m.to.offset, from_host(m), m.from.bytes);

  STW_TRY(stream_->wait());
  memory_.replace_host(std::move(next_host));
  shrink(bytes, kept_of(moves, &Move::to));
  use(std::move(planned));
  if (!memory_.arena()) return TrainerMemory::out_of_memory("the arena became smaller, and the device gave no memory for it; a restore takes it again", bytes, device_.memory_free());
  static_cast<void>(prepare());   // the trainer has moved already: the next step reports what fails here
  // Touch the whole arena, as on creation.
  const uint64_t resident = planned_->programs.arena.gradients_begin;
  stream_->zero(memory_.arena() + resident, bytes - resident);
  return stream_->wait();
}

Status Trainer::grow(uint64_t bytes, uint64_t kept) {
  STW_TRY(memory_.check_size(bytes));
  const std::byte* const before = memory_.arena();
  const std::optional<Shortage> shortage = memory_.grow(bytes, kept);
  follow_arena(before);
  if (!shortage) return ok();
  // Zeros, as on creation.
  if (std::byte* const arena = memory_.arena(); arena && arena != before) stream_->zero(arena + kept, memory_.arena_bytes() - kept);
  return memory_.shortage_error(*shortage);
}

// The arena may have moved, or be lost.
void Trainer::follow_arena(const std::byte* before) {
  if (memory_.arena() == before) return;
  if (!memory_.arena()) broken_ = lost_arena_ = true;
  else use(planned_);
}

Status Trainer::take_again() {
  Filling filling = filling_of_all();
  if (!memory_.arena()) {
    STW_TRY(memory_.take_arena_again(plan().bytes.arena));
    use(planned_);
  }
  STW_TRY(prepare());
  STW_TRY(fill(filling));
  lost_arena_ = false;
  return ok();
}

// Gives back memory that the plan does not need. If the device refuses, the arena keeps its size.
void Trainer::shrink(uint64_t bytes, uint64_t kept) {
  const std::byte* const before = memory_.arena();
  memory_.shrink(bytes, kept);
  follow_arena(before);
}

}  // namespace stw
