// Which parameters a pattern names, and what groups of them say of each.
//
//   embeddings     all that comes before the first block: tables that tokens and positions look up, and what is done to their rows
//   blocks         all blocks; blocks.3: one of them; blocks.0-1: from the first to the last, counted from 0. What several blocks use belongs to
//                  each of them
//   head           what turns the last hidden state into logits, an encoder's pooler too; where it is tied, the embedding
//   norms          weights and biases of all norms
//   biases         all biases, those of norms among them
//   matrices       matrices of blocks, those of adapters among them
//   adapters       the matrices of low-rank adapters (adapters.h)
//   all else       a name in the model's weight files, where * stands for any text and ? for one character
#pragma once
#include <string_view>
#include <vector>

#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"
#include "planner/base/result.h"

namespace stw {

// By which ops a parameter is used, under whatever name.
struct ParameterUse {
  bool by_embedding = false, of_tokens = false, by_norm = false, by_product = false, by_head = false, as_bias = false;
  bool before_blocks = false, outside_blocks = false, by_pooler = false;
  std::vector<int> blocks;   // their numbers, from the first on
  int ops = 0;
};
// Of every tensor that owns the bytes of a parameter.
std::vector<ParameterUse> parameter_uses(const Graph& graph);
// A matrix that blocks, and nothing else, multiply with.
bool is_hidden_matrix(const Tensor& parameter, const ParameterUse& use);
// The table that tokens look up, the head, or both in one.
bool is_token_matrix(const Tensor& parameter, const ParameterUse& use);

// For every tensor whether the pattern names it, or a parameter that shares its bytes. Errors: bad_argument for one that
// names nothing, saying what there is.
Result<std::vector<bool>> matches(const Graph& graph, const std::vector<ParameterUse>& uses, std::string_view pattern);

// Writes what the groups say into the parameters' records, before `differentiate`. Errors: those of `matches`;
// bad_argument where a setting makes no sense or nothing is left to train.
Status apply_groups(Graph& graph, const Numerics& numerics);

}  // namespace stw
