#include "src/execute/execute.h"

#include <array>
#include <cassert>
#include <chrono>
#include <utility>

#include "planner/base/check_in.h"
#include "planner/graph/fuse.h"
#include "planner/graph/operands.h"
#include "planner/graph/optimizer.h"
#include "src/execute/call.h"
#include "src/execute/coded_products.h"

namespace stw {

namespace {

// Calls the kernel of a kind of op. There is one specialisation for each kind; a kind without one does not
// compile.
template <OpKind kind>
void run(const Call& c);

bool is_portable(const Call& c) { return c.x.graph->kernels == Kernels::portable; }

// The choice does not depend on the budget, so that bits do not either. Generation uses our own kernels, as
// cuBLASLt's algorithms were chosen for more rows than a prompt has.
kernels::ProductKernels products_of(const Call& c) {
  const bool with_wgmma = uses_wgmma(c.x.graph->kernels);
  if (c.x.graph->is_library_product(c.op) && c.i.phase != Phase::generate)
    return with_wgmma ? kernels::ProductKernels::library_or_warpgroup : kernels::ProductKernels::library;
  if (with_wgmma) return kernels::ProductKernels::warpgroup;
  return is_portable(c) ? kernels::ProductKernels::chain : kernels::ProductKernels::tensor;
}

// The arguments that a linear op and its gradients share.
kernels::LinearArgs linear_args(const Call& c) {
  kernels::LinearArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.sample_rows();
  a.first_row = c.i.first_row;
  a.transposed = c.attributes.transposed;
  a.accumulate = c.i.accumulate;
  a.products = products_of(c);
  a.exact = c.x.graph->exact;
  const Operands& operands = operands_of(c.op.kind);
  for (int k = operands.first_part(); k < c.input_count(); k += operands.part_size()) {
    assert(a.parts < kernels::max_parts);
    const Tensor& weight = c.input_tensor(k);
    kernels::LinearPart& part = a.part[a.parts++];
    part.weight = c.input(k);
    part.features = weight.shape[a.transposed ? 1 : 0];
    a.inputs = weight.shape[a.transposed ? 0 : 1];
    a.weight_dtype = dtype_of(is_quantized(weight.format) ? c.x.graph->compute : weight.format);
  }
  return a;
}

template <>
void run<OpKind::linear>(const Call& c) {
  kernels::LinearArgs a = linear_args(c);
  constexpr OpKind kind = OpKind::linear;
  for (int p = 0; p < a.parts; ++p)
    a.part[p].bias = c.input(in(kind, "bias") + operands_of(kind).part_size() * p);
  a.residual = c.in(in(kind, "residual"));
  a.x = c.in_out(in(kind, "x"));
  a.y = c.out_or_none(0);
  a.y_stride = c.output_tensor(0).stride();
  if (c.i.ops > 1) c.with_op(1, [&](const Call& gelu) { a.activated = gelu.out(0); });
  run_product(c, a);
}

template <>
void run<OpKind::linear_input_gradient>(const Call& c) {
  constexpr int dy = in(OpKind::linear_input_gradient, "dy");
  kernels::LinearArgs a = linear_args(c);
  a.y = c.in_out(dy);
  a.y_stride = c.input_tensor(dy).stride();
  a.addend = c.in(in(OpKind::linear_input_gradient, "addend"));
  a.x = c.out(0);
  if (c.i.ops > 1)
    c.with_op(1, [&](const Call& gelu) {
      a.before_gelu = gelu.in(in(OpKind::activation_gradient, "x")), a.x = gelu.out(0);
      a.input_bias_sums = gelu.output<float>(out(OpKind::activation_gradient, "bias_sums"));
    });
  if (c.i.ops > 2) c.with_op(2, [&](const Call& bias) { a.input_bias_gradient = bias.output<float>(0); });
  run_input_gradient(c, a);
}

// Numbers of random streams. Dropouts count from 1; these begin far above and do not overlap. Each parameter
// has a stream for its update, and one for the gradient of each of its uses.
constexpr int gradient_stream = 1 << 29, update_stream = 1 << 30;
constexpr uint32_t stream_of_use = 1 << 18;
constexpr int use_by_tables = 1 << 10;  // above the number of any other use
uint32_t stream_of(int first, const Tensor& parameter) {
  assert(parameter.ordinal >= 0);
  return static_cast<uint32_t>(first + parameter.ordinal);
}

// Calls args_of(call) for each op of the instruction from number `first` on, and returns the list, which may
// be empty.
using LinkedArgs = std::array<kernels::LinearArgs, kernels::most_biases>;
template <class ArgsOf>
LinkedArgs linked_args(const Call& c, int first, const ArgsOf& args_of) {
  LinkedArgs list{};
  assert(c.i.ops - first <= static_cast<int>(list.size()));
  for (int k = first; k < c.i.ops; ++k)
    c.with_op(k, [&](const Call& one) { list[k - first] = args_of(one); });
  return list;
}
void link(LinkedArgs& list, int count) {
  for (int k = 1; k < count; ++k) list[static_cast<size_t>(k) - 1].further = &list[k];
}
template <class ArgsOf>
void run_linked(const Call& c, void (*kernel)(const kernels::Launch&, const kernels::LinearArgs&),
                const ArgsOf& args_of) {
  LinkedArgs list = linked_args(c, 0, args_of);
  link(list, c.i.ops);
  c.run(kernel, list[0]);
}

kernels::LinearArgs weight_gradient_args(const Call& c) {
  constexpr OpKind kind = OpKind::linear_weight_gradient;
  constexpr int dy = in(kind, "dy"), weight = in(kind, "weight");
  kernels::LinearArgs a = linear_args(c);
  for (int p = 0; p < a.parts; ++p) {
    const int gradient = c.op.outputs[p];
    if (gradient < 0) continue;
    a.part[p].weight_gradient = c.output(p);
    const Tensor& sum = c.x.graph->at(gradient);
    a.part[p].stream =
        stream_of(gradient_stream, c.input_tensor(weight + p)) +
        static_cast<uint32_t>(sum.ordinal + (c.op.accumulates ? use_by_tables : 0)) * stream_of_use;
    a.gradient_dtype = dtype_of(sum.format);  // all parts have the same format
  }
  a.state = c.x.state;
  a.y = c.in_out(dy);
  a.y_stride = c.input_tensor(dy).stride();
  a.x = c.in_out(in(kind, "x"));
  return a;
}

template <>
void run<OpKind::linear_weight_gradient>(const Call& c) {
  run_linked(c, c.x.table->linear_weight_gradient, weight_gradient_args);
}

kernels::LinearArgs bias_gradient_args(const Call& c) {
  constexpr int dy = in(OpKind::linear_bias_gradient, "dy");
  kernels::LinearArgs a = linear_args(c);
  for (int p = 0; p < a.parts; ++p) a.part[p].bias_gradient = c.output(p);
  if (c.input_tensor(dy).tile_sums) {
    a.tile_sums = c.input<float>(dy);
    return a;
  }
  a.y = c.in_out(dy);
  a.y_stride = c.input_tensor(dy).stride();
  return a;
}

template <>
void run<OpKind::linear_bias_gradient>(const Call& c) {
  run_linked(c, c.x.table->linear_bias_gradient, bias_gradient_args);
}

// `low` holds the low-rank activations of all parts next to each other, `rank` columns each.
kernels::AdapterArgs adapter_args(const Call& c) {
  kernels::AdapterArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.sample_rows();
  a.first_row = c.i.first_row;
  a.accumulate = c.i.accumulate;
  a.products = is_portable(c) ? kernels::ProductKernels::chain : kernels::ProductKernels::tensor;
  for (int k = operands_of(c.op.kind).first_part(); k < c.input_count(); ++k) {
    const Tensor& weight = c.input_tensor(k);
    a.part[a.parts] = {c.input(k), nullptr, weight.shape[0], c.attributes.columns[a.parts]};
    ++a.parts;
    a.rank = weight.shape[1];
    a.weight_dtype = dtype_of(weight.format);
  }
  return a;
}

template <>
void run<OpKind::adapter>(const Call& c) {
  kernels::AdapterArgs a = adapter_args(c);
  a.base = c.in(in(OpKind::adapter, "base"));
  a.low = c.in_out(in(OpKind::adapter, "low"));
  a.y = c.out(0);
  a.width = c.output_features(0);
  c.run(c.x.table->adapter, a);
}

template <>
void run<OpKind::adapter_input_gradient>(const Call& c) {
  constexpr int dy = in(OpKind::adapter_input_gradient, "dy");
  kernels::AdapterArgs a = adapter_args(c);
  a.y = c.in_out(dy);
  a.width = c.input_features(dy);
  a.low = c.out(0);
  c.run(c.x.table->adapter_input_gradient, a);
}

template <>
void run<OpKind::adapter_weight_gradient>(const Call& c) {
  constexpr int dy = in(OpKind::adapter_weight_gradient, "dy");
  kernels::AdapterArgs a = adapter_args(c);
  for (int p = 0; p < a.parts; ++p) a.part[p].weight_gradient = c.output<float>(p);
  a.y = c.in_out(dy);
  a.width = c.input_features(dy);
  a.low = c.in_out(in(OpKind::adapter_weight_gradient, "low"));
  c.run(c.x.table->adapter_weight_gradient, a);
}

kernels::NormArgs norm_args(const Call& c) {
  kernels::NormArgs a{};
  a.rows = c.i.rows;
  a.features = c.input_features(0);
  a.rows_per_sample = c.sample_rows();
  a.epsilon = c.attributes.epsilon;
  a.rms = c.attributes.rms;
  a.accumulate = c.i.accumulate;
  constexpr int weight = in(OpKind::norm, "weight");
  static_assert(weight == in(OpKind::norm_gradient, "weight"));
  a.weight_dtype = dtype_of(c.input_tensor(weight).format);
  a.weight_offset = c.attributes.weight_offset;
  a.weight = c.input(weight);
  a.x = c.in_out(0);
  return a;
}

template <>
void run<OpKind::norm>(const Call& c) {
  kernels::NormArgs a = norm_args(c);
  a.bias = c.input(in(OpKind::norm, "bias"));
  a.y = c.out(0);
  c.run(c.x.table->norm, a);
}

template <>
void run<OpKind::norm_gradient>(const Call& c) {
  kernels::NormArgs a = norm_args(c);
  constexpr OpKind kind = OpKind::norm_gradient;
  a.y = c.in_out(in(kind, "dy"));
  a.addend = c.in(in(kind, "addend"));
  a.dx = c.out(out(kind, "dx"));
  a.weight_gradient = c.output<float>(out(kind, "dweight"));
  a.bias_gradient = c.output<float>(out(kind, "dbias"));
  LinkedArgs biases = linked_args(c, 1, bias_gradient_args);
  link(biases, c.i.ops - 1);
  if (c.i.ops > 1) a.biases = &biases[0];
  c.run(c.x.table->norm_gradient, a);
}

template <class Args>
void set_heads(const Call& c, Args& a) {
  a.query_heads = c.attributes.query_heads;
  a.kv_heads = c.attributes.kv_heads;
  a.head_dim = c.attributes.head_dim;
}

kernels::QkNormArgs qk_norm_args(const Call& c) {
  kernels::QkNormArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.sample_rows();
  set_heads(c, a);
  a.epsilon = c.attributes.epsilon;
  a.accumulate = c.i.accumulate;
  constexpr int queries = in(OpKind::qk_norm, "query_weight"), keys = in(OpKind::qk_norm, "key_weight");
  static_assert(queries == in(OpKind::qk_norm_gradient, "query_weight") &&
                keys == in(OpKind::qk_norm_gradient, "key_weight"));
  a.weight_dtype = dtype_of(c.input_tensor(queries).format);
  a.weight_offset = c.attributes.weight_offset;
  a.weight[0] = c.input(queries);
  a.weight[1] = c.input(keys);
  a.x = c.in_out(0);
  return a;
}

template <>
void run<OpKind::qk_norm>(const Call& c) {
  kernels::QkNormArgs a = qk_norm_args(c);
  a.y = c.out(0);
  c.run(c.x.table->qk_norm, a);
}

template <>
void run<OpKind::qk_norm_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::qk_norm_gradient;
  kernels::QkNormArgs a = qk_norm_args(c);
  a.y = c.in_out(in(kind, "dy"));
  a.dx = c.out(out(kind, "dx"));
  a.weight_gradient[0] = c.output<float>(out(kind, "dquery_weight"));
  a.weight_gradient[1] = c.output<float>(out(kind, "dkey_weight"));
  c.run(c.x.table->qk_norm_gradient, a);
}

template <>
void run<OpKind::rope>(const Call& c) {
  constexpr OpKind kind = OpKind::rope;
  kernels::RopeArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.rows_per_sample();
  set_heads(c, a);
  a.inverse = c.attributes.inverse;
  a.rotary_dim = static_cast<int>(2 * c.input_features(in(kind, "cosine")));
  a.cosine = c.input<float>(in(kind, "cosine"));
  a.sine = c.input<float>(in(kind, "sine"));
  a.state = c.position_state();
  a.position_ids = c.input<int32_t>(in(kind, "positions"));
  a.x = c.in(in(kind, "x"));
  a.y = c.out(0);
  c.run(c.x.table->rope, a);
}

kernels::AttentionArgs attention_args(const Call& c) {
  kernels::AttentionArgs a{};
  a.samples = c.i.samples;
  a.rows_per_sample = c.sample_rows();
  set_heads(c, a);
  a.scale = c.attributes.scale;
  a.causal = c.attributes.causal;
  a.window = c.x.graph->window_of(c.op);
  if (c.attributes.alibi) a.alibi_root = kernels::alibi_root(a.query_heads);
  a.dropout = c.attributes.dropout;
  a.stream = c.attributes.stream;
  a.state = c.x.state;
  const bool with_wgmma = c.x.graph->is_wgmma_attention(c.op);
  a.products =
      c.x.graph->is_library_attention(c.op)
          ? (with_wgmma ? kernels::ProductKernels::library_or_warpgroup : kernels::ProductKernels::library)
      : with_wgmma     ? kernels::ProductKernels::warpgroup
      : is_portable(c) ? kernels::ProductKernels::chain
                       : kernels::ProductKernels::tensor;
  a.qkv = c.in(0);
  return a;
}

kernels::RelativePositions relative_positions(const Call& c, int table, int rows) {
  kernels::RelativePositions r;
  r.table = c.in(table);
  if (!r.table.data) return r;
  r.table_rows = c.input_tensor(table).shape[0];
  r.has_keys = c.attributes.relative_keys;
  r.has_queries = c.attributes.relative_queries;
  r.rows = c.input<int32_t>(rows);
  return r;
}

template <>
void run<OpKind::attention>(const Call& c) {
  constexpr OpKind kind = OpKind::attention;
  kernels::AttentionArgs a = attention_args(c);
  a.relative = relative_positions(c, in(kind, "relative"), in(kind, "relative_rows"));
  a.position_ids = c.input<int32_t>(in(kind, "positions"));
  a.following = c.input<int32_t>(in(kind, "following"));
  a.out = c.out(out(kind, "out"));
  a.lse = c.output<float>(out(kind, "lse"));
  c.run(c.x.table->attention, a);
}

template <>
void run<OpKind::attention_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::attention_gradient;
  kernels::AttentionArgs a = attention_args(c);
  a.relative = relative_positions(c, in(kind, "relative"), in(kind, "relative_rows"));
  a.relative.gradient = c.output<float>(out(kind, "drelative"));
  a.relative.accumulate = c.i.accumulate;
  a.out = c.in_out(in(kind, "out"));
  a.lse = c.input<float>(in(kind, "lse"));
  a.dout = c.in(in(kind, "dout"));
  a.position_ids = c.input<int32_t>(in(kind, "positions"));
  a.following = c.input<int32_t>(in(kind, "following"));
  a.dqkv = c.out(0);
  c.run(c.x.table->attention_gradient, a);
}

