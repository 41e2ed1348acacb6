// The time of plans by the cost model, in closed form: it equals the sum over a program's instructions, but
// no program is built.
#pragma once
#include <compare>
#include <map>
#include <tuple>
#include <vector>

#include "planner/device/device.h"
#include "planner/plan/plan.h"
#include "planner/program/program.h"

namespace stw {

// Picoseconds of a segment's feed-forward part in tiles.
struct TilePrices {
  // Time in addition to the time of the same ops over all rows. Does not include recompute.
  uint64_t forward = 0, backward = 0;
  // Time of each forward op of the part: alone (`ops`), and in addition to the op that it is fused with
  // (`fused`).
  std::vector<uint64_t> ops, fused;
};

// All micro-batches from `fewest` to `most` samples.
struct MicroBatches {
  int64_t fewest, most;
  auto operator<=>(const MicroBatches&) const = default;
};

// Not thread-safe: sums are kept for later calls.
class Pricing {
 public:
  Pricing(const Graph& graph, const DeviceProfile& device, int threads);

  // Time of a step: all micro-steps and the update. Equals the sum over the programs' instructions.
  uint64_t step(const Decisions& decisions, int64_t global_batch) const;
  // The part of this time that is recompute.
  uint64_t recompute(const Decisions& decisions, int64_t global_batch) const;
  // The part of a step's time that does not depend on save-sets and tiles.
  uint64_t fixed(int64_t micro_batch, int64_t chunks, int64_t global_batch) const;
  uint64_t head(int64_t samples, int64_t chunks) const;  // of a micro-step
  // `fixed` without the update
  uint64_t micro_steps(int64_t micro_batch, int64_t chunks, int64_t global_batch) const;
  // A lower bound of the time of every plan: the time with the largest micro-batch that the request allows,
  // one loss chunk, and only the recompute that the request demands. `micro_batch`: as in the request.
  uint64_t fastest(int64_t global_batch, int64_t micro_batch, Recompute recompute = Recompute::choose) const;
  // The time of a program: the sum over its instructions. With `overlap`, the time by overlap.h.
  uint64_t program(const Program& program, bool overlap = false) const;
  uint64_t update() const { return update_; }  // all updates, if nothing is offloaded
  // Picoseconds that it takes to form a gradient (kept_rows.h) in the slices in which states are copied.
  uint64_t forming_with_copies() const;
  uint64_t instruction(const Instruction& instruction) const;
  // `even`: as if all rows were in tiles of equal rows, which is a lower bound.
  TilePrices tiles(const Segment& segment, int64_t samples, int64_t tile_rows, bool even = false) const;
  uint64_t op(const Op& op, int64_t samples, int64_t rows = 0, int64_t elements = 0) const;  // 0 rows: all
  // `ops`: time of the ops [first, first + count) (see Graph::op) one after the other. `fused`: the time that
  // a fused op adds to the op before it.
  uint64_t ops(int first, int count, int64_t samples) const;
  uint64_t fused(int op, int64_t samples, int64_t rows = 0) const;
  // The additional time of a weight gradient that does not share a launch (unshared_weight_gradients).
  uint64_t unshared_launch(int weight_gradient, int64_t samples) const;
  // The sum of time(samples) over all micro-steps of a step.
  template <class F>
  static uint64_t over_micro_steps(int64_t global_batch, int64_t micro_batch, const F& time) {
    const uint64_t whole = size_mul(static_cast<uint64_t>(global_batch / micro_batch), time(micro_batch));
    return global_batch % micro_batch == 0 ? whole : size_add(whole, time(global_batch % micro_batch));
  }
  // A lower bound of the time, in a whole step, of something that takes `next` in a micro-step of range.most
  // samples, and `first` <= `next` in the first one. It holds for all micro-batches in the range, because
  // fewer samples never take less time per sample. `prices`: the number of instructions in a micro-step; the
  // time of each is rounded down by less than 2.
  static uint64_t least_in_step(uint64_t first, uint64_t next, const MicroBatches& range, uint64_t prices,
                                int64_t global_batch);
  const std::vector<int>& classes() const { return classes_; }  // one number a segment (segment_class.h)

 private:
  // The time of one instruction that computes the ops [first, first + count).
  uint64_t run(int first, int count, int64_t samples, int64_t rows = 0) const;
  uint64_t micro(int64_t samples, int64_t chunks) const;
  uint64_t body(int64_t samples) const;  // of a micro-step without the head
  uint64_t logits_again(int64_t samples, int64_t chunks) const;
  // The additional time of a segment's save-set and tiles. `tiles` includes the time of launches that are not
  // shared.
  struct Choice {
    uint64_t recompute = 0, tiles = 0;
  };
  Choice choice(size_t segment, uint32_t saved, int64_t tile_rows, int64_t samples) const;
  Choice choices(const Decisions& decisions, int64_t samples) const;  // of all segments
  std::vector<int> recomputed_ops(const Segment& segment, uint32_t saved) const;

  const Graph& graph_;
  const DeviceProfile& device_;
  int threads_;
  uint64_t update_ = 0;  // picoseconds
  std::vector<int> classes_;
  // For each class of segments, without the head: the index of one segment, and the number of segments.
  std::vector<std::pair<size_t, uint64_t>> distinct_;
  // Sums that many candidates share.
  mutable std::map<int64_t, uint64_t> body_;
  mutable std::map<std::tuple<int, int, int64_t>, uint64_t> ops_;  // by first op, number of ops, samples
  mutable std::map<std::pair<int64_t, int64_t>, uint64_t> head_;
  // By class, save-set, rows of a tile, samples.
  mutable std::map<std::tuple<int, uint32_t, int64_t, int64_t>, Choice> choice_;
};

}  // namespace stw
