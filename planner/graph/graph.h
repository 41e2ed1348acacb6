// The graph of one model: tensors and ops of one micro-batch. Sizes are those of one sample, so a graph
// serves every micro-batch. GraphBuilder builds models (src/models). `differentiate` adds gradients.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "planner/base/result.h"
#include "planner/graph/head.h"
#include "planner/graph/input.h"
#include "planner/graph/numerics.h"
#include "planner/graph/op.h"
#include "planner/graph/tensor.h"

namespace stw {

enum class SegmentKind : uint8_t { embedding, block, final, head };

// The part of a block that may run in tiles of rows (feed_forward.h). No ops if the block has none.
struct FeedForward {
  int first_op = 0, op_count = 0;                    // in Graph::ops
  int first_gradient_op = 0, gradient_op_count = 0;  // in Graph::gradient_ops
  std::vector<int> inner, inner_gradients;           // tensors that only these ops read and write
  bool exists() const { return op_count > 0; }
  bool operator==(const FeedForward&) const = default;
};

// A run of consecutive ops. They read the segment's inputs, which are outputs of earlier segments, and
// tensors that are always alive: parameters, tables and inputs of samples. The inputs of a segment that has a
// backward pass are kept for it (segment_lives.h). The plan decides which other tensors are kept.
struct Segment {
  SegmentKind kind;
  int block = -1;  // index of the block
  int first_op = 0, op_count = 0;
  std::vector<int> inputs;  // tensors
  bool has_input(int tensor) const { return std::find(inputs.begin(), inputs.end(), tensor) != inputs.end(); }
  int output = -1;
  // Backward ops of this segment in `gradient_ops`, in execution order.
  int first_gradient_op = 0, gradient_op_count = 0;
  // Forward ops whose outputs the segment's backward ops read. The segment's output is left out: it is always
  // kept. Bit i of a save-set stands for the outputs of saveable[i].
  std::vector<int> saveable;
  // Limits the save-sets that the planner tries. For each entry of `saveable`: the index of the entry that it
  // is kept together with, or one of these constants. Empty: each entry may be kept or not.
  static constexpr int own_choice = -1, always = -2, never = -3;
  std::vector<int> kept_with;
  uint32_t choice_of(uint32_t saved) const;  // `saved`, changed to obey `kept_with`
  FeedForward feed_forward;
  bool operator==(const Segment&) const = default;
};

// The gradient of one use of a parameter by a forward op. Each use has a buffer of its own: in a shared
// buffer, the order of the contributions would depend on how the batch is cut. The update adds the buffers up
// in op order (update.h).
struct ParameterGradient {
  int parameter;
  int gradient;
};

// A parameter that is updated inside the backward pass: its two update ops, and the element of norm_sums that
// its sum of squares goes to. Its gradient is an activation, and keeps no buffer.
struct FusedUpdate {
  int square_sum, update;
  int64_t sum;
};

// Rotary positions. Each of `inverse_frequencies` is the amount by which an angle grows from one position to
// the next. The tables hold scale·cos and scale·sin of the angles, (sequence, frequencies).
struct RotaryTables {
  int cosine = -1, sine = -1;  // tensors
  std::vector<float> inverse_frequencies;
  float scale = 1;
};

// The gradient of a table that ops on samples read. It adds up over the micro-steps of a step, in fp32.
struct TableGradient {
  int table;
  int gradient;
};

// The gradient of an embedding's output for all rows of the global batch, with the tokens of these rows
// (kept_rows.h). Tensors; -1: none.
struct KeptRows {
  int ids = -1, rows = -1;
  // formed: the gradient of a table with one use. The update forms it from the rows, a slice at a time.
  // forming_op: the number of the op that forms it (Graph::op).
  int formed = -1, forming_op = -1;
  bool exist() const { return rows >= 0; }
};

// Relative positions of attention: the row of the table for each distance (row - key) within a sample. Entry
// `distance + sequence - 1`; the rows never decrease.
struct RelativeRows {
  int tensor = -1;  // int32 (2·sequence - 1)
  std::vector<int32_t> rows;
  std::vector<int64_t> settings;  // of the model, which the rows follow from
};

struct Graph {
  std::string architecture;
  int64_t sequence = 0, vocabulary = 0;
  int64_t token_types = 0;  // number of token types; 0: the model has no such input
  // Rows of logits in a sample, one for each of its first texts. 0: each row of a sample has logits.
  int64_t texts = 0;
  Head head;
  Format compute = Format::f32;          // of activations
  Kernels kernels = Kernels::portable;   // copied from the numerics
  Attention attention = Attention::own;  // copied from the numerics
  bool exact = true;
  // Roughly the largest number of quantized elements that an op decodes at once (quantize.h).
  uint64_t values_at_once = 0;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;           // forward, in execution order
  std::vector<Op> gradient_ops;  // backward, in execution order
  // After the last micro-step: sums of gradients, norm, scalars, optimizer (update.h).
  std::vector<Op> update_ops;
  std::vector<Op> evaluate_ops;  // forward without dropout (inference.h)
  std::vector<Op> generate_ops;  // forward for generation, with a cache of keys and values
  std::vector<Op> transfer_ops;  // a fetch and a store of each tensor that may lie in host memory (offload.h)
  // Ops on tables. The rows of a table belong to no sample, for instance those of relative positions. The ops
  // run once before the micro-steps of a step, and ops on samples read the results, which keep their places
  // in the arena (Role::state). The ops of their gradients run once after the micro-steps.
  std::vector<Op> table_ops;
  std::vector<Op> table_gradient_ops;
  std::vector<Op> evaluate_table_ops;  // without dropout; empty if `table_ops` have none
  std::vector<TableGradient> table_gradients;
  KeptRows kept;
  RelativeRows relative;
  std::vector<int> transfer;  // tensor -> its fetch in `transfer_ops`, or -1
  std::vector<Segment> segments;
  std::vector<ParameterGradient> gradients;  // in op order
  // For every op of `gradient_ops`: the updates inside the backward pass that follow it. Empty unless updates
  // are fused.
  std::vector<std::vector<FusedUpdate>> updates_after;
  int begin_update = -1;      // the op that runs before all updates inside the backward pass, or -1
  std::vector<int> producer;  // tensor -> forward op that computes it, or -1
  InputIndices inputs;        // tensors
  int state = -1;
  int64_t first_position = 0;                // the row of a document's first token in the table of positions
  Preference preference = Preference::none;  // the loss of preference pairs
  // The tensor that holds the factor of each token's gradient. A preference loss computes this tensor.
  int token_weights = -1;
  std::vector<RotaryTables> rotary;  // several if layers differ in their rotary positions
  // Rows that a tile of a feed-forward part may have: multiples of its tile_unit (feed_forward.h). Few rows
  // save memory; more rows reach full speed on a GPU.
  std::vector<int64_t> tile_rows{256, 1024};

