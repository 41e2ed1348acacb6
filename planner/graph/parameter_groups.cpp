#include "planner/graph/parameter_groups.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "planner/graph/operands.h"
#include "planner/graph/optimizer.h"

namespace stw {

namespace {

constexpr double largest_factor = 1e6;

bool fits_glob(std::string_view pattern, std::string_view text) {
  // `star`: the position of the last * so far. It stands for the text that ends before `from`.
  size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == text[t] && pattern[p] != '*'))) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

struct Blocks {
  int first, last;
};

// "blocks", "blocks.3", "blocks.0-1". Empty if the pattern is none of these.
std::optional<Blocks> block_range(std::string_view pattern, int blocks) {
  if (pattern == "blocks") return Blocks{0, blocks - 1};
  if (!pattern.starts_with("blocks.")) return {};
  const char *at = pattern.data() + 7, *end = pattern.data() + pattern.size();
  Blocks r{};
  auto parsed = std::from_chars(at, end, r.first);
  if (parsed.ec != std::errc()) return {};
  r.last = r.first;
  if (parsed.ptr != end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, r.last);
  if (parsed.ec != std::errc() || parsed.ptr != end || r.first < 0 || r.last < r.first || r.last >= blocks)
    return {};
  return r;
}

using Predicate = std::function<bool(const Tensor&, const ParameterUse&)>;

// The condition that a word of the pattern language sets. Empty if the pattern is a name.
std::optional<Predicate> predicate_of(std::string_view pattern, int blocks) {
  if (pattern == "embeddings")
    return [](const Tensor&, const ParameterUse& u) { return u.by_embedding || u.before_blocks; };
  if (pattern == "head") return [](const Tensor&, const ParameterUse& u) { return u.by_head || u.by_pooler; };
  if (pattern == "norms") return [](const Tensor&, const ParameterUse& u) { return u.by_norm; };
  if (pattern == "biases") return [](const Tensor&, const ParameterUse& u) { return u.as_bias; };
  if (pattern == "matrices") return is_hidden_matrix;
  if (pattern == "adapters") return [](const Tensor& t, const ParameterUse&) { return t.adapter_of >= 0; };
  if (const auto range = block_range(pattern, blocks))
    return [r = *range](const Tensor&, const ParameterUse& u) {
      return std::any_of(u.blocks.begin(), u.blocks.end(),
                         [&](int block) { return r.first <= block && block <= r.last; });
    };
  return {};
}

// For a graph with adapters: whether any named parameter is trained.
bool names_adapters(const Graph& graph, const std::vector<bool>& named) {
  for (size_t t = 0; t < named.size(); ++t)
    if (named[t] && graph.tensors[t].of_adapters) return true;
  return false;
}

Error unknown(const Graph& graph, const std::vector<ParameterUse>& uses, std::string_view pattern) {
  const bool has_biases =
      std::any_of(uses.begin(), uses.end(), [](const ParameterUse& u) { return u.as_bias; });
  return {Code::bad_argument, "no parameter matches \"" + std::string(pattern) +
                                  "\"; there are embeddings, blocks, blocks.0-" +
                                  std::to_string(graph.blocks() - 1) + ", matrices, " +
                                  (graph.has_adapters() ? "adapters, " : "") + "norms, " +
                                  (has_biases ? "biases, " : "") + "head, and names of tensors with * and ?"};
}

Status check_group(const ParameterGroup& g, const Numerics& numerics) {
  auto wrong = [&](const std::string& what) {
    return Error{Code::bad_argument, "group \"" + g.pattern + "\": " + what};
  };
  if (g.rate && !(*g.rate >= 0 && *g.rate <= largest_factor))
    return wrong("expected a factor of the learning rate from 0 to 1e6");
  if (g.decay && !(*g.decay >= 0 && *g.decay <= largest_factor))
    return wrong("expected a weight decay from 0 to 1e6");
  if (g.state_bits && *g.state_bits != 8 && *g.state_bits != 32)
    return wrong("expected states of 8 or 32 bits");
  if (g.state_bits == 8 && !optimizer_row(numerics.optimizer).has_8bit_states)
    return wrong(std::string("optimizer ") + name_of(numerics.optimizer) + " has no 8-bit states");
  return ok();
}

}  // namespace

