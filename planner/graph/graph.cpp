#include "planner/graph/graph.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/contract/step_state.h"
#include "planner/graph/infer.h"
#include "planner/graph/op_table.h"

namespace stw {

std::string Graph::segment_name(int segment) const {
  if (segment < 0) return "";
  const Segment& s = segments[segment];
  switch (s.kind) {
    case SegmentKind::embedding: return "embedding";
    case SegmentKind::block: return "block " + std::to_string(s.block);
    case SegmentKind::final: return "final norm";
    case SegmentKind::head: return "head";
  }
  return "";
}

uint32_t Segment::choice_of(uint32_t saved) const {
  for (size_t k = 0; k < kept_with.size(); ++k) {
    const int with = kept_with[k];
    if (with == own_choice) continue;
    const bool is_kept = with == always || (with >= 0 && (saved >> with & 1));
    saved = (saved & ~(1u << k)) | uint32_t{is_kept} << k;
  }
  return saved;
}

int Graph::first_square_sum() const {
  const auto at = std::find_if(update_ops.begin(), update_ops.end(),
                               [](const Op& op) { return op.kind == OpKind::square_sum; });
  return first_update_op() + static_cast<int>(at - update_ops.begin());
}

int Graph::blocks() const {
  int n = 0;
  for (const Segment& s : segments) n += s.kind == SegmentKind::block;
  return n;
}

static bool is_product(const Op& op) {
  return op.kind == OpKind::linear || op.kind == OpKind::linear_input_gradient ||
         op.kind == OpKind::linear_weight_gradient;
}
static bool has_rounded_outputs(const Graph& graph, const Op& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [&](int t) { return t >= 0 && graph.at(t).format != Format::f32; });
}

bool Graph::is_library_product(const Op& op) const {
  if (!uses_cublaslt(kernels) || !is_product(op)) return false;
  if (op.kind != OpKind::linear_weight_gradient) return true;
  // Our kernels round gradients in bf16. They also compute the head's gradients, which are summed over chunks
  // of the loss: the planner chooses the length of a chunk, and this must not change a bit.
  if (has_rounded_outputs(*this, op) || at(op.inputs[in(OpKind::linear_weight_gradient, "dy")]).chunked)
    return false;
  // In exact mode, every sample is a call of its own, and each call reads and writes the gradient.
  return !exact || (!uses_wgmma(kernels) && rows_of(op) >= least_library_sample);
}

bool Graph::is_wgmma_product(const Op& op) const {
  return uses_wgmma(kernels) && is_product(op) && !is_library_product(op);
}

static bool has_relative(const Op& op) {
  return op.attributes.relative_keys || op.attributes.relative_queries;
}
// Whether our mma.sync kernels of attention take the op. cuDNN's take the same heads without relative
// positions.
static bool suits_tensor_cores(const Op& op) {
  return has_relative(op) ? kernels::is_relative_tensor_head(op.attributes.head_dim)
                          : kernels::is_tensor_head(op.attributes.head_dim);
}

// Our kernels compute attention with dropout, a window, a bias, or documents inside of a sample.
bool Graph::is_library_attention(const Op& op) const {
  if (attention != Attention::cudnn || compute == Format::f32) return false;
  return is_attention(op.kind) && op.attributes.dropout == 0 && window_of(op) == 0 && !op.attributes.alibi &&
         inputs[Input::positions] < 0 && !has_relative(op) && suits_tensor_cores(op);
}

bool Graph::is_wgmma_attention(const Op& op) const {
  if (!uses_wgmma(kernels) || compute == Format::f32 || window_of(op) > 0 || has_relative(op) ||
      !kernels::is_warpgroup_head(op.attributes.head_dim))
    return false;
  return op.kind == OpKind::attention || (op.kind == OpKind::attention_gradient &&
                                          (op.attributes.head_dim == 64 || op.attributes.dropout == 0));
}

Peak Graph::peak_of(const Op& op) const {
  if (compute == Format::f32) return Peak::fp32;
  if (is_library_product(op) || is_library_attention(op)) return Peak::library;
  if (is_wgmma_product(op) || is_wgmma_attention(op)) return Peak::wgmma;
  // Attention with other head sizes uses the portable kernels, at the rate of fp32.
  if (is_attention(op.kind) && !suits_tensor_cores(op)) return Peak::fp32;
  return kernels == Kernels::portable ? Peak::fp32 : Peak::mma;
}