  int resolve(int tensor) const {  // follows tied_to
    while (tensors[tensor].tied_to >= 0) tensor = tensors[tensor].tied_to;
    return tensor;
  }
  bool fuses_updates() const { return begin_update >= 0; }
  const Tensor& at(int tensor) const { return tensors[tensor]; }
  // The tensors of all inputs, of the inputs that only the loss reads, and of the other inputs.
  std::vector<int> all_inputs() const {
    return inputs_where([](const InputRow&) { return true; });
  }
  std::vector<int> loss_inputs() const {
    return inputs_where([](const InputRow& row) { return row.of_loss; });
  }
  std::vector<int> body_inputs() const {
    return inputs_where([](const InputRow& row) { return !row.of_loss; });
  }
  // The first op of the update that sums squares. There is one such op for each element of norm_sums. The ops
  // before it add up gradients.
  int first_square_sum() const;
  // The ops of all lists have one numbering: forward, gradient, update, evaluate, generate, transfer, tables,
  // gradients of tables, tables of evaluations.
  const Op& op(int index) const {
    auto i = static_cast<size_t>(index);
    if (i < ops.size()) return ops[i];
    i -= ops.size();
    return i < gradient_ops.size() ? gradient_ops[i] : other_op(i - gradient_ops.size());
  }
  int first_update_op() const { return static_cast<int>(ops.size() + gradient_ops.size()); }
  int first_evaluate_op() const { return first_update_op() + static_cast<int>(update_ops.size()); }
  int first_generate_op() const { return first_evaluate_op() + static_cast<int>(evaluate_ops.size()); }
  int first_transfer_op() const { return first_generate_op() + static_cast<int>(generate_ops.size()); }
  int first_table_op() const { return first_transfer_op() + static_cast<int>(transfer_ops.size()); }
  int first_table_gradient_op() const { return first_table_op() + static_cast<int>(table_ops.size()); }
  int first_evaluate_table_op() const {
    return first_table_gradient_op() + static_cast<int>(table_gradient_ops.size());
  }
  int fetch_op(int tensor) const { return first_transfer_op() + transfer[tensor]; }
  int store_op(int tensor) const { return fetch_op(tensor) + 1; }
  bool owns_bytes(int tensor) const { return at(tensor).role == Role::parameter && at(tensor).tied_to < 0; }
  size_t loss_ops() const { return head.row().counts_hits ? 3 : 2; }  // at the end of evaluate_ops
  int64_t size_of(Dimension dimension) const;
  int blocks() const;
  std::string segment_name(int segment) const;  // "block 3", "head"; empty for -1
  bool has_adapters() const;  // low-rank adapters (adapters.h); then nothing else is trained
  uint64_t parameter_count() const;
  uint64_t trainable_count() const;
  // Rows of a sample that an op processes: the rows of its first per-sample operand, or if it has none, of
  // its first table.
  int64_t rows_of(const Op& op) const;
  int64_t rows_of(int tensor) const { return at(tensor).rows; }
  // The window of an attention op. 0 if it has no window, or one that covers the whole sample.
  int64_t window_of(const Op& op) const {
    return op.attributes.window < rows_of(op) ? op.attributes.window : 0;
  }
  // Whether training programs leave the op to cuBLASLt. The library may decline some shapes.
  bool is_library_product(const Op& op) const;
  // Whether our wgmma kernels compute the op, provided that its operands are aligned.
  bool is_wgmma_product(const Op& op) const;
  bool is_wgmma_attention(const Op& op) const;
  bool is_library_attention(const Op& op) const;  // whether cuDNN computes the op
  Peak peak_of(const Op& op) const;
  // Features of a per-sample activation (rows, features).
  int64_t features(int tensor) const {
    const Shape& s = at(tensor).shape;
    return s[s.rank - 1];
  }