std::vector<ParameterUse> parameter_uses(const Graph& graph) {
  std::vector<ParameterUse> uses(graph.tensors.size());
  bool is_after_pooler = false;  // in the final segment: a norm before the pooler's matrix is no part of it
  const auto add = [&](const Op& op, bool is_of_table) {
    const Segment& s = graph.segments[op.segment];
    const bool is_product = op.kind == OpKind::linear || op.kind == OpKind::adapter;
    is_after_pooler |= s.kind == SegmentKind::final && is_product;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (op.inputs[k] < 0 || graph.at(op.inputs[k]).role != Role::parameter) continue;
      ParameterUse& u = uses[graph.resolve(op.inputs[k])];
      u.ops += !is_of_table;
      u.by_table_ops |= is_of_table;
      const bool is_table = graph.at(op.inputs[k]).rows > 0;  // of relative positions; no weight of the op
      u.by_embedding |= op.kind == OpKind::embedding || is_table;
      u.of_tokens |= op.kind == OpKind::embedding && static_cast<int>(k) == in(OpKind::embedding, "table");
      u.by_norm |= (op.kind == OpKind::norm && !is_table) || op.kind == OpKind::qk_norm;
      u.by_product |= (op.kind == OpKind::linear && !is_table) || op.kind == OpKind::adapter;
      u.by_head |= s.kind == SegmentKind::head;
      u.as_bias |= std::string_view(input_row_of(op.kind, k).name) == "bias";
      u.by_pooler |= s.kind == SegmentKind::final && is_after_pooler;
      u.before_blocks |= s.kind == SegmentKind::embedding;
      u.outside_blocks |= s.kind != SegmentKind::block;
      if (s.kind == SegmentKind::block && (u.blocks.empty() || u.blocks.back() != s.block))
        u.blocks.push_back(s.block);
    }
  };
  for (const Op& op : graph.ops) add(op, false);
  for (const Op& op : graph.table_ops) add(op, true);
  for (ParameterUse& u : uses) {  // ops on tables come after all ops on samples
    std::sort(u.blocks.begin(), u.blocks.end());
    u.blocks.erase(std::unique(u.blocks.begin(), u.blocks.end()), u.blocks.end());
  }
  return uses;
}

bool is_hidden_matrix(const Tensor& parameter, const ParameterUse& use) {
  return parameter.shape.rank == 2 && use.by_product && !use.outside_blocks;
}

bool is_token_matrix(const Tensor& parameter, const ParameterUse& use) {
  return parameter.shape.rank == 2 && (use.of_tokens || (use.by_head && use.by_product));
}

Result<std::vector<bool>> matches(const Graph& graph, const std::vector<ParameterUse>& uses,
                                  std::string_view pattern) {
  std::vector<bool> named(graph.tensors.size());
  const std::optional<Predicate> predicate = predicate_of(pattern, graph.blocks());
  bool any = false;
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t) {
    if (graph.at(t).role != Role::parameter) continue;
    const auto parameter = static_cast<size_t>(graph.resolve(t));
    if (predicate ? (*predicate)(graph.tensors[parameter], uses[parameter])
                  : fits_glob(pattern, graph.at(t).name))
      named[parameter] = any = true;
  }
  if (!any) return unknown(graph, uses, pattern);
  return named;
}

Status apply_groups(Graph& graph, const Numerics& numerics) {
  if (numerics.groups.empty()) return ok();
  const std::vector<ParameterUse> uses = parameter_uses(graph);
  const bool has_adapters = graph.has_adapters();
  for (const ParameterGroup& g : numerics.groups) {
    STW_TRY(check_group(g, numerics));
    STW_ASSIGN(named, matches(graph, uses, g.pattern));
    if (has_adapters && (g.rate || g.decay || g.state_bits) && !names_adapters(graph, named))
      return Error{Code::bad_argument,
                   "group \"" + g.pattern + "\": it names no adapter, and only adapters are trained"};
    for (size_t t = 0; t < named.size(); ++t) {
      if (!named[t]) continue;
      Tensor& tensor = graph.tensors[t];
      if (has_adapters && !tensor.of_adapters && g.frozen == false)
        return Error{Code::bad_argument,
                     "group \"" + g.pattern + "\": only adapters are trained, but it names " + tensor.name};
      if (g.frozen) tensor.trainable = !*g.frozen;
      if (g.rate) tensor.rate = *g.rate;
      if (g.decay) tensor.decay = *g.decay;
      if (g.state_bits) tensor.state_bits = *g.state_bits;
    }
  }
  for (const ParameterGroup& g : numerics.groups) {
    if (!g.rate && !g.decay && !g.state_bits) continue;
    STW_ASSIGN(named, matches(graph, uses, g.pattern));
    bool any = false;
    for (size_t t = 0; t < named.size(); ++t) any |= named[t] && graph.tensors[t].trainable;
    if (!any)
      return Error{
          Code::bad_argument,
          "group \"" + g.pattern +
              "\": all parameters that it names are frozen, and have no learning rate, decay or states"};
  }
  // A tied parameter is trainable exactly if the owner of its bytes is.
  for (Tensor& t : graph.tensors)
    if (t.role == Role::parameter && t.tied_to >= 0)
      t.trainable = graph.at(graph.resolve(t.tied_to)).trainable;
  if (graph.trainable_count() == 0)
    return Error{Code::bad_argument, "all parameters are frozen: nothing is left to train"};
  return ok();
}

}  // namespace stw