bool Graph::has_adapters() const {
  return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.adapter_of >= 0; });
}

uint64_t Graph::parameter_count() const {
  uint64_t n = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (owns_bytes(static_cast<int>(i))) n = size_add(n, tensors[i].shape.elements());
  return n;
}

uint64_t Graph::trainable_count() const {
  uint64_t n = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (owns_bytes(static_cast<int>(i)) && tensors[i].trainable) n = size_add(n, tensors[i].shape.elements());
  return n;
}

int64_t Graph::rows_of(const Op& op) const {
  for (const std::vector<int>* operands : {&op.inputs, &op.outputs})
    for (int t : *operands)
      if (t >= 0 && at(t).per_sample) return at(t).rows;
  for (const std::vector<int>* operands : {&op.inputs, &op.outputs})
    for (int t : *operands)
      if (t >= 0 && at(t).rows > 0) return at(t).rows;
  return sequence;  // an op that works on parameters
}

int64_t Graph::size_of(Dimension dimension) const {
  switch (dimension) {
    case Dimension::none: break;
    case Dimension::tokens: return sequence;
    case Dimension::logit_rows: return texts > 0 ? texts : sequence;
    case Dimension::labels: return head.labels();
    case Dimension::vocabulary: return vocabulary;
    case Dimension::token_types: return token_types;
  }
  return 0;
}

const Op& Graph::other_op(size_t i) const {
  for (const std::vector<Op>* list :
       {&update_ops, &evaluate_ops, &generate_ops, &transfer_ops, &table_ops, &table_gradient_ops}) {
    if (i < list->size()) return (*list)[i];
    i -= list->size();
  }
  return evaluate_table_ops[i];
}

GraphBuilder::GraphBuilder(std::string architecture, int64_t sequence, int64_t vocabulary, Format compute,
                           GraphInputs inputs) {
  graph_.architecture = std::move(architecture);
  graph_.sequence = sequence;
  graph_.vocabulary = graph_.head.outputs = vocabulary;
  graph_.compute = compute;
  for (const Input input : each_input)
    if (input_row(input).demand == InputDemand::always) add_input(input);
  Tensor state;
  state.name = "step_state";
  state.role = Role::state;
  state.format = Format::u8;
  state.shape = {int64_t{sizeof(kernels::StepState)}};
  graph_.tensors.push_back(std::move(state));
  graph_.state = static_cast<int>(graph_.tensors.size()) - 1;
  // These tensors always exist, so that the indices of tensors do not depend on which inputs a graph needs.
  for (const Input input : each_input)
    if (input_row(input).demand == InputDemand::request) create_input(input);
  graph_.token_weights = activation("token_weights", sequence, {sequence}, Format::f32);
  graph_.preference = inputs.preference;
  texts_ = inputs.texts;
  if (inputs.positions || inputs.preference != Preference::none) add_input(Input::positions);
  if (inputs.weights) add_input(Input::weights);
  if (has_reference(inputs.preference)) add_input(Input::reference);
}

void GraphBuilder::create_input(Input input) {
  Tensor t;
  t.name = input_row(input).name;
  t.role = Role::input;
  t.format = input_row(input).format;
  t.per_sample = true;
  graph_.tensors.push_back(std::move(t));
  input_tensors_[input] = static_cast<int>(graph_.tensors.size()) - 1;
  shape_input(input);
}

void GraphBuilder::shape_input(Input input) {
  Tensor& t = graph_.tensors[input_tensors_[input]];
  t.rows = graph_.size_of(input_row(input).rows);
  t.shape = {t.rows};
  for (const Dimension dimension : input_row(input).shape)
    if (dimension != Dimension::none) t.shape.dims[t.shape.rank++] = graph_.size_of(dimension);
}

int GraphBuilder::add_input(Input which) {
  if (input_tensors_[which] < 0) create_input(which);
  return graph_.inputs[which] = input_tensors_[which];
}

int GraphBuilder::token_types(int64_t count) {
  graph_.token_types = count;
  return add_input(Input::token_types);
}

int GraphBuilder::following() {
  add_input(Input::positions);
  return add_input(Input::following);
}

int GraphBuilder::position_rows(int64_t first_position) {
  graph_.first_position = first_position;
  add_input(Input::positions);
  return add_input(Input::position_rows);
}

std::vector<int> GraphBuilder::with_positions(std::vector<int> inputs) const {
  if (graph_.inputs[Input::positions] >= 0) inputs.push_back(graph_.inputs[Input::positions]);
  return inputs;
}

