// Patterns that name parameters, and groups that set how the named parameters are trained.
//
//   embeddings     parameters before the first block: tables of tokens and positions, and the norms and
//                  matrices that their rows go through
//   blocks         all blocks. blocks.3: one of them. blocks.0-1: from the first to the last, counted from 0.
//                  A parameter that several blocks use belongs to each of them.
//   head           parameters that turn the last hidden state into logits, including an encoder's pooler.
//                  If the head is tied, it is the embedding.
//   norms          weights and biases of all norms
//   biases         all biases, including those of norms
//   matrices       matrices of blocks, including those of adapters
//   adapters       the matrices of low-rank adapters (adapters.h)
//   any other word: a name in the model's weight files; * stands for any text and ? for one character
#pragma once
#include <string_view>
#include <vector>

#include "planner/base/result.h"
#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"

namespace stw {

// The ops that use a parameter, under any of its names.
struct ParameterUse {
  bool by_embedding = false, of_tokens = false, by_norm = false, by_product = false, by_head = false,
       as_bias = false;
  bool before_blocks = false, outside_blocks = false, by_pooler = false;
  bool by_table_ops = false;  // Graph::table_ops, which `ops` does not count
  std::vector<int> blocks;    // their indices, ascending
  int ops = 0;
  // Gradients of the parameter. Ops on tables add to the gradient of another use, if there is one.
  int gradients() const { return ops == 0 && by_table_ops ? 1 : ops; }
};
// The uses of all parameters, by tensor. Only the tensors that own a parameter's bytes have uses.
std::vector<ParameterUse> parameter_uses(const Graph& graph);
// Whether the parameter is a matrix that only blocks use, in matrix products.
bool is_hidden_matrix(const Tensor& parameter, const ParameterUse& use);
// Whether it is the table of token embeddings, the head, or both.
bool is_token_matrix(const Tensor& parameter, const ParameterUse& use);

// For every tensor: whether the pattern names it, or a parameter that shares its bytes. Errors: bad_argument
// for a pattern that names nothing; the message lists the names that exist.
Result<std::vector<bool>> matches(const Graph& graph, const std::vector<ParameterUse>& uses,
                                  std::string_view pattern);

// Writes the groups' settings into the parameters' records. Call it before `differentiate`. Errors: those of
// `matches`; bad_argument for a setting out of range, or if nothing is left to train.
Status apply_groups(Graph& graph, const Numerics& numerics);

}  // namespace stw