template <>
void run<OpKind::attention_cached>(const Call& c) {
  constexpr OpKind kind = OpKind::attention_cached;
  kernels::AttentionCachedArgs a{};
  a.rows = c.i.rows;
  a.capacity = c.x.graph->sequence;
  set_heads(c, a);
  a.scale = c.attributes.scale;
  a.window = c.x.graph->window_of(c.op);
  if (c.attributes.alibi) a.alibi_root = kernels::alibi_root(a.query_heads);
  a.state = c.x.state;
  a.qkv = c.in(in(kind, "qkv"));
  a.out = c.out(0);
  a.key_cache = c.in_out(in(kind, "keys"));
  a.value_cache = c.in_out(in(kind, "values"));
  c.run(c.x.table->attention_cached, a);
}

kernels::GeluArgs gelu_args(const Call& c) {
  kernels::GeluArgs a{};
  a.count = c.i.rows * c.input_features(0);
  a.activation = c.attributes.activation;
  a.x = c.in(0);
  a.y = c.out(0);
  a.fast = !is_portable(c);
  return a;
}

template <>
void run<OpKind::activation>(const Call& c) {
  c.run(c.x.table->gelu, gelu_args(c));
}

template <>
void run<OpKind::activation_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::activation_gradient;
  kernels::GeluArgs a = gelu_args(c);
  a.dy = c.in(in(kind, "dy"));
  c.run(c.x.table->gelu_gradient, a);
}