int GraphBuilder::parameter(std::string name, Shape shape, Initializer initializer, float std,
                            WeightLayout layout) {
  const auto [known, is_new] = named_.try_emplace(name, static_cast<int>(graph_.tensors.size()));
  if (!is_new) {
    const Shape& known_shape = graph_.at(known->second).shape;
    if (status_ && known_shape != shape)
      status_ = Error{Code::unsupported_shape, known->first + ": one parameter has the shapes " +
                                                   to_text(known_shape) + " and " + to_text(shape)};
    return known->second;
  }
  Tensor t;
  t.name = std::move(name);
  t.role = Role::parameter;
  t.format = graph_.compute;
  t.shape = shape;
  t.trainable = true;
  if (shape.rank < 2) t.decay = 0;  // norms and biases
  t.initializer = initializer;
  t.init_std = std;
  t.layout = layout;
  t.ordinal = parameters_++;
  graph_.tensors.push_back(std::move(t));
  return static_cast<int>(graph_.tensors.size()) - 1;
}

int GraphBuilder::tied(std::string name, int to) {
  Tensor t = graph_.at(to);
  t.name = std::move(name);
  t.tied_to = to;
  graph_.tensors.push_back(std::move(t));
  return static_cast<int>(graph_.tensors.size()) - 1;
}

int GraphBuilder::rotary(std::vector<float> inverse_frequencies, float scale) {
  RotaryTables tables;
  for (int* id : {&tables.cosine, &tables.sine}) {
    Tensor t;
    t.name = id == &tables.cosine ? "rope.cosine" : "rope.sine";
    t.role = Role::constant;
    t.shape = {graph_.sequence, static_cast<int64_t>(inverse_frequencies.size())};
    graph_.tensors.push_back(std::move(t));
    *id = static_cast<int>(graph_.tensors.size()) - 1;
  }
  tables.inverse_frequencies = std::move(inverse_frequencies);
  tables.scale = scale;
  graph_.rotary.push_back(std::move(tables));
  return static_cast<int>(graph_.rotary.size()) - 1;
}

void GraphBuilder::relative_rows(std::vector<int32_t> rows, std::vector<int64_t> settings) {
  Tensor t;
  t.name = "relative.rows";
  t.role = Role::constant;
  t.format = Format::i32;
  t.shape = {static_cast<int64_t>(rows.size())};
  graph_.relative = {static_cast<int>(graph_.tensors.size()), std::move(rows), std::move(settings)};
  graph_.tensors.push_back(std::move(t));
}

int GraphBuilder::table(int parameter) {
  graph_.tensors[parameter].rows = graph_.at(parameter).shape[0];
  return parameter;
}

int GraphBuilder::keep_table(int table) {
  graph_.tensors[table].role = Role::state;
  return table;
}

void GraphBuilder::begin(SegmentKind kind, int block, int input, const std::vector<int>& others) {
  Segment s;
  s.kind = kind;
  s.block = block;
  s.first_op = static_cast<int>(graph_.ops.size());
  if (input >= 0) s.inputs.push_back(input);
  s.inputs.insert(s.inputs.end(), others.begin(), others.end());
  graph_.segments.push_back(std::move(s));
  if (status_) status_ = check_inputs();
}

static Error wrong(const std::string& segment, const std::string& what) {
  return {Code::bad_argument, segment + ": " + what};
}

Status GraphBuilder::check_inputs() const {
  const int segment = static_cast<int>(graph_.segments.size()) - 1;
  const Segment& s = graph_.segments.back();
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    const Tensor& t = graph_.at(s.inputs[k]);
    const auto fail = [&](const char* what) {
      return wrong(graph_.segment_name(segment), "its input " + t.name + what);
    };
    if (t.segment < 0 || t.segment == segment || graph_.segments[t.segment].output != s.inputs[k])
      return fail(" is not the output of an earlier segment");
    if (std::find(s.inputs.begin(), s.inputs.begin() + static_cast<std::ptrdiff_t>(k), s.inputs[k]) !=
        s.inputs.begin() + static_cast<std::ptrdiff_t>(k))
      return fail(" is given twice");
    if (s.kind == SegmentKind::head && t.segment + 1 != segment)
      return fail(" is not the output of the segment before");
  }
  if (s.kind == SegmentKind::head && s.inputs.empty())
    return wrong(graph_.segment_name(segment), "has no input");
  return ok();
}

