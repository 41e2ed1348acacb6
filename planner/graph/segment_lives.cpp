#include "planner/graph/segment_lives.h"

#include <algorithm>

namespace stw {

namespace {

// The life of a segment's output. -1: no such segment.
struct OutputLife {
  std::vector<int> readers;       // segments, in order
  int first_backward = -1;        // the first of these that has a backward pass
  bool is_read_by_own = false;    // by the backward pass of the segment that computes it
  bool is_kept_by(int s) const {  // the segment that computes it
    return is_read_by_own || first_backward == s + 1;
  }
};

bool has_backward(const Segment& s) { return s.gradient_op_count > 0; }

}  // namespace

bool reads_own_output(const Graph& graph, const Segment& segment) {
  const auto first = graph.gradient_ops.begin() + segment.first_gradient_op;
  return std::any_of(first, first + segment.gradient_op_count,
                     [&](const Op& op) { return reads(op, segment.output); });
}

namespace {

// By segment.
std::vector<OutputLife> output_lives(const Graph& graph) {
  std::vector<OutputLife> lives(graph.segments.size());
  for (int s = 0; s < static_cast<int>(graph.segments.size()); ++s) {
    const Segment& segment = graph.segments[s];
    for (const int t : segment.inputs) {
      OutputLife& life = lives[graph.at(t).segment];
      life.readers.push_back(s);
      if (has_backward(segment) && life.first_backward < 0) life.first_backward = s;
    }
    lives[s].is_read_by_own = reads_own_output(graph, segment);
  }
  return lives;
}

void add_outputs(const Graph& graph, std::vector<SegmentLives>& list) {
  const std::vector<OutputLife> lives = output_lives(graph);
  const int count = static_cast<int>(graph.segments.size());
  for (int p = 0; p < count; ++p) {
    const OutputLife& life = lives[p];
    const bool is_kept = life.is_kept_by(p),
               is_read_backward = life.is_read_by_own || life.first_backward >= 0;
    list[p].keeps_output = is_kept;
    list[p].has_readers = !life.readers.empty();
    const auto see = [&](int s) {
      const bool is_in_backward = life.is_read_by_own || (is_read_backward && s >= life.first_backward);
      list[s].outputs.push_back({graph.segments[p].output, is_kept,
                                 is_read_backward || s < life.readers.back(), is_in_backward,
                                 is_in_backward && (life.is_read_by_own || s > life.first_backward)});
    };
    if (is_kept || life.readers.empty()) {
      for (const int s : life.readers) see(s);
      continue;
    }
    const int end = is_read_backward ? count : life.readers.back() + 1;
    for (int s = p + 1; s < end; ++s) see(s);
  }
}

void add_gradients(const Graph& graph, std::vector<SegmentLives>& list) {
  // For every tensor: the segments whose backward passes compute it and read it last. -1: none.
  std::vector<int> made_in(graph.tensors.size(), -1), read_in(graph.tensors.size(), -1);
  for (int s = static_cast<int>(graph.segments.size()) - 1; s >= 0; --s) {
    const Segment& segment = graph.segments[s];
    for (int i = 0; i < segment.gradient_op_count; ++i) {
      const Op& op = graph.gradient_ops[segment.first_gradient_op + i];
      for (const int t : op.inputs)
        if (t >= 0) read_in[t] = s;
      for (const int t : op.outputs)
        if (t >= 0 && made_in[t] < 0) made_in[t] = s;
    }
  }
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t) {
    if (made_in[t] < 0 || read_in[t] < 0 || graph.at(t).role != Role::activation) continue;
    for (int s = made_in[t]; s >= read_in[t]; --s)
      if (s < made_in[t] || s > read_in[t]) list[s].gradients.push_back({t, s<made_in[t], s> read_in[t]});
  }
}

}  // namespace

std::vector<SegmentLives> segment_lives(const Graph& graph) {
  std::vector<SegmentLives> list(graph.segments.size());
  add_outputs(graph, list);
  add_gradients(graph, list);
  return list;
}

std::vector<int> inputs_for_host(const Graph& graph) {
  const std::vector<OutputLife> lives = output_lives(graph);
  std::vector<int> list(graph.segments.size(), -1);
  for (size_t s = 1; s < graph.segments.size(); ++s) {
    if (graph.segments[s].kind != SegmentKind::block) continue;
    const OutputLife& life = lives[s - 1];
    if (life.readers == std::vector{static_cast<int>(s)} && !life.is_read_by_own)
      list[s] = graph.segments[s - 1].output;
  }
  return list;
}

}  // namespace stw