template <>
void run<OpKind::gated>(const Call& c) {
  constexpr OpKind kind = OpKind::gated;
  c.run(c.x.table->swiglu, kernels::SwigluArgs{c.i.rows,
                                               c.output_features(0),
                                               c.in(in(kind, "x")),
                                               {},
                                               c.out(0),
                                               !is_portable(c),
                                               c.attributes.gate});
}

template <>
void run<OpKind::gated_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::gated_gradient;
  c.run(c.x.table->swiglu_gradient,
        kernels::SwigluArgs{c.i.rows, c.input_features(in(kind, "dy")), c.in(in(kind, "x")),
                            c.in(in(kind, "dy")), c.out(0), !is_portable(c), c.attributes.gate});
}

kernels::DocumentMeanArgs mean_args(const Call& c) {
  constexpr int positions = in(OpKind::document_mean, "positions"),
                following = in(OpKind::document_mean, "following");
  static_assert(positions == in(OpKind::document_mean_gradient, "positions") &&
                following == in(OpKind::document_mean_gradient, "following"));
  return {c.i.rows, c.output_features(0), c.input<int32_t>(positions), c.input<int32_t>(following), c.in(0),
          c.out(0)};
}

template <>
void run<OpKind::document_mean>(const Call& c) {
  c.run(c.x.table->document_mean, mean_args(c));
}