Status GraphBuilder::check_output(int output) const {
  const int segment = static_cast<int>(graph_.segments.size()) - 1;
  const Segment& s = graph_.segments.back();
  const auto reads_it = [&](int t) {
    return std::any_of(graph_.ops.begin() + s.first_op, graph_.ops.end(),
                       [&](const Op& op) { return reads(op, t); });
  };
  const auto fail = [&](const std::string& what, int t) {
    return wrong(graph_.segment_name(segment), what + " " + graph_.at(t).name);
  };
  for (const int t : s.inputs)
    if (!reads_it(t)) return fail("no op reads its input", t);
  if (s.kind == SegmentKind::head) return ok();
  if (graph_.at(output).segment != segment) return fail("it does not compute its output", output);
  if (reads_it(output)) return fail("an op reads its output", output);
  return ok();
}

// Each output has a reader, if the graph is complete.
Status GraphBuilder::check_readers() const {
  const std::vector<Segment>& all = graph_.segments;
  if (all.empty() || all.back().kind != SegmentKind::head) return ok();
  std::vector<bool> is_read(all.size());
  for (const Segment& s : all)
    for (const int t : s.inputs) is_read[graph_.at(t).segment] = true;
  for (size_t s = 0; s + 1 < all.size(); ++s)
    if (!is_read[s])
      return wrong(graph_.segment_name(static_cast<int>(s)),
                   "no segment reads its output " + graph_.at(all[s].output).name);
  return ok();
}

void GraphBuilder::end(int output) {
  Segment& s = graph_.segments.back();
  s.op_count = static_cast<int>(graph_.ops.size()) - s.first_op;
  s.output = output;
  if (status_) status_ = check_output(output);
}

Status GraphBuilder::check_read(OpKind kind, int tensor) const {
  if (tensor < 0 || in_tables_ || graph_.at(tensor).role != Role::activation) return ok();
  const int segment = static_cast<int>(graph_.segments.size()) - 1;
  const Tensor& t = graph_.at(tensor);
  if (t.segment == segment || graph_.segments.back().has_input(tensor)) return ok();
  return wrong(graph_.segment_name(segment),
               std::string(op_row(kind).name) + " reads " + t.name +
                   (t.segment < 0 ? "" : " of " + graph_.segment_name(t.segment)) +
                   ", which is not an input of the segment");
}

int GraphBuilder::activation(const char* name, int64_t rows, Shape shape, Format format) {
  Tensor t;
  t.name = name;
  t.format = format;
  t.shape = shape;
  t.per_sample = true;
  t.rows = rows;
  t.segment = static_cast<int>(graph_.segments.size()) - 1;
  graph_.tensors.push_back(std::move(t));
  return static_cast<int>(graph_.tensors.size()) - 1;
}

int GraphBuilder::op(OpKind kind, const Attributes& attributes, std::vector<int> inputs,
                     std::initializer_list<const char*> names) {
  assert(!graph_.segments.empty());
  const int first = inputs[0];
  if (!status_) return first;
  const int segment = static_cast<int>(graph_.segments.size()) - 1;
  Op op{kind, attributes, std::move(inputs), {}, segment};
  for (const int t : op.inputs)
    if (status_) status_ = check_read(kind, t);
  if (!status_) return first;
  Inference inference(graph_, op, names.size());
  status_ = inference.run();
  if (!status_) return first;
  const char* const* name = names.begin();
  for (Tensor& output : inference.outputs) {
    output.name = *name++;
    output.segment = segment;
    op.outputs.push_back(static_cast<int>(graph_.tensors.size()));
    graph_.tensors.push_back(std::move(output));
  }
  std::vector<Op>& list = in_tables_ ? graph_.table_ops : graph_.ops;
  list.push_back(std::move(op));
  const std::vector<int>& outputs = list.back().outputs;
  return outputs.empty() ? first : outputs[0];
}

void GraphBuilder::op(OpKind kind, std::vector<int> inputs, std::vector<int> outputs) {
  assert(!in_tables_);
  op(kind, {}, std::move(inputs), {});
  if (status_) graph_.ops.back().outputs = std::move(outputs);
}

Result<Graph> GraphBuilder::finish() {
  if (status_) status_ = check_readers();
  if (!status_) return std::move(status_.error());
  return std::move(graph_);
}

int GraphBuilder::embedding(int table, int positions, const char* name) {
  return embedding(graph_.inputs[Input::tokens], table, positions, graph_.inputs[Input::positions], name);
}

