// How long the tensors live that one segment computes and other segments read: the outputs of segments, and
// the gradients of these outputs.
//
// Forward passes run in the order of the segments, backward passes in reverse order. An output lives up to
// the last forward pass that reads it. If some of the segments that read it have a backward pass, it lives up
// to the backward pass of the first of these segments, even if no op reads it there; or up to that of its own
// segment, if an op reads it there.
//
// The gradient of an output is written in the backward pass of the last segment that reads the output. The
// backward pass of each earlier reader adds to it, so that the order of the sum follows from the graph alone.
#pragma once
#include <vector>

#include "planner/graph/graph.h"

namespace stw {

// An output of an earlier segment, as a segment sees it.
struct OutsideOutput {
  int tensor;
  // Whether the bytes that its own segment keeps (Variant::kept) include it. Then it lives at least up to the
  // backward pass of the segment right after its own one.
  bool is_kept;
  bool outlives_forward, is_in_backward, outlives_backward;  // the passes of the segment that sees it
  bool operator==(const OutsideOutput&) const = default;
};

// A gradient that several backward passes use. `enters`: an earlier pass computed it. `leaves`: a later pass
// reads it.
struct OutsideGradient {
  int tensor;
  bool enters, leaves;
  bool operator==(const OutsideGradient&) const = default;
};

struct SegmentLives {
  // The segment's inputs. Also other outputs of earlier segments, if no segment keeps them and they are alive
  // in one of the segment's passes.
  std::vector<OutsideOutput> outputs;
  // The gradients that are alive when the segment's backward pass begins or ends.
  std::vector<OutsideGradient> gradients;
  bool keeps_output = false;  // whether the bytes that the segment keeps include its output
  bool has_readers = false;   // whether a later segment reads its output
};

// Whether the backward pass of a segment may read the segment's own output.
bool reads_own_output(const Graph& graph, const Segment& segment);

// For every segment of a differentiated graph.
std::vector<SegmentLives> segment_lives(const Graph& graph);

// For every segment: the input that may lie in host memory until the backward pass, or -1. It is the input of
// a block, computed by the segment right before the block, and no other pass reads it.
std::vector<int> inputs_for_host(const Graph& graph);

}  // namespace stw