template <>
void run<OpKind::document_mean_gradient>(const Call& c) {
  c.run(c.x.table->document_mean_gradient, mean_args(c));
}

template <>
void run<OpKind::take_rows>(const Call& c) {
  constexpr OpKind kind = OpKind::take_rows;
  c.run(c.x.table->take_rows,
        kernels::TakeRowsArgs{c.i.samples, c.input_tensor(in(kind, "x")).rows, c.output_tensor(0).rows,
                              c.output_features(0), c.input<int32_t>(in(kind, "places")), c.in(in(kind, "x")),
                              c.out(0)});
}

template <>
void run<OpKind::take_rows_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::take_rows_gradient;
  c.run(c.x.table->take_rows_gradient,
        kernels::TakeRowsArgs{c.i.samples, c.output_tensor(0).rows, c.input_tensor(in(kind, "dy")).rows,
                              c.output_features(0), c.input<int32_t>(in(kind, "places")),
                              c.in(in(kind, "dy")), c.out(0)});
}

template <>
void run<OpKind::add>(const Call& c) {
  constexpr OpKind kind = OpKind::add;
  c.run(c.x.table->add, kernels::AddArgs{c.i.rows * c.output_features(0), c.in(in(kind, "a")),
                                         c.in(in(kind, "b")), c.out(0)});
}

