// Emits the parts of a micro-step, segment by segment: a whole program is made of them (program.cpp), and the memory of
// a segment is measured on them alone (segment_profile.cpp), so that both are the same instructions.
#pragma once
#include "planner/emitter.h"

namespace stw {

class MicroBuilder {
 public:
  // `accumulate`: not the first micro-step of its step.
  MicroBuilder(const Graph& graph, Emitter& emitter, bool accumulate) : graph_(graph), e_(emitter), accumulate_(accumulate) {}

  // What is not in `saved`, a set of Segment::saveable, is gone at the end, but for the segment's output.
  void forward(size_t segment, uint32_t saved);
  // The loss's forward is part of its backward; the token losses are summed when all chunks are through.
  void head(int64_t chunks);
  void backward(size_t segment);

 private:
  void recompute(int tensor);

  const Graph& graph_;
  Emitter& e_;
  bool accumulate_;
};

}  // namespace stw