 private:
  const Op& other_op(size_t index) const;  // counted from the first op of the update
  template <class Is>
  std::vector<int> inputs_where(const Is& is) const {
    std::vector<int> list;
    for (size_t i = 0; i < input_count; ++i)
      if (inputs.of[i] >= 0 && is(input_rows[i])) list.push_back(inputs.of[i]);
    return list;
  }
};

// In exact mode, cuBLASLt computes weight gradients faster than our kernels if a sample has at least this
// many rows. Each sample is a call of its own, and each call reads and writes the whole gradient (8 bytes an
// element). Our kernels keep the sum in registers from sample to sample.
inline constexpr int64_t least_library_sample = 512;
inline constexpr int64_t logits_unit = 16;  // rows of logits begin at multiples of this many elements

struct LinearWeights {
  int weight;
  int bias = -1;
};

// The keys that a row of attention sees, and the bias of its scores (kernels/common/score_rule.h).
struct AttentionRule {
  int64_t window = 0;  // Attributes::window
  bool causal = true;
  bool alibi = false;  // causal only
  // For bidirectional attention inside documents: an int32 tensor (sequence) with the number of rows that
  // follow each row in its document. -1: none.
  int following = -1;
  // For bidirectional attention: keys and queries of relative positions, side by side if there are both, and
  // GraphBuilder::relative_rows. -1: none.
  int relative = -1;
  bool relative_keys = false, relative_queries = false;
};

class GraphBuilder {
 public:
  GraphBuilder(std::string architecture, int64_t sequence, int64_t vocabulary, Format compute,
               GraphInputs inputs = {});

  // Adds a parameter. If the name was given before, with the same shape, returns the existing parameter: its
  // ops share it.
  int parameter(std::string name, Shape shape, Initializer initializer, float std = 0,
                WeightLayout layout = {});
  int tied(std::string name, int to);  // another name for a parameter's bytes
  // Declares tables of cosines and sines. A head has twice as many rotated numbers as there are frequencies.
  // Returns the index of the tables, for `rope`.
  int rotary(std::vector<float> inverse_frequencies, float scale = 1);
  // The row of a table for each distance, from -(sequence - 1) to sequence - 1 (RelativeRows).
  void relative_rows(std::vector<int32_t> rows, std::vector<int64_t> settings);
  // Declares that ops read the parameter's rows as a table. Returns the parameter.
  int table(int parameter);
  // From now on, ops belong to tables (Graph::table_ops), or to samples again.
  void build_tables(bool on) { in_tables_ = on; }
  // Declares that ops on samples read this result of ops on tables. Returns it.
  int keep_table(int table);
  // `input` and `others`: the outputs of earlier segments that the segment's ops read. -1: none. The head
  // reads that of the segment right before it, and no other.
  void begin(SegmentKind kind, int block, int input, const std::vector<int>& others = {});
  void end(int output);  // no op of the segment reads its output
  int64_t features(int tensor) const { return graph_.features(tensor); }