template <>
void run<OpKind::scale>(const Call& c) {
  constexpr OpKind kind = OpKind::scale;
  c.run(c.x.table->scale, kernels::ScaleArgs{c.i.rows * c.output_features(0), c.attributes.scale,
                                             c.in(in(kind, "x")), c.out(0)});
}

template <>
void run<OpKind::dropout>(const Call& c) {
  constexpr OpKind kind = OpKind::dropout;
  kernels::DropoutArgs a{};
  a.samples = c.i.samples;
  a.per_sample = c.sample_rows() * c.input_features(in(kind, "x"));
  a.p = c.attributes.dropout;
  a.stream = c.attributes.stream;
  a.state = c.x.state;
  a.x = c.in(in(kind, "x"));
  a.y = c.out(0);
  c.run(c.x.table->dropout, a);
}

template <>
void run<OpKind::embedding>(const Call& c) {
  constexpr OpKind kind = OpKind::embedding;
  kernels::EmbeddingArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.rows_per_sample();
  a.features = c.output_features(0);
  a.vocabulary = c.x.graph->vocabulary;
  const Tensor& table = c.input_tensor(in(kind, "table"));
  a.weight_dtype = dtype_of(is_quantized(table.format) ? c.x.graph->compute : table.format);
  a.tokens = c.input<int32_t>(in(kind, "ids"));
  a.table = c.input(in(kind, "table"));
  if (is_quantized(table.format)) {
    assert(table.format == Format::int8);
    a.table_scales = reinterpret_cast<const float*>(
        c.input<std::byte>(in(kind, "table")) +
        kernels::scales_begin(kernels::WeightCodes::int8, static_cast<int64_t>(table.shape.elements())));
  }
  a.positions = c.input(in(kind, "positions"));
  a.state = c.position_state();
  a.position_ids = c.input<int32_t>(in(kind, "position_ids"));
  a.y = c.out(0);
  c.run(c.x.table->embedding, a);
}

