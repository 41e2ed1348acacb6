// Shapes of operands. The operand table says which operands have equal shapes (operands.h), OpRow::infer says
// the rest. The builder creates the outputs of its ops by these rules, so that an op that does not fit its
// inputs is an error of the model, with both shapes.
#pragma once
#include <string>
#include <vector>

#include "planner/base/result.h"
#include "planner/graph/graph.h"
#include "planner/graph/operands.h"

namespace stw {

// An op whose outputs do not exist yet. OpRow::infer reads its inputs, checks them, and sets its outputs.
class Inference {
 public:
  Inference(const Graph& graph, const Op& op, size_t outputs);
  // Applies the tables and OpRow::infer. Errors: unsupported_shape, with the names and shapes of two
  // operands.
  Status run();

  const Graph& graph() const { return graph_; }
  const Op& op() const { return op_; }
  bool has(int input) const { return input_at(op_, input) >= 0; }
  const Tensor& at(int input) const { return graph_.at(op_.inputs[input]); }
  const Shape& shape(int input) const { return at(input).shape; }
  int64_t features(int input) const { return shape(input).last(); }
  int64_t rows() const { return rows_; }  // of a sample
  // The shape of every row of the samples: (rows, features).
  Shape row_shape(int64_t features) const { return {rows_, features}; }

  // Fails unless the input is absent or has this shape, which follows from the input `reason`.
  Status expect(int input, const Shape& expected, int reason) const;
  Status fail(const std::string& what) const;
  // Sets an output, if the op has it.
  void set(int output, const Shape& shape, Format format);
  void set(int output, const Shape& shape) { set(output, shape, graph_.compute); }

  // "weight (h.0.ln_1.weight) with the shape (768)"
  std::string described(int input) const;
  std::vector<Tensor> outputs;  // without names

 private:
  Status check_presence() const;
  Status check_equal() const;
  const Shape* shape_of(const char* name) const;
  void copy_shapes();
  const Graph& graph_;
  const Op& op_;
  int64_t rows_ = 0;
};

std::string to_text(const Shape& shape);  // "(128, 768)"

// The shapes of attention and its relatives: x holds queries, keys and values of all heads side by side.
Status expect_heads(const Inference& op, int x);

}  // namespace stw
