#include "planner/plan/plan.h"

#include <algorithm>
#include <tuple>

#include "planner/program/inference.h"
#include "planner/program/layout.h"
#include "planner/program/verify.h"

namespace stw {

std::vector<const Program*> Programs::all() const {
  std::vector<const Program*> list;
  for (const Program* p : {&micro_first, &micro_next, &micro_short, &update, &evaluate, &prefill, &decode,
                           &tables, &table_gradients, &evaluate_tables})
    if (!p->instructions.empty()) list.push_back(p);
  return list;
}

Programs make_programs(const Graph& graph, const Decisions& decisions, int64_t global_batch, int threads,
                       uint64_t alignment) {
  Programs p;
  p.arena = make_arena(graph, alignment, decisions.offload, decisions.micro_batch);
  const int64_t m = decisions.micro_batch, rest = global_batch % m;
  p.micro_first = build_micro(graph, p.arena, decisions, m, threads, false);
  lay_out(p.micro_first, alignment);
  if (graph.fuses_updates()) {
    // With fused updates, the whole batch is one micro-step, so there are no later ones.
  } else if (decisions.offload[Offloaded::gradients] > 0) {
    p.micro_next = build_micro(graph, p.arena, decisions, m, threads, true);
    lay_out(p.micro_next, alignment);
  } else {
    // The later micro-steps differ from the first one only in a flag: they add to the gradients.
    p.micro_next = p.micro_first;
    p.micro_next.name = "micro_next";
    for (Instruction& i : p.micro_next.instructions) i.accumulate |= i.phase == Phase::backward;
  }
  if (rest > 0) {
    p.micro_short = build_micro(graph, p.arena, decisions, rest, threads, true);
    lay_out(p.micro_short, alignment);
  }
  p.update = build_update(graph, p.arena, threads);
  lay_out(p.update, alignment);
  p.tables = build_tables(graph, p.arena, threads, false);
  lay_out(p.tables, alignment);
  p.table_gradients = build_table_gradients(graph, p.arena, threads);
  lay_out(p.table_gradients, alignment);
  p.evaluate_tables = build_tables(graph, p.arena, threads, true);
  lay_out(p.evaluate_tables, alignment);
  p.evaluate = build_evaluate(graph, p.arena, decisions, threads);
  lay_out(p.evaluate, alignment);
  std::tie(p.prefill, p.decode) = build_generate(graph, p.arena, threads);
  lay_out(p.prefill, alignment);
  lay_out(p.decode, alignment);
  p.arena_bytes = p.arena.gradients_end;
  p.bound_bytes = p.arena.gradients_end;
  for (const Program* program : p.all()) {
    p.arena_bytes = std::max(p.arena_bytes, program->end);
    p.bound_bytes = std::max(p.bound_bytes, live_bound(*program, alignment));
  }
  return p;
}

PeakMoment peak_moment(const Programs& programs) {
  const Program* top =
      programs.micro_next.instructions.empty() ? &programs.micro_first : &programs.micro_next;
  for (const Program* p : programs.all())
    if (p->end > top->end) top = p;
  std::vector<__int128> change(top->instructions.size() + 1);
  for (const Buffer& b : top->buffers) {
    change[b.first] += static_cast<__int128>(b.bytes);
    change[static_cast<size_t>(b.last) + 1] -= static_cast<__int128>(b.bytes);
  }
  __int128 live = 0, most = -1;
  int moment = 0;
  for (size_t i = 0; i < top->instructions.size(); ++i)
    if ((live += change[i]) > most) {
      most = live;
      moment = static_cast<int>(i);
    }
  return {top, moment};
}

Bytes account(const Programs& programs) {
  const auto [top, moment] = peak_moment(programs);
  Bytes bytes;
  const bool overlays_gradients = top->base < programs.arena.gradients_end;
  uint64_t sum = 0;
  auto count = [&](const Buffer& b) {
    uint64_t& owner = bytes.of[static_cast<size_t>(b.owner)];
    owner = size_add(owner, b.bytes);
    sum = size_add(sum, b.bytes);
  };
  for (const Buffer& b : programs.arena.persistent)
    if (!overlays_gradients || b.owner != MemoryClass::gradients) count(b);
  for (const Buffer& b : top->buffers)
    if (b.first <= moment && b.last >= moment) count(b);
  bytes.arena = programs.arena_bytes;
  bytes.host = programs.arena.host_bytes;
  bytes.padding = bytes.arena > sum ? bytes.arena - sum : 0;
  return bytes;
}

std::vector<RecomputedBlocks> recomputed_blocks(const Graph& graph, const Decisions& decisions) {
  std::vector<RecomputedBlocks> runs;
  bool continues = false;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    if (segment.kind != SegmentKind::block) continue;
    std::vector<std::string> names;
    for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
      if (!(decisions.saved[s] >> bit & 1))
        names.push_back(graph.at(graph.op(segment.saveable[bit]).outputs[0]).name);
    if (continues && runs.back().tensors == names) runs.back().last = segment.block;
    else if (!names.empty()) runs.push_back({segment.block, segment.block, names});
    continues = !names.empty();
  }
  return runs;
}