template <>
void run<OpKind::embedding_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::embedding_gradient;
  kernels::EmbeddingArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.sample_rows();
  a.features = c.input_features(in(kind, "dy"));
  a.vocabulary = c.output_tensor(0).shape[0];
  a.accumulate = c.i.accumulate;
  a.tokens = c.input<int32_t>(in(kind, "ids"));
  a.y = c.in_out(in(kind, "dy"));
  a.table_gradient = c.output<float>(0);
  if (c.i.ops > 1)
    c.with_op(1, [&](const Call& positions) {
      a.with_positions = true;
      a.position_gradient = positions.output<float>(0);
      a.position_rows = positions.output_tensor(0).shape[0];
    });
  c.run(c.x.table->embedding_gradient, a);
}

template <>
void run<OpKind::keep_rows>(const Call& c) {
  constexpr OpKind kind = OpKind::keep_rows;
  kernels::KeepRowsArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.sample_rows();
  a.features = c.input_features(in(kind, "dy"));
  a.first_sample = c.x.first_sample;
  a.tokens = c.input<int32_t>(in(kind, "ids"));
  a.y = c.in(in(kind, "dy"));
  a.kept_tokens = c.output<int32_t>(out(kind, "kept_ids"));
  a.kept = c.output(out(kind, "kept_rows"));
  a.state = c.x.state;
  c.run(c.x.table->keep_rows, a);
}

template <>
void run<OpKind::kept_rows_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::kept_rows_gradient;
  kernels::EmbeddingArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.x.graph->rows_of(c.x.graph->inputs[Input::tokens]);
  a.features = c.input_features(in(kind, "kept_rows"));
  a.vocabulary = c.output_tensor(0).shape[0];
  a.accumulate = c.i.accumulate;
  if (!a.accumulate)
    a.first_token = c.i.first_element / a.features, a.slice_tokens = c.i.elements / a.features;
  a.tokens = c.input<int32_t>(in(kind, "kept_ids"));
  a.y = c.in_out(in(kind, "kept_rows"));
  a.table_gradient = c.output<float>(0);
  c.run(c.x.table->kept_rows_gradient, a);
}

template <>
void run<OpKind::position_gradient>(const Call& c) {
  constexpr OpKind kind = OpKind::position_gradient;
  kernels::EmbeddingArgs a{};
  a.rows = c.i.rows;
  a.rows_per_sample = c.sample_rows();
  a.features = c.input_features(in(kind, "dy"));
  a.accumulate = c.i.accumulate;
  a.y = c.in_out(in(kind, "dy"));
  a.position_gradient = c.output<float>(0);
  a.position_rows = c.output_tensor(0).shape[0];
  c.run(c.x.table->position_gradient, a);
}

// The operands that all losses of logits have, except the losses of rows.
struct LossOperands {
  int targets, weights, logits, dlogits;
};
consteval LossOperands loss_operands(OpKind kind) {
  return {in(kind, "targets"), in(kind, "weights"), in(kind, "logits"), out(kind, "dlogits")};
}

template <class Args>
Args loss_args(const Call& c, LossOperands operands) {
  Args a{};
  a.rows = c.i.rows;
  a.targets = c.input<int32_t>(operands.targets);
  a.weights = c.input<float>(operands.weights);
  a.logits = c.in_out(operands.logits);
  a.stride = c.input_tensor(operands.logits).stride();
  a.gradient = c.i.outputs > 1;
  a.state = c.x.state;
  // The planner gave dlogits the same buffer as the logits.
  assert(!a.gradient || c.output(operands.dlogits) == c.input(operands.logits));
  return a;
}

template <>
void run<OpKind::cross_entropy>(const Call& c) {
  constexpr OpKind kind = OpKind::cross_entropy;
  auto a = loss_args<kernels::CrossEntropyArgs>(c, loss_operands(kind));
  a.vocabulary = c.input_features(in(kind, "logits"));
  a.fast = !is_portable(c);
  a.token_loss = c.output<float>(out(kind, "loss"));
  c.run(c.x.table->cross_entropy, a);
}

template <>
void run<OpKind::loss_sum>(const Call& c) {
  constexpr OpKind kind = OpKind::loss_sum;
  c.run(c.x.table->loss_sum,
        kernels::LossSumArgs{c.i.samples, c.sample_rows(), c.input<float>(in(kind, "loss")),
                             c.input<int32_t>(in(kind, "targets")), c.x.state});
}

