#include "planner/graph/feed_forward.h"

#include <algorithm>

#include "planner/graph/op_table.h"

namespace stw {

namespace {

bool is_activation(OpKind kind) { return kind == OpKind::activation || kind == OpKind::gated; }

bool contains(const std::vector<int>& list, int t) {
  return std::find(list.begin(), list.end(), t) != list.end();
}

// Number of times that each tensor is read.
std::vector<int> reads_of(const Graph& graph, const std::vector<Op>& ops) {
  std::vector<int> reads(graph.tensors.size());
  for (const Op& op : ops)
    for (int t : op.inputs)
      if (t >= 0) ++reads[t];
  return reads;
}

class Finder {
 public:
  explicit Finder(const Graph& graph)
      : graph_(graph),
        reads_(reads_of(graph, graph.ops)),
        gradient_reads_(reads_of(graph, graph.gradient_ops)) {}

  FeedForward part_of(const Segment& segment) const;

 private:
  FeedForward part_from(int first, int end) const;
  bool find_gradient_ops(const Segment& segment, FeedForward& part) const;
  // Whether only the ops [first, end) read these tensors.
  static bool is_private(const std::vector<Op>& ops, const std::vector<int>& reads, int first, int end,
                         const std::vector<int>& tensors) {
    for (int t : tensors) {
      int own = 0;
      for (int i = first; i < end; ++i) {
        const std::vector<int>& inputs = ops[i].inputs;
        own += static_cast<int>(std::count(inputs.begin(), inputs.end(), t));
      }
      if (own != reads[t]) return false;
    }
    return true;
  }

