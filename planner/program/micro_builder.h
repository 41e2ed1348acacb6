// Emits the parts of a micro-step, segment by segment: a whole program is made of them (program.cpp), and the memory of
// a segment is measured on them alone (segment_profile.cpp), so that both are the same instructions.
//
// What a segment reads of host memory is fetched by the ops that need it. Where copies run beside the ops, each forward
// and each backward pass of a segment is a stage: what it reads was fetched in the stage before, what it leaves for host
// memory is stored in the stage after. A block's input is stored while its own forward pass runs.
#pragma once
#include "planner/program/emitter.h"
#include "planner/graph/feed_forward.h"

namespace stw {

class MicroBuilder {
 public:
  // `accumulate`: not the first micro-step of its step.
  MicroBuilder(const Graph& graph, Emitter& emitter, bool accumulate, bool overlap = false)
      : graph_(graph), emitter_(emitter), accumulate_(accumulate), overlap_(overlap) {}

  void micro_step(const Decisions& decisions);

  // What is not in `saved`, a set of Segment::saveable, is gone at the end, but for the segment's output. `tiles`: of the
  // feed-forward part, which then keeps nothing; one: all rows at once.
  void forward(size_t segment, uint32_t saved, const std::vector<Tile>& tiles);
  // The loss's forward is part of its backward; the token losses are summed when all chunks are through.
  void head(const std::vector<Tile>& chunks);
  void backward(size_t segment, uint32_t saved, const std::vector<Tile>& tiles);

  void fetch(const std::vector<int>& tensors, Phase phase);
  // Gradients that wait to be stored: by the stage that follows.
  void store_pending();
  const std::vector<int>& pending() const { return pending_; }

 private:
  void recompute(int tensor);
  void backward_in_tiles(const FeedForward& part, const std::vector<Tile>& tiles);
  void recompute_tile(const FeedForward& part, int tensor, const Tile& tile);
  int first_to_recompute(int op) const;
  std::vector<int> inputs_of_run(int first, int run) const;
  bool is_read_in_backward(int op) const;
  // What a gradient op leaves for host memory, and the updates that follow it.
  void after_gradients(int gradient_op);

  const Graph& graph_;
  Emitter& emitter_;
  bool accumulate_, overlap_;
  std::vector<int> pending_;
};

// What the forward or backward pass of a segment reads of host memory, whatever its save-set, and without its input in the
// forward pass, which was never away; and what it writes.
std::vector<int> host_reads(const Graph& graph, const Arena& arena, size_t segment, Phase phase, bool accumulate);
std::vector<int> host_writes(const Graph& graph, const Arena& arena, size_t segment);

}  // namespace stw
