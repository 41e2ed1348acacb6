// Computes the arena bytes of plans that offload the same tensors. The results equal those of
// `make_programs`, with less work. A program is laid out only if the answer depends on it. Programs that are
// the same in all plans are laid out at most once.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/program/program.h"

namespace stw {

// Bounds of the height of a program's memory. Both are equal once the program has been laid out as low as
// possible.
struct ProgramHeight {
  uint64_t least = 0, most = UINT64_MAX;
};

// What is known about programs of several plans, graphs and offload choices. Saves building and laying out
// equal programs again.
class KnownHeights {
 public:
  // The programs that no decision changes except what lies in host memory.
  struct Fixed {
    ProgramHeight height;
    bool has_live_bytes = false;  // whether height.least counts them
    std::optional<uint64_t> picoseconds;
  };
  enum class FixedProgram { update, tables, table_gradients, evaluate_tables, prefill, decode };
  static constexpr size_t fixed_programs = 6;

  Fixed& fixed(FixedProgram program, const Offload& offload);
  // Of programs whose buffers have the same lives and sizes.
  ProgramHeight& of(const Program& program, uint64_t alignment);
  // Forgets the programs of fixed(), which belong to one graph.
  KnownHeights for_another_graph() const { return KnownHeights(by_buffers_); }
  KnownHeights() : by_buffers_(std::make_shared<ByBuffers>()) {}

 private:
  using ByBuffers = std::map<std::array<uint64_t, 2>, ProgramHeight>;  // by a hash of the buffers
  explicit KnownHeights(std::shared_ptr<ByBuffers> by_buffers) : by_buffers_(std::move(by_buffers)) {}

  std::shared_ptr<ByBuffers> by_buffers_;
  std::map<std::vector<int>, Fixed> fixed_;  // by program and numbers of offloaded parts
};

class ArenaSizes {
 public:
  using FixedProgram = KnownHeights::FixedProgram;
  // `known`: those of the same graph.
  ArenaSizes(const Graph& graph, std::shared_ptr<const Arena> arena, int64_t global_batch, int threads,
             std::shared_ptr<KnownHeights> known = std::make_shared<KnownHeights>());

  // Bytes of a plan's arena after layout.
  uint64_t of(const Decisions& decisions);
  // Whether a plan's arena takes at most this many bytes. Lays out programs until one of them exceeds the
  // limit.
  bool within(const Decisions& decisions, uint64_t bytes);
  // Number of layouts made so far.
  int64_t layouts() const { return layouts_; }

  // The most live bytes of the programs that no decision changes.
  uint64_t fixed_live_bytes();
  // price(program, whether it is the update), summed over the update and the programs of tables that a step
  // runs.
  uint64_t fixed_picoseconds(const std::function<uint64_t(const Program&, bool)>& price);

 private:
  struct Part {
    ProgramHeight* height;
    uint64_t base;  // where the program's memory begins
    std::function<Program()> build;
    std::optional<Program> program;  // built, but not laid out
    bool is_micro_step = false;
    bool exceeds(uint64_t bytes) const { return size_add(base, height->least) > bytes; }
  };
  // All programs of a plan: first the micro-steps, then the others.
  std::vector<Part> parts(const Decisions& decisions);
  // Counts the live bytes of the micro-steps, which needs no layout, and sorts them: most bytes first. If the
  // first part is too high, the others need no layout, and if not, it leaves them the most room. False as
  // soon as a part has more than `bytes`.
  bool begin_with_fullest(std::vector<Part>& parts, uint64_t bytes);
  bool within(Part& part, uint64_t bytes);
  // Sets part.height to what is known about its program. Returns it, or null if the program has no
  // instructions.
  ProgramHeight* look_up(Part& part, const Program& program);
  Part fixed(FixedProgram program);
  // Builds a fixed program, and finds bounds of its height.
  Program look_up_fixed(KnownHeights::Fixed& known, Part& part);
  Program build(FixedProgram program) const;

  const Graph& graph_;
  std::shared_ptr<const Arena> arena_;
  int64_t global_batch_;
  int threads_;
  std::shared_ptr<KnownHeights> known_;
  static constexpr size_t changing = 4;  // number of programs that depend on decisions
  std::map<std::vector<int64_t>, std::array<ProgramHeight, changing>> heights_;
  int64_t layouts_ = 0;
};

}  // namespace stw