  const Graph& graph_;
  std::vector<int> reads_, gradient_reads_;  // by forward ops, and by gradient ops
};

// Finds the gradient ops of the part: from the first to the last op that touches an inner tensor or its
// gradient.
bool Finder::find_gradient_ops(const Segment& segment, FeedForward& part) const {
  const int begin = segment.first_gradient_op, end = begin + segment.gradient_op_count;
  auto op = [&](int i) -> const Op& { return graph_.gradient_ops[i]; };
  // An op that computes an input gradient may read no inner tensor. It is found by the parameters that it
  // reads.
  std::vector<int> parameters, outer;  // parameters of all ops, and of the ops that read the part's input
  const int input = graph_.op(part.first_op).inputs[in(OpKind::linear, "x")];
  for (int i = part.first_op; i < part.first_op + part.op_count; ++i)
    for (int t : graph_.op(i).inputs) {
      if (t < 0 || graph_.at(t).role != Role::parameter) continue;
      parameters.push_back(t);
      if (graph_.op(i).inputs[0] == input) outer.push_back(t);
    }
  const auto is_input_gradient = [&](const Op& o) {
    return o.kind == OpKind::linear_input_gradient || o.kind == OpKind::adapter_input_gradient;
  };
  const auto computes_part_input_gradient = [&](const Op& o) {
    return o.kind == OpKind::linear_input_gradient &&
           contains(outer, o.inputs[in(OpKind::linear_input_gradient, "weight")]);
  };
  int first = end, last = begin - 1;
  std::vector<int> inner = part.inner;
  for (int i = begin; i < end; ++i) {
    const auto is_inside = [&](int t) {
      return t >= 0 && (contains(inner, t) || (is_input_gradient(op(i)) && contains(parameters, t)));
    };
    if (std::none_of(op(i).inputs.begin(), op(i).inputs.end(), is_inside)) continue;
    first = std::min(first, i);
    last = i;
    // The gradient of the part's input is complete after the last op that adds to it.
    bool is_of_input = computes_part_input_gradient(op(i));
    for (int k = i + 1; k < end && is_of_input; ++k)
      is_of_input = !(computes_part_input_gradient(op(k)) &&
                      op(k).inputs[in(OpKind::linear_input_gradient, "addend")] == op(i).outputs[0]);
    for (int t : op(i).outputs)
      // Sums over rows are not inner tensors: they cover all tiles.
      if (t >= 0 && graph_.at(t).per_sample && !graph_.at(t).tile_sums && !is_of_input) inner.push_back(t);
  }
  for (int i = first; i <= last; ++i) {
    if (!op_row(op(i).kind).is_row_by_row) return false;
    if (op(i).kind == OpKind::linear_weight_gradient)
      for (int t : op(i).outputs)
        if (t >= 0 && graph_.at(t).format != Format::f32) return false;
  }
  part.first_gradient_op = std::min(first, last + 1);
  part.gradient_op_count = std::max(0, last + 1 - first);
  part.inner_gradients.assign(inner.begin() + static_cast<std::ptrdiff_t>(part.inner.size()), inner.end());
  return is_private(graph_.gradient_ops, gradient_reads_, first, last + 1, inner);
}

// The part that begins with op `first` and ends with a product after an activation. All of its ops work row
// by row. They read the first op's input or each other's outputs; only residuals may come from elsewhere.
FeedForward Finder::part_from(int first, int end) const {
  auto op = [&](int i) -> const Op& { return graph_.ops[i]; };
  FeedForward part;
  part.first_op = first;
  std::vector<int> outputs;
  bool has_activation = false;
  for (int i = first; i < end && op_row(op(i).kind).is_row_by_row; ++i) {
    const bool is_part = std::all_of(op(i).inputs.begin(), op(i).inputs.end(), [&](int t) {
      return t < 0 || !graph_.at(t).per_sample || t == op(first).inputs[0] || t == residual_of(op(i)) ||
             contains(outputs, t);
    });
    if (!is_part) break;
    outputs.push_back(op(i).outputs[0]);
    has_activation |= is_activation(op(i).kind);
    if (has_activation && (op(i).kind == OpKind::linear || op(i).kind == OpKind::adapter))
      part.op_count = i + 1 - first;
  }
  if (part.exists()) part.inner.assign(outputs.begin(), outputs.begin() + part.op_count - 1);
  return part;
}

FeedForward Finder::part_of(const Segment& segment) const {
  const int end = segment.first_op + segment.op_count;
  for (int first = segment.first_op; first < end; ++first) {
    if (graph_.ops[first].kind != OpKind::linear) continue;
    FeedForward part = part_from(first, end);
    if (part.exists() && is_private(graph_.ops, reads_, first, first + part.op_count, part.inner) &&
        find_gradient_ops(segment, part))
      return part;
  }
  return {};
}

}  // namespace

int64_t tile_unit(const Graph& graph, const FeedForward& part) {
  const auto first = graph.gradient_ops.begin() + part.first_gradient_op;
  return std::any_of(first, first + part.gradient_op_count, is_sum_of_chains) ? kernels::chain_terms
                                                                              : frozen_tile_unit;
}

Tiling tiling_of(int64_t rows, int64_t rows_per_sample, int64_t tile_rows) {
  if (tile_rows <= 0 || tile_rows >= rows) return {rows, 1, 0, 0};
  // A tile holds whole samples, or a part of one sample.
  const bool whole = tile_rows >= rows_per_sample;
  const int64_t step = whole ? tile_rows / rows_per_sample * rows_per_sample : tile_rows,
                length = whole ? rows : rows_per_sample, pieces = rows / length;
  return {step, length / step * pieces, length % step, length % step > 0 ? pieces : 0};
}

std::vector<Tile> tiles_of(int64_t rows, int64_t rows_per_sample, int64_t tile_rows) {
  const Tiling t = tiling_of(rows, rows_per_sample, tile_rows);
  // Number of full tiles before a short one.
  const int64_t in_a_row = t.short_count > 0 ? t.count / t.short_count : t.tiles();
  std::vector<Tile> tiles;
  for (int64_t begin = 0, n = 0; begin < rows; begin += tiles.back().rows, ++n)
    tiles.push_back({begin, n % (in_a_row + 1) == in_a_row ? t.short_rows : t.rows});
  return tiles;
}

int64_t rows_in_tiles(const Graph& graph, const Segment& segment) {
  return segment.feed_forward.exists() ? graph.rows_of(graph.op(segment.feed_forward.first_op))
                                       : graph.sequence;
}

bool is_inner(const FeedForward& part, int tensor) {
  return contains(part.inner, tensor) || contains(part.inner_gradients, tensor);
}

bool may_tile(const Graph& graph, const Segment& segment, uint32_t saved) {
  const FeedForward& part = segment.feed_forward;
  if (!part.exists()) return false;
  for (size_t bit = 0; bit < segment.saveable.size(); ++bit) {
    const int op = segment.saveable[bit];
    const bool is_kept = saved >> bit & 1;
    if (is_kept ? contains(part.inner, graph.op(op).outputs[0]) : op >= part.first_op + part.op_count - 1)
      return false;
  }
  return true;
}

void find_feed_forward(Graph& graph) {
  // cuBLASLt computes other bits if a sample's weight gradient is cut into pieces.
  if (uses_cublaslt(graph.kernels)) return;
  const Finder finder(graph);
  for (Segment& s : graph.segments)
    if (s.kind == SegmentKind::block) s.feed_forward = finder.part_of(s);
}

}  // namespace stw