  // Inputs in addition to tokens and targets. Each call adds its input to the graph and returns its tensor.
  int add_input(Input input);  // any input of the table; the next calls also set what their inputs depend on
  int token_types(int64_t count);
  int tokens() const { return graph_.inputs[Input::tokens]; }
  int64_t sequence() const { return graph_.sequence; }
  int following();                            // adds positions too: every sample holds documents
  int position_rows(int64_t first_position);  // adds positions too
  // For each token: its row of `table`, plus the row of `positions` (-1: none) for its position.
  int embedding(int table, int positions, const char* name);
  // For each row: row `ids` of `table`, plus row `position_ids` of `positions` (-1: none). If `position_ids`
  // is -1, the position is the index of the row in the sample.
  int embedding(int ids, int table, int positions, int position_ids, const char* name);
  int norm(int x, int weight, int bias, float epsilon, bool rms, const char* name, float weight_offset = 0);
  int linear(int x, const std::vector<LinearWeights>& parts, bool transposed, const char* name,
             Format output);
  int linear(int x, const std::vector<LinearWeights>& parts, bool transposed, const char* name) {
    return linear(x, parts, transposed, name, graph_.compute);
  }
  // x: queries, keys and values next to each other. The weights have the size of one head.
  int qk_norm(int x, int query_weight, int key_weight, int query_heads, int kv_heads, float epsilon,
              const char* name, float weight_offset = 0);
  int rope(int x, int table, int query_heads, int kv_heads, int head_dim, const char* name);
  int attention(int qkv, int query_heads, int kv_heads, int head_dim, float scale, float dropout,
                const char* name, const AttentionRule& rule = {});
  int activation(int x, Activation activation, const char* name);
  int gated(int x, const char* name, Gate gate = Gate::silu);
  int document_mean(int x, const char* name);  // adds the inputs that `following` adds
  // The rows of `x` that have a target, if GraphInputs::texts is set and the task (call `task` before) has an
  // output for each text: one row for each text of a sample. Else x itself. Later ops have as many rows.
  int take_text_rows(int x, const char* name);
  int scale(int x, float factor, const char* name);  // x itself if factor is 1
  int add(int a, int b, const char* name);
  int dropout(int x, float p, const char* name);  // x itself if p is 0
  void loss(int logits);           // of the graph's task: cross entropy, or a loss that compares with values
  void cross_entropy(int logits);  // of tokens, or of labels after a call of `labels`
  // Declares the task, the number of its labels (0: targets are tokens), and the row of a document that its
  // label belongs to. Call it before the loss. Without it, the task is to predict the next token.
  void task(Task task, int64_t labels, TargetRow row);

  // The first error of a call above: an op that does not fit its inputs (infer.h), one name for parameters of
  // two shapes, or a segment that reads a tensor of another one without having it as an input. Calls after an
  // error do nothing.
  Result<Graph> finish();

 private:
  int activation(const char* name, int64_t rows, Shape shape, Format format);
  // Errors of the current segment: in its inputs, in its output, and if its ops may not read the tensor. Of
  // all segments: if no other one reads an output.
  Status check_inputs() const;
  Status check_output(int output) const;
  Status check_readers() const;
  Status check_read(OpKind kind, int tensor) const;
  void align_rows(int logits);
  void value_loss(int logits);
  void span_loss(int logits);
  void create_input(Input input);  // creates the input's tensor
  void shape_input(Input input);   // gives the tensor the shape that the table of inputs says
  // `inputs`, and the positions in documents if samples hold documents.
  std::vector<int> with_positions(std::vector<int> inputs) const;
  // Adds an op, with one output for each name. Returns the first output, or after an error the first input.
  int op(OpKind kind, const Attributes& attributes, std::vector<int> inputs,
         std::initializer_list<const char*> names);
  // The same, with outputs that exist.
  void op(OpKind kind, std::vector<int> inputs, std::vector<int> outputs);
  Graph graph_;
  Status status_ = ok();
  int64_t texts_ = 0;                 // GraphInputs::texts
  std::map<std::string, int> named_;  // name -> parameter
  InputIndices input_tensors_;        // tensors of inputs, including inputs that the graph does not need
  uint32_t streams_ = 0;
  int parameters_ = 0;
  bool in_tables_ = false;
};

}  // namespace stw