std::vector<TiledBlocks> tiled_blocks(const Graph& graph, const Decisions& decisions) {
  std::vector<TiledBlocks> runs;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    const int64_t rows = decisions.tile_rows_of(s);
    if (segment.kind != SegmentKind::block || rows == 0) continue;
    if (!runs.empty() && runs.back().rows == rows && runs.back().last + 1 == segment.block)
      runs.back().last = segment.block;
    else runs.push_back({segment.block, segment.block, rows});
  }
  return runs;
}

std::vector<OffloadedTensors> offloaded_tensors(const Graph& graph, const Decisions& decisions) {
  const Arena arena = make_arena(graph, 1, decisions.offload, decisions.micro_batch);
  constexpr Role roles[offloaded_count] = {Role::optimizer, Role::master, Role::gradient, Role::parameter,
                                           Role::activation};
  const int blocks = graph.blocks();
  std::vector<OffloadedTensors> list;
  for (int k = 0; k < offloaded_count; ++k) {
    const int parts = arena.offload.parts[k];
    uint64_t bytes = 0;
    for (const Buffer& b : arena.host)
      if (graph.at(b.tensor).role == roles[k]) bytes = size_add(bytes, b.bytes);
    if (bytes > 0)
      list.push_back({static_cast<Offloaded>(k), std::min(parts, blocks) - 1, parts > blocks, bytes});
  }
  return list;
}

Result<Programs> realize(const Graph& graph, const Plan& plan) {
  const DeviceProfile* device = find_device(plan.request.device);
  if (!device) return Error{Code::bad_argument, "plan: unknown device '" + plan.request.device + "'"};
  Programs programs = make_programs(graph, plan.decisions, plan.request.global_batch, plan.request.threads,
                                    device->alignment);
  if (programs.arena_bytes != plan.bytes.arena)
    return Error{Code::corrupt, "plan: its arena has " + std::to_string(plan.bytes.arena) +
                                    " bytes, its programs need " + std::to_string(programs.arena_bytes) +
                                    ": it was made for another model or by another version; plan again"};
  if (programs.arena.host_bytes != plan.bytes.host)
    return Error{Code::corrupt, "plan: it keeps " + std::to_string(plan.bytes.host) +
                                    " bytes in host memory, its programs " +
                                    std::to_string(programs.arena.host_bytes)};
  std::vector<const Program*> step{&programs.update};
  if (graph.fuses_updates()) step.push_back(&programs.micro_first);
  STW_TRY(verify_updates(graph, step));
  STW_TRY(verify_tables(graph, programs.tables, programs.table_gradients, programs.evaluate_tables));
  STW_TRY(verify_kept_rows(graph, plan.request.global_batch));
  for (const Program* p : programs.all()) STW_TRY(verify(graph, programs.arena, *p, programs.arena_bytes));
  return programs;
}

}  // namespace stw
