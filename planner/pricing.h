// Prices of decisions in closed form: the sums that a program's instructions would give, without building it.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "planner/device.h"
#include "planner/plan.h"
#include "planner/program.h"

namespace stw {

// A save-set of one block: what it keeps and what it computes again.
struct Rung { uint32_t saved; uint64_t bytes; uint64_t picoseconds; };

// Not for several threads at once: sums are kept for the next question.
class Pricing {
 public:
  Pricing(const Graph& graph, const DeviceProfile& device, int threads);

  // Save-sets worth considering, the one that keeps most first.
  std::vector<Rung> ladder(Recompute recompute) const;
  // Time of a step: all micro-steps and the update. Equal to the sum over the programs' instructions.
  uint64_t step(const Decisions& decisions, int64_t global_batch) const;
  uint64_t recompute(const Decisions& decisions, int64_t global_batch) const;   // the part that runs ops again
  // Arena bytes that are alive when the head runs: persistent tensors, inputs and all that is kept. No layout is smaller.
  uint64_t least_bytes(const Decisions& decisions) const;
  // Lower bound of the time of a step: no recompute, one loss chunk, the best micro-batch.
  uint64_t fastest(int64_t global_batch, int64_t micro_batch) const;
  bool is_unconstrained(uint64_t picoseconds, int64_t global_batch, int64_t micro_batch) const {
    return picoseconds <= fastest(global_batch, micro_batch);
  }
  uint64_t program(const Program& program) const;   // sum over its instructions

 private:
  uint64_t op(const Op& op, int64_t samples, int64_t rows) const;
  uint64_t micro(const Decisions& decisions, int64_t samples) const;
  uint64_t compute_micro(const Decisions& decisions, int64_t samples) const;
  uint64_t recompute_segment(size_t segment, uint32_t saved, int64_t samples) const;
  std::vector<int> recomputed_ops(const Segment& segment, uint32_t saved) const;
  uint64_t kept_bytes(const Segment& segment, uint32_t saved) const;   // of one sample

  const Graph& graph_;
  const DeviceProfile& device_;
  int threads_;
  uint64_t persistent_ = 0;   // bytes
  uint64_t update_ = 0;       // picoseconds
  // Sums that many candidates share, by (samples, loss chunks) and by (kind of segment, save-set, samples).
  mutable std::map<std::pair<int64_t, int64_t>, uint64_t> micro_;
  mutable std::map<std::tuple<SegmentKind, uint32_t, int64_t>, uint64_t> recompute_;
};

}  // namespace stw
