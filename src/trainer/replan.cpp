// Re-planning: the arena changes its size, and the tensors that outlive a step move to their new places.
#include "src/trainer/replan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "src/trainer/step.h"

namespace stw {

namespace {

struct Place {
  bool on_host;
  uint64_t offset, bytes;
};

Place place_of(const Arena& layout, int tensor) {
  const auto t = static_cast<size_t>(tensor);
  const bool on_host = layout.on_host(tensor);
  const Buffer& b = on_host ? layout.host[layout.host_of_tensor[t]] : layout.persistent[layout.of_tensor[t]];
  return {on_host, b.offset, b.bytes};
}

// Whether the tensor outlives a step.
bool lasts(const Graph& graph, int tensor) {
  switch (graph.at(tensor).role) {
    case Role::state:
    case Role::constant:
    case Role::master:
    case Role::optimizer: return true;
    case Role::parameter: return graph.owns_bytes(tensor);
    default: return false;
  }
}

struct Move {
  Place from, to;
};

// The end of the last tensor in the arena that outlives a step.
uint64_t kept_of(const std::vector<Move>& moves, Place Move::*place) {
  uint64_t end = 0;
  for (const Move& m : moves)
    if (const Place& p = m.*place; !p.on_host) end = std::max(end, size_add(p.offset, p.bytes));
  return end;
}

// The arena may have moved, or be lost.
void follow_arena(TrainerCore& core, const std::byte* before) {
  if (core.memory.arena() == before) return;
  if (!core.memory.arena()) core.condition = Condition::arena_lost;
  else core.use(core.planned);
}

// Grows the arena to `bytes` and keeps its first `kept`.
Status grow(TrainerCore& core, uint64_t bytes, uint64_t kept) {
  STW_TRY(core.memory.check_size(bytes));
  const std::byte* const before = core.memory.arena();
  const std::optional<Shortage> shortage = core.memory.grow(bytes, kept);
  follow_arena(core, before);
  if (!shortage) return ok();
  // Zeros, as on creation.
  if (std::byte* const arena = core.memory.arena(); arena && arena != before)
    core.stream->zero(arena + kept, core.memory.arena_bytes() - kept);
  return core.memory.shortage_error(*shortage);
}

// Gives back memory that the plan does not need. If the device refuses, the arena keeps its size. Returns the
// failure of the device, or 0.
int32_t shrink(TrainerCore& core, uint64_t bytes, uint64_t kept) {
  const std::byte* const before = core.memory.arena();
  const int32_t failure = core.memory.shrink(bytes, kept);
  follow_arena(core, before);
  return failure;
}

Error lost_arena(const TrainerCore& core, uint64_t bytes, int32_t failure) {
  const std::string advice = "; a restore allocates it again";
  if (failure == 0)
    return TrainerMemory::out_of_memory(
        "the arena became smaller, and the device gave no memory for it" + advice, bytes,
        core.device.memory_free().bytes);
  Error e = core.device.error_of("the smaller arena of " + std::to_string(bytes) + " bytes", failure);
  if (e.code != Code::device_lost) e.message += advice;
  return e;
}

}  // namespace

Status check_replan(const TrainerCore& core) {
  STW_TRY(core.check_ready());
  if (core.progress.read().phase == TrainerPhase::idle) return ok();
  return Error{Code::bad_state, "trainer: it cannot be re-planned during a call or from a callback"};
}

uint64_t memory_of_device(const TrainerCore& core) {
  const uint64_t reserve = reserve_of(core.plan().request, profile_of(core.plan().request)),
                 arena = core.memory.arena_bytes();
  if (core.options.arena) return size_add(core.options.arena_bytes, reserve);
  const uint64_t free = core.device.memory_free().bytes;
  // Memory outside of the arena that is already taken counts as part of the reserve.
  return free == 0
             ? 0
             : size_add(size_add(free, arena), std::min(core.device.memory_outside(arena), reserve / 4 * 3));
}

Status replan(TrainerCore& core, std::shared_ptr<const Planned> planned) {
  STW_TRY(check_replan(core));
  const Plan& next = planned->plan;
  if (!next.fits) return Error{Code::bad_state, "trainer: the plan does not fit its budget"};
  if (!(next.numerics == core.plan().numerics) ||
      next.request.global_batch != core.plan().request.global_batch ||
      next.request.sequence != core.plan().request.sequence ||
      next.request.threads != core.plan().request.threads)
    return Error{Code::bad_state,
                 "trainer: the plan has other numerics, another batch or another number of threads"};
  if (!next.numerics.exact && next.decisions.micro_batch != core.plan().decisions.micro_batch)
    return Error{Code::bad_state,
                 "trainer: in fast mode the bits depend on the micro-batch, and the plan has another one"};
  STW_TRY(check_hook(core.options, *planned));
  const uint64_t bytes = next.bytes.arena;
  std::vector<Move> moves;  // in the order of the arena, which is the same for all plans
  for (int t = 0; t < static_cast<int>(core.graph().tensors.size()); ++t)
    if (lasts(core.graph(), t))
      moves.push_back({place_of(core.programs().arena, t), place_of(planned->programs.arena, t)});
  std::sort(moves.begin(), moves.end(),
            [](const Move& a, const Move& b) { return a.from.offset < b.from.offset; });

  const Computing computing(core);  // the host's allocator is a callback too
  // Everything that can fail comes first.
  STW_TRY(core.stream->wait());
  STW_ASSIGN(next_host, core.memory.take_host(next.bytes.host, bytes));
  core.stream->forget();
  STW_TRY(grow(core, bytes, kept_of(moves, &Move::from)));
  std::byte *const host = next_host.get(), *const arena = core.memory.arena();

  auto from_host = [&](const Move& m) { return core.memory.host() + m.from.offset; };
  for (const Move& m : moves)
    if (m.to.on_host)
      core.stream->move(host + m.to.offset, m.from.on_host ? from_host(m) : arena + m.from.offset,
                        m.from.bytes);
  // Tensors that stay in the arena keep their order. First those that move down are copied, in ascending
  // order, then those that move up, in descending order. No copy overwrites a tensor that has yet to move.
  auto slide = [&](const Move& m) {
    core.stream->move(arena + m.to.offset, arena + m.from.offset, m.from.bytes);
  };
  auto stays = [](const Move& m) { return !m.from.on_host && !m.to.on_host; };
  for (const Move& m : moves)
    if (stays(m) && m.to.offset < m.from.offset) slide(m);
  for (auto m = moves.rbegin(); m != moves.rend(); ++m)
    if (stays(*m) && m->to.offset > m->from.offset) slide(*m);
  for (const Move& m : moves)
    if (m.from.on_host && !m.to.on_host) core.stream->move(arena + m.to.offset, from_host(m), m.from.bytes);

  STW_TRY(core.stream->wait());
  core.memory.replace_host(std::move(next_host));
  const int32_t failure = shrink(core, bytes, kept_of(moves, &Move::to));
  core.use(std::move(planned));
  if (!core.memory.arena()) return lost_arena(core, bytes, failure);
  static_cast<void>(core.prepare());  // the trainer has moved already: the next step reports what fails here
  // Touch the whole arena, as on creation.
  const uint64_t resident = core.programs().arena.gradients_begin;
  core.stream->zero(core.memory.arena() + resident, bytes - resident);
  return core.stream->wait();
}

}  // namespace stw
