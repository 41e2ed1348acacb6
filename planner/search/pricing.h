// Prices of decisions in closed form: the sums that a program's instructions would give, without building it.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "planner/device/device.h"
#include "planner/plan/plan.h"
#include "planner/program/program.h"

namespace stw {

// Picoseconds that a segment's feed-forward part takes in tiles.
struct TilePrices {
  uint64_t forward = 0, backward = 0;   // beyond the same ops over all rows, without recompute
  std::vector<uint64_t> ops, fused;     // each of its forward ops, alone and behind the one that it is fused with
};

// Not for several threads at once: sums are kept for the next question.
class Pricing {
 public:
  Pricing(const Graph& graph, const DeviceProfile& device, int threads);

  // Time of a step: all micro-steps and the update. Equal to the sum over the programs' instructions.
  uint64_t step(const Decisions& decisions, int64_t global_batch) const;
  uint64_t recompute(const Decisions& decisions, int64_t global_batch) const;   // the part that runs ops again
  // The part that no save-set and no tiles change.
  uint64_t fixed(int64_t micro_batch, int64_t chunks, int64_t global_batch) const;
  uint64_t micro_steps(int64_t micro_batch, int64_t chunks, int64_t global_batch) const;   // `fixed` without the update
  // A time that no plan undercuts: the least of all micro-batches, with one loss chunk and no more recompute than was asked for.
  uint64_t fastest(int64_t global_batch, int64_t micro_batch, Recompute recompute = Recompute::choose) const;
  // The time of a program: the sum over its instructions; with `overlap` as overlap.h counts it.
  uint64_t program(const Program& program, bool overlap = false) const;
  uint64_t update() const { return update_; }   // where nothing of it is copied, inside the backward pass or behind it
  uint64_t instruction(const Instruction& instruction) const;
  TilePrices tiles(const Segment& segment, int64_t samples, int64_t tile_rows) const;
  uint64_t op(const Op& op, int64_t samples, int64_t rows = 0, int64_t elements = 0) const;   // 0 rows: all
  // Ops [first, first + count) (Graph::op), in turn; and what a fused op adds to the one before it.
  uint64_t ops(int first, int count, int64_t samples) const;
  uint64_t fused(int op, int64_t samples, int64_t rows = 0) const;
  // The time that weight gradients take more because, with this save-set, they do not share a launch (fuse.h).
  uint64_t apart(const Segment& segment, uint32_t saved, int64_t samples) const;
  // time(samples) of every micro-step of a step, added up.
  template <class F>
  static uint64_t over_micro_steps(int64_t global_batch, int64_t micro_batch, const F& time) {
    const uint64_t whole = size_mul(static_cast<uint64_t>(global_batch / micro_batch), time(micro_batch));
    return global_batch % micro_batch == 0 ? whole : size_add(whole, time(global_batch % micro_batch));
  }
  const std::vector<int>& classes() const { return classes_; }   // of the segments

 private:
  uint64_t run(int first, int count, int64_t samples, int64_t rows = 0) const;   // of one instruction
  uint64_t micro(int64_t samples, int64_t chunks) const;
  uint64_t body(int64_t samples) const;   // of a micro-step without the head
  uint64_t head(int64_t samples, int64_t chunks) const;
  uint64_t logits_again(int64_t samples, int64_t chunks) const;
  // What a segment's choice costs.
  struct Choice { uint64_t recompute = 0, tiles = 0; };   // tiles: and ops that are apart
  Choice choice(size_t segment, uint32_t saved, int64_t tile_rows, int64_t samples) const;
  Choice choices(const Decisions& decisions, int64_t samples) const;   // all segments'
  std::vector<int> recomputed_ops(const Segment& segment, uint32_t saved) const;

  const Graph& graph_;
  const DeviceProfile& device_;
  int threads_;
  uint64_t update_ = 0;       // picoseconds
  std::vector<int> classes_;
  std::vector<std::pair<size_t, uint64_t>> distinct_;   // a segment of each class but the head, and how many there are
  // Sums that many candidates share.
  mutable std::map<int64_t, uint64_t> body_;
  mutable std::map<std::pair<int64_t, int64_t>, uint64_t> head_;
  mutable std::map<std::tuple<int, uint32_t, int64_t, int64_t>, Choice> choice_;   // by class, save-set, rows of a tile, samples
};

}  // namespace stw
