// Reverse-mode differentiation of a graph, op by op. The backward rules are in the op table.
#pragma once
#include "planner/graph/op_table.h"

namespace stw {

// The interface that backward rules use. A gradient of an activation never changes in place: an op that adds
// to it reads the old tensor as its addend and computes a new tensor. The new tensor may take the memory of
// the old one (OpRow::in_place).
class Differentiation {
 public:
  explicit Differentiation(Graph& graph);
  void run();

  const Graph& graph() const { return graph_; }
  bool requires_gradient(int tensor) const;  // whether a trainable parameter contributes to it
  int gradient_of(int tensor) const { return gradient_[tensor]; }  // -1: none yet
  void set_gradient(int tensor, int value) { gradient_[tensor] = value; }
  void add_gradient(int tensor, int value);        // emits an `add` if the tensor already has a gradient
  int new_gradient(int tensor, const char* name);  // a new value with the tensor's shape
  // The buffer of this use; -1 if the parameter is frozen or absent. Ops on tables add to the buffer of the
  // first use.
  int parameter_gradient(int parameter);
  // The gradient of a table that an op on samples reads; -1 if no trained parameter contributes to the table.
  int table_gradient(int table);
  void emit(OpKind kind, const Attributes& attributes, std::vector<int> inputs, std::vector<int> outputs);

 private:
  void run_tables();
  void differentiate_op(const Op& op);
  void mark_chunked();
  Graph& graph_;
  std::vector<bool> requires_gradient_;
  std::vector<int> gradient_;
  int segment_ = -1;
  bool in_tables_ = false;
  int first_of_tables_ = 0;  // gradients before this one are of ops on samples
};

void differentiate(Graph& graph);

}  // namespace stw
