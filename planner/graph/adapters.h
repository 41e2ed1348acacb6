// Low-rank adapters (LoRA: Hu et al. 2021). A frozen matrix W below the head gets two narrow trained
// matrices. W·x becomes W·x + scale·B·(A·x). A (rank, inputs) begins with random numbers, B (features, rank)
// with zeros.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "planner/base/result.h"
#include "planner/graph/graph.h"

namespace stw {

struct Adapters {
  int64_t rank = 0;  // 0: no adapters
  double alpha = 0;  // scale = alpha / rank, or alpha / sqrt(rank) if rank-stabilised (Kalajdzievski 2023)
  bool rank_stabilised = false;
  double dropout = 0;  // of A's input
  // The matrices that get adapters: the last parts of their modules' names ("q_proj", "self_attn.q_proj"), or
  // "all-linear".
  std::vector<std::string> targets;
  bool any() const { return rank > 0; }
  double scale() const;
  bool operator==(const Adapters&) const = default;
};

inline constexpr int64_t largest_rank = 4096;
inline constexpr const char* all_targets = "all-linear";
// Suffixes that follow the module's name, as in PEFT.
inline constexpr const char *low_suffix = ".lora_A.weight", *high_suffix = ".lora_B.weight";

// Drops the last part of a weight's name: "model.layers.0.self_attn.q_proj.weight" gives
// "model.layers.0.self_attn.q_proj".
std::string module_name(const Tensor& weight);
// Whether a target names a module, by its last parts as in PEFT, or by its whole name.
bool names_module(const std::string& target, const std::string& module);

// Adds adapters to the matrices of a graph of forward ops. Call it before `apply_groups` and `differentiate`.
// A matrix that computes logits gets none. All other parameters are frozen, except those for which
// `is_trained_whole` is true; these get no adapters, and are saved with the adapters. Errors: bad_argument
// for a rank, alpha or dropout out of range, and for a target that names no matrix; the message lists the
// names that exist.
Status add_adapters(Graph& graph, const Adapters& adapters,
                    const std::function<bool(const Tensor&)>& is_trained_whole = {});

// Limits which tensors of adapters a block may keep, so that adapters only double the number of save-sets
// (Segment::kept_with). The outputs of A outside of the feed-forward part are always kept. Those inside of it
// are either all kept or all dropped. The outputs of the dropout before A are never kept. Two kinds of
// save-sets are exempt (SearchSpace): blocks that keep everything, and plans that keep nothing. Call it after
// find_feed_forward.
void limit_adapter_choices(Graph& graph);

}  // namespace stw