template <>
void run<OpKind::preference>(const Call& c) {
  constexpr OpKind kind = OpKind::preference;
  kernels::PreferenceArgs a{};
  a.samples = c.i.samples;
  a.rows_per_sample = c.sample_rows();
  a.terms = c.x.pairs;
  a.token_loss = c.input<float>(in(kind, "loss"));
  a.targets = c.input<int32_t>(in(kind, "targets"));
  a.positions = c.input<int32_t>(in(kind, "positions"));
  a.reference = c.input<float>(in(kind, "reference"));
  a.token_weights = c.output<float>(0);
  if (!a.token_weights) a.terms.smoothing = 0;  // evaluation uses the plain loss
  a.state = c.x.state;
  c.run(c.x.table->preference, a);
}

template <>
void run<OpKind::hit_count>(const Call& c) {
  constexpr OpKind kind = OpKind::hit_count;
  kernels::HitCountArgs a{};
  a.rows = c.i.rows;
  a.classes = c.input_features(in(kind, "logits"));
  a.targets = c.input<int32_t>(in(kind, "targets"));
  a.logits = c.in(in(kind, "logits"));
  a.stride = c.input_tensor(in(kind, "logits")).stride();
  a.state = c.x.state;
  c.run(c.x.table->hit_count, a);
}

template <>
void run<OpKind::value_loss>(const Call& c) {
  constexpr OpKind kind = OpKind::value_loss;
  auto a = loss_args<kernels::ValueLossArgs>(c, loss_operands(kind));
  a.count = c.input_features(in(kind, "logits"));
  a.kind = c.attributes.value_loss;
  a.values = c.input<float>(in(kind, "values"));
  a.row_loss = c.output<float>(out(kind, "loss"));
  c.run(c.x.table->value_loss, a);
}

template <>
void run<OpKind::value_hits>(const Call& c) {
  constexpr OpKind kind = OpKind::value_hits;
  kernels::ValueHitsArgs a{};
  a.rows = c.i.rows;
  a.count = c.input_features(in(kind, "logits"));
  a.targets = c.input<int32_t>(in(kind, "targets"));
  a.values = c.input<float>(in(kind, "values"));
  a.logits = c.in(in(kind, "logits"));
  a.stride = c.input_tensor(in(kind, "logits")).stride();
  a.state = c.x.state;
  c.run(c.x.table->value_hits, a);
}

template <>
void run<OpKind::span_loss>(const Call& c) {
  constexpr OpKind kind = OpKind::span_loss;
  auto a = loss_args<kernels::SpanLossArgs>(c, loss_operands(kind));
  a.values = c.input<float>(in(kind, "values"));
  a.positions = c.input<int32_t>(in(kind, "positions"));
  a.following = c.input<int32_t>(in(kind, "following"));
  a.row_loss = c.output<float>(out(kind, "loss"));
  c.run(c.x.table->span_loss, a);
}

template <>
void run<OpKind::fetch>(const Call& c) {
  c.run(c.x.table->copy,
        kernels::CopyArgs{c.output(0), c.on_host(c.op.outputs[0]), c.transferred(c.op.outputs[0])});
}

template <>
void run<OpKind::store>(const Call& c) {
  c.run(c.x.table->copy,
        kernels::CopyArgs{c.on_host(c.op.inputs[0]), c.input(0), c.transferred(c.op.inputs[0])});
}

template <>
void run<OpKind::gradient_sum>(const Call& c) {
  kernels::GradientSumArgs a{};
  a.count = static_cast<int64_t>(c.output_tensor(0).shape.elements());
  for (int k = 0; k < c.input_count(); ++k) a.term[a.terms++] = c.input(k);
  a.sum = c.output(0);
  a.dtype = dtype_of(c.output_tensor(0).format);
  c.run(c.x.table->gradient_sum, a);
}

template <>
void run<OpKind::square_sum>(const Call& c) {
  c.run_together(c.x.table->square_sum, [](const Call& one) {
    const int64_t all = static_cast<int64_t>(one.input_tensor(0).shape.elements());
    return kernels::SquareSumArgs{one.i.elements > 0 ? one.i.elements : all,
                                  {one.input(0), one.input(1)},
                                  one.output<double>(0),
                                  dtype_of(one.input_tensor(0).format),
                                  one.x.graph->fuses_updates() ? one.x.state : nullptr,
                                  one.i.first_element > 0};
  });
}

template <>
void run<OpKind::finish_step>(const Call& c) {
  using Part = kernels::FinishStepPart;
  const bool fused = c.x.graph->fuses_updates(), begins = fused && c.i.op == c.x.graph->begin_update;
  const int64_t sums = begins ? 0 : c.input_tensor(0).shape[0];
  c.run(c.x.table->finish_step, kernels::FinishStepArgs{sums, c.input<double>(0), c.x.state,
                                                        begins  ? Part::begin
                                                        : fused ? Part::end
                                                                : Part::whole});
}

