#include "planner/program/arena_sizes.h"

#include <algorithm>
#include <cassert>

#include "planner/base/check_in.h"
#include "planner/program/inference.h"
#include "planner/program/layout.h"

namespace stw {

namespace {

using FixedProgram = KnownHeights::FixedProgram;

constexpr FixedProgram all_fixed[] = {FixedProgram::update,          FixedProgram::tables,
                                      FixedProgram::table_gradients, FixedProgram::evaluate_tables,
                                      FixedProgram::prefill,         FixedProgram::decode};
static_assert(std::size(all_fixed) == KnownHeights::fixed_programs);

bool is_of_training(FixedProgram program) {
  return program == FixedProgram::update || program == FixedProgram::table_gradients;
}

// Two independent hashes of 64 bits, each a chain of multiplications by an odd number.
class Hash {
 public:
  void add(uint64_t number) {
    for (size_t i = 0; i < 2; ++i) {
      uint64_t x = (state_[i] ^ number) * factor[i];
      state_[i] = x ^ x >> 29;
    }
  }
  std::array<uint64_t, 2> take() const { return state_; }

 private:
  static constexpr uint64_t factor[] = {0x9e3779b97f4a7c15, 0xd6e8feb86659fd93};
  std::array<uint64_t, 2> state_{1, 2};
};

}  // namespace

KnownHeights::Fixed& KnownHeights::fixed(FixedProgram program, const Offload& offload) {
  std::vector<int> key{static_cast<int>(program), offload.overlap};
  // The update reads no activations, and other programs read neither gradients nor states.
  for (size_t what = 0; what < offload.parts.size(); ++what) {
    const auto kind = static_cast<Offloaded>(what);
    const bool counts = is_of_training(program) ? kind != Offloaded::inputs
                                                : kind == Offloaded::weights || kind == Offloaded::inputs;
    key.push_back(counts ? offload.parts[what] : 0);
  }
  return fixed_[std::move(key)];
}

ProgramHeight& KnownHeights::of(const Program& program, uint64_t alignment) {
  Hash hash;
  for (int c : program.caches) hash.add(static_cast<uint64_t>(c));
  for (const Buffer& b : program.buffers) {
    hash.add(static_cast<uint64_t>(b.first) << 32 | static_cast<uint32_t>(b.last));
    hash.add(round_up(b.bytes, alignment));
  }
  return (*by_buffers_)[hash.take()];
}

ArenaSizes::ArenaSizes(const Graph& graph, std::shared_ptr<const Arena> arena, int64_t global_batch,
                       int threads, std::shared_ptr<KnownHeights> known)
    : graph_(graph),
      arena_(std::move(arena)),
      global_batch_(global_batch),
      threads_(threads),
      known_(std::move(known)) {}

Program ArenaSizes::build(FixedProgram program) const {
  switch (program) {
    case FixedProgram::update: return build_update(graph_, *arena_, threads_);
    case FixedProgram::tables: return build_tables(graph_, *arena_, threads_, false);
    case FixedProgram::table_gradients: return build_table_gradients(graph_, *arena_, threads_);
    case FixedProgram::evaluate_tables: return build_tables(graph_, *arena_, threads_, true);
    case FixedProgram::prefill: return build_generate(graph_, *arena_, threads_).first;
    case FixedProgram::decode: break;
  }
  return build_generate(graph_, *arena_, threads_).second;
}

ArenaSizes::Part ArenaSizes::fixed(FixedProgram program) {
  return {&known_->fixed(program, arena_->offload).height,
          is_of_training(program) ? arena_->gradients_end : arena_->gradients_begin,
          [this, program] { return build(program); }, std::nullopt, false};
}

std::vector<ArenaSizes::Part> ArenaSizes::parts(const Decisions& decisions) {
  std::vector<int64_t> key{decisions.micro_batch, decisions.loss_chunks};
  key.insert(key.end(), decisions.saved.begin(), decisions.saved.end());
  key.insert(key.end(), decisions.tile_rows.begin(), decisions.tile_rows.end());
  std::array<ProgramHeight, changing>& heights = heights_.try_emplace(std::move(key)).first->second;
  std::vector<Part> list;
  auto add_micro = [&](size_t index, int64_t samples, bool accumulate) {
    const auto build = [this, &decisions, samples, accumulate] {
      return build_micro(graph_, *arena_, decisions, samples, threads_, accumulate);
    };
    list.push_back({&heights[index], arena_->gradients_end, build, std::nullopt, true});
  };
  add_micro(0, decisions.micro_batch, false);
  // Without offloaded gradients, all later micro-steps have the layout of the first.
  if (!graph_.fuses_updates() && decisions.offload[Offloaded::gradients] > 0)
    add_micro(1, decisions.micro_batch, true);
  if (const int64_t rest = global_batch_ % decisions.micro_batch; rest > 0) add_micro(2, rest, true);
  const auto evaluate = [this, &decisions] { return build_evaluate(graph_, *arena_, decisions, threads_); };
  list.push_back({&heights[3], arena_->gradients_begin, evaluate, std::nullopt, false});
  for (const FixedProgram program : all_fixed) list.push_back(fixed(program));
  return list;
}

ProgramHeight* ArenaSizes::look_up(Part& part, const Program& program) {
  if (program.instructions.empty()) {
    *part.height = {0, 0};
    return nullptr;
  }
  assert(program.base == part.base);
  ProgramHeight& known = known_->of(program, arena_->alignment);
  known.least = std::max(known.least, live_bound(program, arena_->alignment) - part.base);
  *part.height = known;
  return &known;
}

Program ArenaSizes::look_up_fixed(KnownHeights::Fixed& known, Part& part) {
  Program program = part.build();
  if (ProgramHeight* const height = look_up(part, program)) {
    // Often this is low enough, so that the program need not be built and laid out again.
    const uint64_t most = most_end(program, arena_->alignment) - part.base;
    *part.height = *height = {height->least, std::min(height->most, most)};
  }
  known.has_live_bytes = true;
  return program;
}

bool ArenaSizes::begin_with_fullest(std::vector<Part>& parts, uint64_t bytes) {
  const auto is_too_high = [&](const Part& part) { return part.exceeds(bytes); };
  if (std::any_of(parts.begin(), parts.end(), is_too_high)) return false;
  for (Part& part : parts) {
    if (!part.is_micro_step || part.height->least > 0) continue;
    look_up(part, part.program.emplace(part.build()));
    if (part.exceeds(bytes)) return false;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.is_micro_step && (!b.is_micro_step || a.height->least > b.height->least);
  });
  return true;
}

