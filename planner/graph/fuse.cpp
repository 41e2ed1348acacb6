#include "planner/graph/fuse.h"

#include <algorithm>

#include "planner/graph/op_table.h"
#include "planner/graph/operands.h"

namespace stw {

namespace {

int reads_of(const std::vector<Op>& ops, int tensor) {
  return static_cast<int>(
      std::count_if(ops.begin(), ops.end(), [&](const Op& op) { return reads(op, tensor); }));
}

// Whether the kernel of a product with this weight can apply this form of GELU to its result. The kernels
// support only the tanh form.
bool ends_in_gelu(const Graph& graph, int weight, Activation form) {
  const Tensor& w = graph.at(weight);
  return form == Activation::gelu_tanh && !is_quantized(w.format) &&
         kernels::ends_in_gelu(w.shape[0], w.shape[1]);
}

bool is_gelu_of(const Graph& graph, const Op& product, const Op& gelu) {
  constexpr OpKind linear = OpKind::linear, activation = OpKind::activation;
  return product.kind == linear && gelu.kind == activation && part_count(product) == 1 &&
         residual_of(product) < 0 && gelu.inputs[in(activation, "x")] == product.outputs[0] &&
         product.segment == gelu.segment && graph.at(product.outputs[0]).row_stride == 0 &&
         reads_of(graph.ops, product.outputs[0]) == 1 &&
         ends_in_gelu(graph, product.inputs[in(linear, "weight")], gelu.attributes.activation);
}

bool is_gelu_gradient_of(const Graph& graph, const Op& product, const Op& gradient) {
  constexpr OpKind of_input = OpKind::linear_input_gradient, of_gelu = OpKind::activation_gradient;
  return product.kind == of_input && gradient.kind == of_gelu && part_count(product) == 1 &&
         product.inputs[in(of_input, "addend")] < 0 &&
         gradient.inputs[in(of_gelu, "dy")] == product.outputs[0] && product.segment == gradient.segment &&
         reads_of(graph.gradient_ops, product.outputs[0]) == 1 &&
         ends_in_gelu(graph, product.inputs[in(of_input, "weight")], gradient.attributes.activation);
}

// The backward pass of a segment.
class Backward {
 public:
  Backward(Graph& graph, const Segment& segment)
      : graph_(graph),
        ops_(graph.gradient_ops),
        begin_(segment.first_gradient_op),
        end_(begin_ + segment.gradient_op_count) {}

  // Fuses GELU's gradient into the product before it. Then treats the gradient of the bias before that GELU.
  // If a norm's gradient follows in the segment, the product writes tile sums, and the norm's kernel adds
  // these up together with its own. Otherwise the product computes the bias gradient itself.
  void fuse_gelu_gradients() {
    for (int i = begin_; i + 1 < end_; ++i) {
      if (!is_gelu_gradient_of(graph_, op(i), op(i + 1))) continue;
      op(i + 1).fused = true;
      for (int bias = i + 2; bias < end_; ++bias)
        if (op(bias).kind == OpKind::linear_bias_gradient && summed_by(bias) == op(i + 1).outputs[0] &&
            op(bias).outputs.size() == 1) {
          if (write_tile_sums(i + 1, bias)) break;
          move(bias, i + 2);
          op(i + 2).fused = true;
          break;
        }
    }
  }

  void fuse_positions() {
    for (int i = begin_; i + 1 < end_; ++i)
      if (op(i).kind == OpKind::embedding_gradient && op(i + 1).kind == OpKind::position_gradient &&
          op(i).inputs[in(OpKind::embedding_gradient, "dy")] ==
              op(i + 1).inputs[in(OpKind::position_gradient, "dy")])
        op(i + 1).fused = true;
  }

  // Moves a bias's gradient into the next norm's gradient if that norm reads the same tensor as its addend.
  // Also moves any bias's gradient that comes after attention's gradient. The tensor that it reads then lives
  // longer, but it is no larger than the queries, keys and values, which attention's gradient has freed.
  void fuse_into_norms() {
    for (int i = begin_; i < end_; ++i) {
      if (op(i).kind != OpKind::linear_bias_gradient || op(i).fused) continue;
      const int norm = next_norm(i);
      if (norm < 0) continue;
      const int addend = op(norm).inputs[in(OpKind::norm_gradient, "addend")];
      const bool is_addend = addend >= 0 && addend == summed_by(i);
      if ((is_addend || comes_after_attention(i)) && fuse_into(norm, i)) --i;  // the next op is here now
    }
  }

