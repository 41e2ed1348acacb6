#include "planner/micro_builder.h"

namespace stw {

namespace {

bool is_kept(const Segment& segment, int op, uint32_t saved) {
  for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
    if (segment.saveable[bit] == op) return saved >> bit & 1;
  return false;
}

}  // namespace

void MicroBuilder::forward(size_t s, uint32_t saved) {
  const Segment& segment = graph_.segments[s];
  for (int i = 0; i < segment.op_count; ++i) e_.emit(segment.first_op + i, Phase::forward);
  for (int i = 0; i < segment.op_count; ++i)
    for (int t : graph_.ops[static_cast<size_t>(segment.first_op + i)].outputs)
      if (t != segment.output && !is_kept(segment, segment.first_op + i, saved)) e_.drop(t);
}

void MicroBuilder::head(int64_t chunks) {
  const Segment& segment = graph_.segments.back();
  std::vector<int> ops{segment.first_op};
  for (int i = 0; i < segment.gradient_op_count; ++i)
    ops.push_back(static_cast<int>(graph_.ops.size()) + segment.first_gradient_op + i);
  e_.emit_chunks(ops, chunks, Phase::backward, accumulate_);
  e_.emit(segment.first_op + segment.op_count - 1, Phase::backward);
}

void MicroBuilder::backward(size_t s) {
  const Segment& segment = graph_.segments[s];
  for (int i = 0; i < segment.gradient_op_count; ++i) {
    const int index = static_cast<int>(graph_.ops.size()) + segment.first_gradient_op + i;
    for (int t : graph_.op(index).inputs) recompute(t);
    e_.emit(index, Phase::backward, accumulate_);
  }
  for (int i = 0; i < segment.op_count; ++i)
    for (int t : graph_.ops[static_cast<size_t>(segment.first_op + i)].outputs) e_.drop(t);
}

// Just in time: an op runs again right before the first one that needs its output.
void MicroBuilder::recompute(int tensor) {
  if (tensor < 0 || e_.has(tensor)) return;
  const int op = graph_.producer[static_cast<size_t>(tensor)];
  if (op < 0) return;  // persistent
  for (int t : graph_.ops[static_cast<size_t>(op)].inputs) recompute(t);
  e_.emit(op, Phase::recompute);
}

}  // namespace stw