int GraphBuilder::embedding(int ids, int table, int positions, int position_ids, const char* name) {
  std::vector<int> inputs{ids, table, positions};
  if (position_ids >= 0) inputs.push_back(position_ids);
  return op(OpKind::embedding, {}, std::move(inputs), {name});
}

int GraphBuilder::norm(int x, int weight, int bias, float epsilon, bool rms, const char* name,
                       float weight_offset) {
  Attributes a;
  a.epsilon = epsilon;
  a.rms = rms;
  a.weight_offset = weight_offset;
  return op(OpKind::norm, a, {x, weight, bias}, {name});
}

int GraphBuilder::linear(int x, const std::vector<LinearWeights>& parts, bool transposed, const char* name,
                         Format output) {
  Attributes a;
  a.transposed = transposed;
  std::vector<int> inputs{x, -1};
  for (const LinearWeights& part : parts) inputs.insert(inputs.end(), {part.weight, part.bias});
  const int y = op(OpKind::linear, a, std::move(inputs), {name});
  if (status_) graph_.tensors[y].format = output;
  return y;
}

static Attributes of_heads(int query_heads, int kv_heads, int head_dim) {
  Attributes a;
  a.query_heads = query_heads;
  a.kv_heads = kv_heads;
  a.head_dim = head_dim;
  return a;
}

int GraphBuilder::qk_norm(int x, int query_weight, int key_weight, int query_heads, int kv_heads,
                          float epsilon, const char* name, float weight_offset) {
  Attributes a = of_heads(query_heads, kv_heads, static_cast<int>(graph_.at(query_weight).shape[0]));
  a.epsilon = epsilon;
  a.rms = true;
  a.weight_offset = weight_offset;
  return op(OpKind::qk_norm, a, {x, query_weight, key_weight}, {name});
}

int GraphBuilder::rope(int x, int table, int query_heads, int kv_heads, int head_dim, const char* name) {
  const Attributes a = of_heads(query_heads, kv_heads, head_dim);
  const RotaryTables& tables = graph_.rotary[table];
  return op(OpKind::rope, a, with_positions({x, tables.cosine, tables.sine}), {name});
}

int GraphBuilder::attention(int qkv, int query_heads, int kv_heads, int head_dim, float scale, float dropout,
                            const char* name, const AttentionRule& rule) {
  Attributes a = of_heads(query_heads, kv_heads, head_dim);
  a.causal = rule.causal;
  graph_.head.generates = graph_.head.generates && rule.causal;
  a.alibi = rule.alibi;
  a.window = rule.window;
  a.scale = scale;
  a.dropout = dropout;
  if (dropout > 0) a.stream = ++streams_;
  std::vector<int> inputs = with_positions({qkv});
  if (!rule.causal && rule.following >= 0) {
    inputs.resize(in(OpKind::attention, "following"), -1);
    inputs.push_back(rule.following);
  }
  if (rule.relative >= 0) {
    a.relative_keys = rule.relative_keys;
    a.relative_queries = rule.relative_queries;
    inputs.resize(in(OpKind::attention, "relative"), -1);
    inputs.insert(inputs.end(), {rule.relative, graph_.relative.tensor});
  }
  return op(OpKind::attention, a, std::move(inputs), {name, "attention_lse"});
}

int GraphBuilder::activation(int x, Activation activation, const char* name) {
  Attributes a;
  a.activation = activation;
  return op(OpKind::activation, a, {x}, {name});
}

int GraphBuilder::gated(int x, const char* name, Gate gate) {
  Attributes a;
  a.gate = gate;
  return op(OpKind::gated, a, {x}, {name});
}

int GraphBuilder::document_mean(int x, const char* name) {
  const int following = this->following();
  return op(OpKind::document_mean, {}, {x, graph_.inputs[Input::positions], following}, {name});
}

int GraphBuilder::take_text_rows(int x, const char* name) {
  if (!status_ || !graph_.head.row().of_text) return x;
  assert(graph_.head.target_row == TargetRow::first);
  const bool is_limited = texts_ > 0 && texts_ < graph_.sequence;
  if (is_limited && graph_.texts == 0) {
    graph_.texts = texts_;
    for (const Input input : each_input)
      if (input_tensors_[input] >= 0) shape_input(input);
    following();  // adds the positions, which say where texts begin
  }
  // The tensors exist without a limit too, so that the indices of parameters do not depend on it.
  if (input_tensors_[Input::text_rows] < 0) create_input(Input::text_rows);
  if (!is_limited) {
    activation(name, graph_.sequence, {graph_.sequence, features(x)}, graph_.compute);
    return x;
  }
  return op(OpKind::take_rows, {}, {x, add_input(Input::text_rows)}, {name});
}

