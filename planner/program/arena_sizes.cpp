#include "planner/program/arena_sizes.h"

#include <algorithm>

#include "planner/base/check_in.h"
#include "planner/program/inference.h"
#include "planner/program/layout.h"

namespace stw {

ArenaSizes::ArenaSizes(const Graph& graph, std::shared_ptr<const Arena> arena, int64_t global_batch,
                       int threads)
    : graph_(graph), arena_(std::move(arena)), global_batch_(global_batch), threads_(threads) {}

std::vector<ArenaSizes::Part> ArenaSizes::parts(const Decisions& decisions) {
  std::vector<int64_t> key{decisions.micro_batch, decisions.loss_chunks};
  key.insert(key.end(), decisions.saved.begin(), decisions.saved.end());
  key.insert(key.end(), decisions.tile_rows.begin(), decisions.tile_rows.end());
  std::array<End, changing>& ends = ends_.try_emplace(std::move(key)).first->second;
  auto micro = [&](int64_t samples, bool accumulate) {
    return [this, &decisions, samples, accumulate] {
      return build_micro(graph_, *arena_, decisions, samples, threads_, accumulate);
    };
  };
  std::vector<Part> list{{&ends[0], micro(decisions.micro_batch, false)}};
  // Without offloaded gradients, all later micro-steps have the layout of the first.
  if (!graph_.fuses_updates() && decisions.offload[Offloaded::gradients] > 0)
    list.push_back({&ends[1], micro(decisions.micro_batch, true)});
  if (const int64_t rest = global_batch_ % decisions.micro_batch; rest > 0)
    list.push_back({&ends[2], micro(rest, true)});
  list.push_back({&ends[3], [&] { return build_evaluate(graph_, *arena_, decisions, threads_); }});
  list.push_back({&update_, [&] { return build_update(graph_, *arena_, threads_); }});
  list.push_back({&tables_, [&] { return build_tables(graph_, *arena_, threads_, false); }});
  list.push_back({&table_gradients_, [&] { return build_table_gradients(graph_, *arena_, threads_); }});
  list.push_back({&evaluate_tables_, [&] { return build_tables(graph_, *arena_, threads_, true); }});
  list.push_back({&prefill_, [&] { return build_generate(graph_, *arena_, threads_).first; }});
  list.push_back({&decode_, [&] { return build_generate(graph_, *arena_, threads_).second; }});
  return list;
}

bool ArenaSizes::within(const Part& part, uint64_t bytes) {
  End& end = *part.end;
  if (end.most <= bytes) return true;
  if (end.least > bytes) return false;
  check_in();
  Program program = part.build();
  if (program.instructions.empty()) {
    end.most = 0;
    return true;
  }
  end.least = live_bound(program, arena_->alignment);
  if (end.least > bytes) return false;
  ++layouts_;
  lay_out(program, arena_->alignment, bytes);
  end.most = program.end;
  if (program.end > bytes) end.least = program.end;
  return program.end <= bytes;
}

bool ArenaSizes::within(const Decisions& decisions, uint64_t bytes) {
  if (arena_->gradients_end > bytes) return false;
  const std::vector<Part> list = parts(decisions);
  return std::all_of(list.begin(), list.end(), [&](const Part& part) { return within(part, bytes); });
}

uint64_t ArenaSizes::of(const Decisions& decisions) {
  uint64_t bytes = arena_->gradients_end;
  for (const Part& part : parts(decisions)) {
    if (within(part, bytes)) continue;
    // This program exceeds the limit. It was laid out as low as possible, unless its live bytes alone already
    // exceeded the limit.
    if (part.end->least != part.end->most) within(part, part.end->least);
    bytes = part.end->most;
  }
  return bytes;
}

}  // namespace stw