  // Delays each gradient of weights or biases until the next op of the same kind, if no tensor lives longer
  // because of that.
  void defer_to_next(OpKind kind) {
    for (int i = begin_; i < end_; ++i) {
      if (op(i).kind != kind || op(i).fused) continue;
      int next = i + 1;
      while (next < end_ && (op(next).kind != kind || op(next).fused)) ++next;
      if (next == end_ || starts_fused_run(i) || starts_fused_run(next) ||
          !(may_wait(i, next) || is_before_gelu_gradient(i, next)) ||
          (kind == OpKind::linear_weight_gradient && !are_one_launch(op(i), op(next))))
        continue;
      move(i, next - 1);
      op(next).fused = true;
      i = next;
    }
  }

 private:
  Op& op(int i) { return ops_[i]; }
  // The tensor whose columns a bias's gradient sums.
  int& summed_by(int i) { return op(i).inputs[in(OpKind::linear_bias_gradient, "dy")]; }
  // Whether op i is the first of a fused run.
  bool starts_fused_run(int i) { return i + 1 < end_ && op(i + 1).fused; }
  void move(int from, int to) {
    const auto at = [&](int i) { return ops_.begin() + i; };
    if (from < to) std::rotate(at(from), at(from + 1), at(to + 1));
    else std::rotate(at(to), at(from), at(from + 1));
  }
  // The next norm's gradient. -1 if there is none, or if it computes no weight's gradient.
  int next_norm(int i) {
    for (int n = i + 1; n < end_; ++n)
      if (op(n).kind == OpKind::norm_gradient)
        return op(n).outputs[out(OpKind::norm_gradient, "dweight")] >= 0 ? n : -1;
    return -1;
  }
  bool fuse_into(int norm, int bias) {
    int end = norm + 1;
    size_t biases = op(bias).outputs.size();
    for (; end < end_ && op(end).fused; ++end) biases += op(end).outputs.size();
    if (biases > size_t{kernels::most_biases}) return false;
    move(bias, end - 1);
    op(end - 1).fused = true;
    return true;
  }
  // Makes op `gradient` write tile sums for the bias's gradient, if possible. The bytes of tile sums for each
  // row must be an integer.
  bool write_tile_sums(int gradient, int bias) {
    const int norm = next_norm(bias), dx = op(gradient).outputs[0];
    const int64_t features = graph_.features(dx);
    const int64_t rows = graph_.rows_of(dx);
    if (norm < 0 || rows % kernels::token_tile != 0 || features * 4 % kernels::token_tile != 0) return false;
    const int sums = static_cast<int>(graph_.tensors.size());
    summed_by(bias) = sums;
    if (!fuse_into(norm, bias)) {
      summed_by(bias) = dx;
      return false;
    }
    op(gradient).outputs.push_back(sums);
    Tensor t;
    t.name = "bias_sums";
    t.shape = {rows / kernels::token_tile, features};
    t.per_sample = t.tile_sums = true;
    t.rows = rows;
    t.segment = op(gradient).segment;
    graph_.tensors.push_back(std::move(t));
    graph_.producer.push_back(-1);
    return true;
  }
  bool comes_after_attention(int i) {
    for (int n = begin_; n < i; ++n)
      if (op(n).kind == OpKind::attention_gradient &&
          graph_.features(summed_by(i)) <=
              graph_.features(op(n).inputs[in(OpKind::attention_gradient, "qkv")]))
        return true;
    return false;
  }
  // Whether one launch can compute the products of both ops: their shapes suit tensor cores, and there are
  // not too many.
  bool are_one_launch(const Op& a, const Op& b) const {
    for (const Op* one : {&a, &b})
      for (const int weight : part_inputs(*one, "weight"))
        for (int dimension : {0, 1})
          if (graph_.at(weight).shape[dimension] % kernels::tensor_chunk != 0) return false;
    return a.outputs.size() + b.outputs.size() <= size_t{kernels::max_parts};
  }
  // Whether op `i` can wait until op `next` without using more memory. For each of its inputs, either another
  // op reads it at `next` or later, or its last reader is attention's gradient. The latter frees queries,
  // keys and values, which are no smaller.
  bool may_wait(int i, int next) {
    for (size_t k = 0; k < op(i).inputs.size(); ++k) {
      if (!reads_input(op(i).kind, k)) continue;
      const int t = op(i).inputs[k];
      int last = -1;
      for (int n = i + 1; n < end_; ++n)
        if (reads(op(n), t)) last = n;
      if (last < 0 || (last < next && op(last).kind != OpKind::attention_gradient)) return false;
    }
    return true;
  }