// Arguments of an update with 32-bit states. The op's outputs are the parameter, its master weight, then the
// optimizer's states.
kernels::UpdateArgs update_args(const Call& c) {
  const Tensor& parameter = c.output_tensor(0);
  kernels::UpdateArgs a{};
  a.count = c.i.elements > 0 ? c.i.elements : static_cast<int64_t>(parameter.shape.elements());
  a.columns = parameter.shape.rank == 2 ? parameter.shape[1] : 0;
  a.dtype = dtype_of(parameter.format);
  a.parameter = c.output(0);
  const bool is_short = c.op.outputs[1] >= 0 && c.output_tensor(1).format == Format::u8;
  if (a.dtype == kernels::DType::bf16 && is_short) a.short_remainder = c.output<int8_t>(1);
  if (a.dtype == kernels::DType::bf16 && !is_short) a.remainder = c.output<int16_t>(1);
  if (a.dtype == kernels::DType::f16) a.master = c.output<float>(1);
  a.gradient[0] = c.input(0);
  a.gradient[1] = c.input(1);
  a.gradient_dtype = dtype_of(c.input_tensor(0).format);
  a.rate = parameter.rate;
  a.stream = stream_of(update_stream, parameter);
  a.first_element = c.i.first_element;
  a.decay = parameter.decay.value_or(c.x.weight_decay);
  a.state = c.x.state;
  a.first = c.output<float>(2);
  a.second = c.output<float>(3);
  a.products = products_of(c);
  return a;
}

template <>
void run<OpKind::adamw>(const Call& c) {
  c.run_together(c.x.table->adamw, update_args);
}
template <>
void run<OpKind::sgd>(const Call& c) {
  c.run_together(c.x.table->sgd, update_args);
}
template <>
void run<OpKind::lion>(const Call& c) {
  c.run_together(c.x.table->lion, update_args);
}
template <>
void run<OpKind::muon>(const Call& c) {
  c.run(c.x.table->muon, update_args(c));
}
template <>
void run<OpKind::adafactor>(const Call& c) {
  c.run(c.x.table->adafactor, update_args(c));
}

kernels::UpdateArgs adamw8_args(const Call& c) {
  kernels::UpdateArgs a = update_args(c);
  a.first = a.second = nullptr;
  a.first_code = c.output<uint8_t>(2);
  a.second_code = c.output<uint8_t>(3);
  a.first_absmax = c.output<float>(4);
  a.second_absmax = c.output<float>(5);
  return a;
}
template <>
void run<OpKind::adamw8>(const Call& c) {
  c.run_together(c.x.table->adamw8, adamw8_args);
}

kernels::UpdateArgs lion8_args(const Call& c) {
  kernels::UpdateArgs a = update_args(c);
  a.first = a.second = nullptr;
  a.first_code = c.output<uint8_t>(2);
  a.first_absmax = c.output<float>(3);
  return a;
}
template <>
void run<OpKind::lion8>(const Call& c) {
  c.run_together(c.x.table->lion8, lion8_args);
}

using Runner = void (*)(const Call&);
template <size_t... kinds>
constexpr std::array<Runner, sizeof...(kinds)> all_runners(std::index_sequence<kinds...>) {
  return {&run<static_cast<OpKind>(kinds)>...};
}
constexpr auto runners = all_runners(std::make_index_sequence<op_kind_count>());

}  // namespace

// Whether the instruction changes parameters. From there on a step cannot be undone.
static bool is_final(const Instruction& i) { return is_update(i.kind); }

void execute(const Execution& execution, const Program& program) {
  const size_t count = program.instructions.size();
  for (size_t k = 0; k < count; ++k) {
    if (supervisor && is_final(program.instructions[k])) supervisor->commit();
    if (supervisor) supervisor->set_unit_progress(static_cast<double>(k) / static_cast<double>(count));
    execute_one(execution, program, program.instructions[k], execution.stream);
  }
}

void execute_one(const Execution& execution, const Program& program, const Instruction& instruction,
                 void* stream) {
  runners[static_cast<size_t>(instruction.kind)](Call(execution, program, instruction, stream));
}

// CPU kernels are done when they return.
void execute_timed(const Execution& execution, const Program& program, float* seconds) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  for (const Instruction& i : program.instructions) {
    check_in();
    execute_one(execution, program, i, execution.stream);
    const Clock::time_point end = Clock::now();
    *seconds++ = std::chrono::duration<float>(end - begin).count();
    begin = end;
  }
}

}  // namespace stw
