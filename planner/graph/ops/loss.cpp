// Op table rows of the loss. Gradients are sums that are not normalised, so dlogits = softmax - onehot needs
// only the logits and the targets. cross_entropy computes it in place together with the loss, and the head's
// backward pass starts there. value_loss and span_loss do the same.
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"

namespace stw {

namespace {

Cost entropy_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 20);
  c.bytes = size_add(c.bytes, operand_bytes(g, op.inputs[0], e));  // one more pass over the logits
  return c;
}
Cost value_loss_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 30); }
Cost span_loss_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 40); }
Cost value_hits_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }
Cost hit_count_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }
Cost preference_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 4); }
Cost loss_sum_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }

uint64_t loss_sum_workspace(const Graph&, const Op&, const Extent& e) {
  return kernels::cpu_workspace::loss_sum(e.samples);
}
uint64_t loss_sum_cuda_workspace(const Graph&, const Op&, const Extent& e) {
  return kernels::cuda_workspace::loss_sum(e.samples);
}

uint64_t preference_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  return kernels::cuda_workspace::preference(e.samples, g.rows_of(op));
}

constexpr int logits = in(OpKind::cross_entropy, "logits"), targets = in(OpKind::cross_entropy, "targets");
static_assert(logits == in(OpKind::value_loss, "logits") && targets == in(OpKind::value_loss, "targets") &&
              logits == in(OpKind::span_loss, "logits") && targets == in(OpKind::span_loss, "targets") &&
              logits == in(OpKind::hit_count, "logits") && targets == in(OpKind::hit_count, "targets") &&
              logits == in(OpKind::value_hits, "logits") && targets == in(OpKind::value_hits, "targets"));

// Each row of logits has a target. Losses are fp32, one for each row.
Status loss_shapes(Inference& op) {
  const int64_t classes = op.graph().head.outputs;
  STW_TRY(op.expect(targets, {op.rows()}, logits));
  if (op.features(logits) != classes)
    return op.fail(op.described(logits) + " does not fit targets of " + std::to_string(classes) +
                   " classes: expected " + to_text(op.row_shape(classes)));
  op.set(out(OpKind::cross_entropy, "loss"), {op.rows()}, Format::f32);
  static_assert(out(OpKind::cross_entropy, "loss") == out(OpKind::value_loss, "loss") &&
                out(OpKind::cross_entropy, "loss") == out(OpKind::span_loss, "loss"));
  return ok();
}
Status value_shapes(Inference& op) {
  constexpr int values = in(OpKind::value_loss, "values");
  static_assert(values == in(OpKind::value_hits, "values") && values == in(OpKind::span_loss, "values"));
  STW_TRY(op.expect(values, op.shape(logits), logits));
  return loss_shapes(op);
}

// The forward op runs once, as a part of the backward pass, with dlogits as its second output. For preference
// pairs it runs twice: first for all tokens, to compute the tokens' weights; then with these weights. The
// losses of the second run are not used.
void entropy_backward(Differentiation& d, const Op& op) {
  const int dlogits = d.new_gradient(op.inputs[logits], "dlogits");
  const bool is_of_pairs = d.graph().preference != Preference::none;
  std::vector<int> inputs = op.inputs;
  if (is_of_pairs) inputs.push_back(d.graph().token_weights);
  const int loss = is_of_pairs ? d.new_gradient(op.outputs[0], "weighted_loss") : op.outputs[0];
  d.emit(OpKind::cross_entropy, op.attributes, std::move(inputs), {loss, dlogits});
  d.set_gradient(op.inputs[logits], dlogits);
}

// As in cross entropy, the forward op runs once, with dlogits as its second output.
void in_place_backward(Differentiation& d, const Op& op) {
  const int dlogits = d.new_gradient(op.inputs[logits], "dlogits");
  d.emit(op.kind, op.attributes, op.inputs, {op.outputs[0], dlogits});
  d.set_gradient(op.inputs[logits], dlogits);
}

constexpr OpRow loss_table[] = {
    {.kind = OpKind::cross_entropy,
     .name = "cross_entropy",
     .cost = entropy_cost,
     .infer = loss_shapes,
     .backward = entropy_backward,
     .in_place = {{{1, 0}}}},
    {.kind = OpKind::loss_sum,
     .name = "loss_sum",
     .cost = loss_sum_cost,
     .cpu_workspace = loss_sum_workspace,
     .cuda_workspace = loss_sum_cuda_workspace},
    {.kind = OpKind::preference,
     .name = "preference",
     .cost = preference_cost,
     .cuda_workspace = preference_cuda_workspace},
    {.kind = OpKind::hit_count, .name = "hit_count", .cost = hit_count_cost, .infer = loss_shapes},
    {.kind = OpKind::value_loss,
     .name = "value_loss",
     .cost = value_loss_cost,
     .infer = value_shapes,
     .backward = in_place_backward,
     .in_place = {{{1, 0}}}},
    {.kind = OpKind::span_loss,
     .name = "span_loss",
     .cost = span_loss_cost,
     .infer = value_shapes,
     .backward = in_place_backward,
     .in_place = {{{1, 0}}}},
    {.kind = OpKind::value_hits, .name = "value_hits", .cost = value_hits_cost, .infer = value_shapes},
};

}  // namespace

constinit const std::span<const OpRow> loss_rows{loss_table};

}  // namespace stw
