// Bytes of the arenas of plans that offload the same, as `make_programs` has them, without all of its work: a program is laid out
// only where the answer depends on it, and those that no decision changes at most once for all plans.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "planner/program/program.h"

namespace stw {

class ArenaSizes {
 public:
  ArenaSizes(const Graph& graph, std::shared_ptr<const Arena> arena, int64_t global_batch, int threads);

  // Bytes of a plan's arena, laid out.
  uint64_t of(const Decisions& decisions);
  // Whether that arena takes at most so many bytes: programs are laid out until one of them ends above.
  bool within(const Decisions& decisions, uint64_t bytes);
  // How many programs were laid out so far.
  int64_t layouts() const { return layouts_; }

 private:
  // Where a program ends, as far as that is known; both are the same once it was laid out as low as it gets.
  struct End { uint64_t least = 0, most = UINT64_MAX; };
  struct Part { End* end; std::function<Program()> build; };
  // All programs of a plan; those that will probably end highest come first.
  std::vector<Part> parts(const Decisions& decisions);
  bool within(const Part& part, uint64_t bytes);

  const Graph& graph_;
  std::shared_ptr<const Arena> arena_;
  int64_t global_batch_;
  int threads_;
  static constexpr size_t changing = 4;   // programs that decisions change
  std::map<std::vector<int64_t>, std::array<End, changing>> ends_;
  End update_, prefill_, decode_;
  int64_t layouts_ = 0;
};

}  // namespace stw