  // Whether the only ops between the two are a product fused with GELU's gradient. If op `i` waits, GELU's
  // output lives until `next`. GELU's input and output are alive together even without the wait, and the
  // gradient takes the place of the input. So only the sums of a bias need more memory.
  bool is_before_gelu_gradient(int i, int next) {
    constexpr OpKind of_weight = OpKind::linear_weight_gradient, of_input = OpKind::linear_input_gradient;
    constexpr int dy = in(of_weight, "dy");
    const int run = next - i - 1;
    return op(i).kind == of_weight && run >= 2 && op(i + 1).kind == of_input &&
           op(i + 1).inputs[in(of_input, "dy")] == op(i).inputs[dy] &&
           op(i + 2).kind == OpKind::activation_gradient && op(i + 2).fused &&
           (run == 2 || (run == 3 && op(i + 3).fused)) && op(next).inputs[dy] == op(i + 2).outputs[0];
  }

  Graph& graph_;
  std::vector<Op>& ops_;
  const int begin_, end_;
};

}  // namespace

void find_fused_ops(Graph& graph, Kernels kernels) {
  if (kernels != Kernels::tensor && kernels != Kernels::wgmma) return;
  for (size_t i = 0; i + 1 < graph.ops.size(); ++i)
    graph.ops[i + 1].fused = is_gelu_of(graph, graph.ops[i], graph.ops[i + 1]);
  for (const Segment& segment : graph.segments) {
    Backward backward(graph, segment);
    backward.fuse_positions();
    if (segment.kind != SegmentKind::block) continue;
    backward.fuse_gelu_gradients();
    backward.fuse_into_norms();
    for (OpKind kind : {OpKind::linear_weight_gradient, OpKind::linear_bias_gradient})
      backward.defer_to_next(kind);
  }
}

int fused_run(const Graph& graph, int op) {
  for (const std::vector<Op>* list :
       {&graph.ops, &graph.gradient_ops, &graph.update_ops, &graph.evaluate_ops, &graph.generate_ops}) {
    if (op >= static_cast<int>(list->size())) {
      op -= static_cast<int>(list->size());
      continue;
    }
    int run = 1;
    while (op + run < static_cast<int>(list->size()) && (*list)[op + run].fused) ++run;
    return run;
  }
  return 1;
}

int deferred_weight_gradient(const Graph& graph, int op) {
  const int run = fused_run(graph, op);
  if (run == 1 || graph.op(op + 1).kind != OpKind::activation_gradient) return -1;
  const Op& next = graph.op(op + run);
  constexpr OpKind of_weight = OpKind::linear_weight_gradient, of_input = OpKind::linear_input_gradient;
  return next.kind == of_weight && next.inputs[in(of_weight, "dy")] == graph.op(op).inputs[in(of_input, "dy")]
             ? op + run
             : -1;
}

// `activated` is GELU's output, `before` is GELU's input, and `x` is the input of the product before GELU.
// All inputs of the two weight gradients exist before the run in two cases. In the first, `before` and `x`
// are kept. In the second, neither `before` nor `activated` is kept, and one product computes both from `x`.
bool is_deferred(const Graph& graph, const Segment& segment, int weight_gradient, uint32_t saved) {
  const auto exists = [&](int tensor) {
    for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
      if (segment.saveable[bit] == graph.producer[tensor]) return (saved >> bit & 1) != 0;
    return true;
  };
  constexpr int of_product = in(OpKind::linear_weight_gradient, "x");
  const int activated = graph.op(weight_gradient).inputs[of_product],
            x = graph.op(weight_gradient + 1).inputs[of_product];
  const int before = graph.op(graph.producer[activated]).inputs[in(OpKind::activation, "x")];
  return exists(before) ? exists(x) : !exists(activated);
}

std::vector<int> unshared_weight_gradients(const Graph& graph, const Segment& segment, uint32_t saved) {
  const int first = static_cast<int>(graph.ops.size()) + segment.first_gradient_op;
  std::vector<int> list;
  for (int at = first; at < first + segment.gradient_op_count; at += fused_run(graph, at)) {
    const int deferred = deferred_weight_gradient(graph, at);
    if (deferred >= 0 && !is_deferred(graph, segment, deferred, saved)) list.push_back(deferred);
  }
  return list;
}

}  // namespace stw