int GraphBuilder::scale(int x, float factor, const char* name) {
  if (factor == 1) return x;
  Attributes a;
  a.scale = factor;
  return op(OpKind::scale, a, {x}, {name});
}

// If `b` is the product that was added last, in the same segment, the sum becomes a part of it: the kernel
// adds `a` when it stores the product. No other op may read the product alone.
int GraphBuilder::add(int a, int b, const char* name) {
  Op& last = graph_.ops.back();
  if (!status_ || last.kind != OpKind::linear || last.outputs[0] != b || part_count(last) > 1 ||
      last.segment + 1 != static_cast<int>(graph_.segments.size()))
    return op(OpKind::add, {}, {a, b}, {name});
  status_ = check_read(last.kind, a);
  if (!status_) return b;
  last.inputs[in(OpKind::linear, "residual")] = a;
  status_ = Inference(graph_, last, 1).run();
  graph_.tensors[b].name = name;
  return b;
}

int GraphBuilder::dropout(int x, float p, const char* name) {
  if (p <= 0) return x;
  Attributes a;
  a.dropout = p;
  a.stream = ++streams_;
  return op(OpKind::dropout, a, {x}, {name});
}

void GraphBuilder::task(Task task, int64_t labels, TargetRow row) {
  const bool generates = graph_.head.generates && (labels == 0 || row == TargetRow::last);
  graph_.head = {task, labels > 0 ? labels : graph_.vocabulary, row, generates};
}

void GraphBuilder::loss(int logits) {
  if (graph_.head.row().target == Target::span) span_loss(logits);
  else if (graph_.head.row().has_values()) value_loss(logits);
  else cross_entropy(logits);
}

// Pads rows of logits, because vocabularies may be odd. Every row begins at an address that vector
// instructions and tensor cores can load from.
void GraphBuilder::align_rows(int logits) {
  Tensor& rows = graph_.tensors[logits];
  const int64_t stride = (rows.shape.last() + logits_unit - 1) / logits_unit * logits_unit;
  if (stride != rows.shape.last()) rows.row_stride = stride;
}

void GraphBuilder::cross_entropy(int logits) {
  align_rows(logits);
  std::vector<int> inputs{logits, graph_.inputs[Input::targets]};
  if (graph_.inputs[Input::weights] >= 0) inputs.push_back(graph_.inputs[Input::weights]);
  const int loss = op(OpKind::cross_entropy, {}, std::move(inputs), {"token_loss"});
  if (graph_.preference == Preference::none) op(OpKind::loss_sum, {loss, graph_.inputs[Input::targets]}, {});
  else
    op(OpKind::preference,
       {loss, graph_.inputs[Input::targets], graph_.inputs[Input::positions],
        graph_.inputs[Input::reference]},
       {graph_.token_weights});
  end(loss);
}

void GraphBuilder::value_loss(int logits) {
  assert(graph_.preference == Preference::none);
  align_rows(logits);
  Attributes a;
  a.value_loss = graph_.head.row().value_loss;
  const int values = add_input(Input::values);
  std::vector<int> inputs{logits, graph_.inputs[Input::targets], values};
  if (graph_.inputs[Input::weights] >= 0) inputs.push_back(graph_.inputs[Input::weights]);
  const int loss = op(OpKind::value_loss, a, std::move(inputs), {"row_loss"});
  op(OpKind::loss_sum, {loss, graph_.inputs[Input::targets]}, {});
  end(loss);
}

// A text's loss reads the logits of all its tokens. The head adds the inputs that say where texts are.
void GraphBuilder::span_loss(int logits) {
  assert(graph_.preference == Preference::none);
  align_rows(logits);
  const int values = add_input(Input::values), rest = following();
  std::vector<int> inputs{logits, graph_.inputs[Input::targets], values, graph_.inputs[Input::positions],
                          rest};
  if (graph_.inputs[Input::weights] >= 0) inputs.push_back(graph_.inputs[Input::weights]);
  const int loss = op(OpKind::span_loss, {}, std::move(inputs), {"row_loss"});
  op(OpKind::loss_sum, {loss, graph_.inputs[Input::targets]}, {});
  end(loss);
}

}  // namespace stw