bool ArenaSizes::within(Part& part, uint64_t bytes) {
  const uint64_t room = bytes - std::min(bytes, part.base);
  if (part.height->most <= room) return true;
  if (part.height->least > room) return false;
  check_in();
  Program program = part.program ? std::move(*part.program) : part.build();
  part.program.reset();
  ProgramHeight* const known = look_up(part, program);
  if (known == nullptr || known->most <= room) return true;
  if (known->least > room) return false;
  ++layouts_;
  lay_out(program, arena_->alignment, bytes);
  known->most = program.end - part.base;
  if (program.end > bytes) known->least = known->most;
  *part.height = *known;
  return program.end <= bytes;
}

bool ArenaSizes::within(const Decisions& decisions, uint64_t bytes) {
  if (arena_->gradients_end > bytes) return false;
  std::vector<Part> list = parts(decisions);
  return begin_with_fullest(list, bytes) &&
         std::all_of(list.begin(), list.end(), [&](Part& part) { return within(part, bytes); });
}

uint64_t ArenaSizes::of(const Decisions& decisions) {
  uint64_t bytes = arena_->gradients_end;
  std::vector<Part> list = parts(decisions);
  begin_with_fullest(list, UINT64_MAX);
  for (Part& part : list) {
    if (within(part, bytes)) continue;
    // This program exceeds the limit. It was laid out as low as possible, unless its live bytes alone already
    // exceeded the limit.
    if (part.height->least != part.height->most) within(part, size_add(part.base, part.height->least));
    bytes = size_add(part.base, part.height->most);
  }
  return bytes;
}

uint64_t ArenaSizes::fixed_live_bytes() {
  uint64_t most = 0;
  for (const FixedProgram program : all_fixed) {
    KnownHeights::Fixed& known = known_->fixed(program, arena_->offload);
    Part part = fixed(program);
    if (!known.has_live_bytes) look_up_fixed(known, part);
    if (known.height.most > 0) most = std::max(most, size_add(part.base, known.height.least));
  }
  return most;
}

uint64_t ArenaSizes::fixed_picoseconds(const std::function<uint64_t(const Program&, bool)>& price) {
  uint64_t sum = 0;
  for (const FixedProgram program :
       {FixedProgram::update, FixedProgram::tables, FixedProgram::table_gradients}) {
    KnownHeights::Fixed& known = known_->fixed(program, arena_->offload);
    if (!known.picoseconds) {
      Part part = fixed(program);
      const Program built = look_up_fixed(known, part);
      known.picoseconds = price(built, program == FixedProgram::update);
    }
    sum = size_add(sum, *known.picoseconds);
  }
  return sum;
}

}  // namespace stw
