// Low-rank adapters (LoRA: Hu et al. 2021): beside a frozen matrix W below the head, two narrow trained ones. What was W·x becomes
// W·x + scale·B·(A·x), with A (rank, inputs) of random numbers and B (features, rank) of zeros in the beginning.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "planner/graph/graph.h"
#include "planner/base/result.h"

namespace stw {

struct Adapters {
  int64_t rank = 0;        // 0: there are none
  double alpha = 0;        // the scale is alpha / rank, or alpha / sqrt(rank) (rank-stabilised: Kalajdzievski 2023)
  bool rank_stabilised = false;
  double dropout = 0;      // of what A reads
  // Which matrices have one: the last parts of their modules' names ("q_proj", "self_attn.q_proj"), or "all-linear".
  std::vector<std::string> targets;
  bool any() const { return rank > 0; }
  double scale() const;
  bool operator==(const Adapters&) const = default;
};

inline constexpr int64_t largest_rank = 4096;
inline constexpr const char* all_targets = "all-linear";
inline constexpr const char *low_suffix = ".lora_A.weight", *high_suffix = ".lora_B.weight";   // behind the module's name, as PEFT has it

// "model.layers.0.self_attn.q_proj" of "model.layers.0.self_attn.q_proj.weight".
std::string module_name(const Tensor& weight);
// Whether a target names a module: by its last parts, as PEFT has it, or by its whole name.
bool names_module(const std::string& target, const std::string& module);

// Adds adapters to the matrices of a graph of forward ops, before `apply_groups` and `differentiate`. A matrix that gives logits has none.
// All other parameters are frozen, except those that `is_trained_whole` says; these have no adapters, and are kept with them.
// Errors: bad_argument for a rank, alpha or dropout that makes no sense, and for a target that names no matrix, saying what there is.
Status add_adapters(Graph& graph, const Adapters& adapters, const std::function<bool(const Tensor&)>& is_trained_whole = {});

// The narrow tensors of adapters are kept, those inside of a feed-forward part all or none, and their dropout is drawn again, but where all of
// a block is kept, or nothing of any (SearchSpace): it has twice as many choices to search as without adapters, and not 2 to the number of tensors.
// After find_feed_forward.
void tie_choices(Graph& graph);

}  // namespace stw
