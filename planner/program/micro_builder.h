// Emits the parts of a micro-step, segment by segment. program.cpp makes whole programs of these parts.
// segment_profile.cpp computes the memory of a segment from the same parts, so both have the same
// instructions.
//
// An op fetches the tensors that it needs from host memory. If copies run while ops compute, each forward and
// each backward pass of a segment is a stage. The tensors that it reads are fetched in the previous stage,
// and the tensors that go to host memory are stored in the next stage. A block's input is stored while the
// block's own forward pass runs.
#pragma once
#include "planner/graph/feed_forward.h"
#include "planner/program/emitter.h"

namespace stw {

class MicroBuilder {
 public:
  // `accumulate`: not the first micro-step of its step.
  MicroBuilder(const Graph& graph, Emitter& emitter, bool accumulate, bool overlap = false)
      : graph_(graph), emitter_(emitter), accumulate_(accumulate), overlap_(overlap) {}

  void micro_step(const Decisions& decisions);

  // Emits the forward pass of a segment. At its end only the tensors in `saved`, a set of Segment::saveable,
  // and the segment's output remain. `tiles`: those of the feed-forward part; with more than one, the part
  // keeps nothing.
  void forward(size_t segment, uint32_t saved, const std::vector<Tile>& tiles);
  // The loss's forward pass is part of its backward pass. The token losses are summed after all chunks.
  void head(const std::vector<Tile>& chunks);
  void backward(size_t segment, uint32_t saved, const std::vector<Tile>& tiles);

  void fetch(const std::vector<int>& tensors, Phase phase);
  // Stores the gradients of parameters that the previous stage completed.
  void store_pending();
  const std::vector<int>& pending() const { return pending_; }

 private:
  void recompute(int tensor);
  void backward_in_tiles(const FeedForward& part, const std::vector<Tile>& tiles);
  void recompute_tile(const FeedForward& part, int tensor, const Tile& tile);
  void hold_outside(const Segment& segment, int output);
  int first_to_recompute(int op) const;
  std::vector<int> inputs_of_run(int first, int run) const;
  bool is_read_in_backward(int op) const;
  // Handles the gradients of a gradient op that go to host memory, and emits the updates that follow the op.
  void after_gradients(int gradient_op);

  const Graph& graph_;
  Emitter& emitter_;
  bool accumulate_, overlap_;
  std::vector<int> pending_;
};

// host_reads: the tensors in host memory that the forward or backward pass of a segment reads, whatever the
// save-set. host_writes: those that its backward pass writes. The forward pass does not fetch the segment's
// inputs: they are still on the device.
std::vector<int> host_reads(const Graph& graph, const Arena& arena, size_t segment, Phase phase,
                            bool accumulate);
std::vector<int> host_writes(const Graph& graph, const Arena& arena, size_t segment);

}  // namespace stw
