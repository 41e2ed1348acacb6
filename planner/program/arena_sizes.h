// Computes the arena bytes of plans that offload the same tensors. The results equal those of
// `make_programs`, with less work. A program is laid out only if the answer depends on it. Programs that are
// the same in all plans are laid out at most once.
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

  // Bytes of a plan's arena after layout.
  uint64_t of(const Decisions& decisions);
  // Whether a plan's arena takes at most this many bytes. Lays out programs until one of them exceeds the
  // limit.
  bool within(const Decisions& decisions, uint64_t bytes);
  // Number of layouts made so far.
  int64_t layouts() const { return layouts_; }

 private:
  // Bounds of the end of a program's memory. Both are equal once the program has been laid out as low as
  // possible.
  struct End {
    uint64_t least = 0, most = UINT64_MAX;
  };
  struct Part {
    End* end;
    std::function<Program()> build;
  };
  // All programs of a plan. The ones that probably end highest come first.
  std::vector<Part> parts(const Decisions& decisions);
  bool within(const Part& part, uint64_t bytes);

  const Graph& graph_;
  std::shared_ptr<const Arena> arena_;
  int64_t global_batch_;
  int threads_;
  static constexpr size_t changing = 4;  // number of programs that depend on decisions
  std::map<std::vector<int64_t>, std::array<End, changing>> ends_;
  End update_, prefill_, decode_, tables_, table_gradients_, evaluate_tables_;
  int64_t layouts_ = 0;
};

}  // namespace stw
