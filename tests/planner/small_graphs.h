// Complete graphs of small models for the planner's tests, as build_model makes them from the small
// configurations.
#pragma once
#include <gtest/gtest.h>

#include <random>

#include "planner/graph/feed_forward.h"
#include "planner/plan/plan.h"
#include "src/models/model.h"
#include "tests/small_configs.h"

namespace stw::testing_tools {

inline ModelConfig config_of(const SmallModel& model) {
  auto config = parse_model(model.config, "test");
  if (!config) {
    ADD_FAILURE() << config.error().message;
    return ModelConfig(architectures()[0]);
  }
  config->adapters = model.adapters;
  return *config;
}

inline Graph graph_of(const SmallModel& model, int64_t sequence = 33, Precision precision = Precision::fp32,
                      int bits = 32) {
  Numerics n;
  n.precision = precision;
  n.state_bits = bits;
  return build_model(config_of(model), sequence, n);
}

// A graph for a GPU's kernels, some of which do two ops.
inline Graph graph_for(const SmallModel& model, Kernels kernels, bool fused_update = false,
                       const std::vector<const char*>& frozen = {}) {
  Numerics n;
  n.precision = Precision::bf16;
  n.kernels = kernels;
  n.fused_update = fused_update;
  for (const char* pattern : frozen) n.groups.push_back({pattern, true, {}, {}, {}});
  return build_model(config_of(model), 33, n);
}

// Adds tile sizes that samples of a few rows have: inside of samples, and over several.
inline void add_small_tiles(std::vector<Graph>& graphs) {
  for (size_t i = 0; i < graphs.size(); ++i)
    graphs[i].tile_rows = i % 2 ? std::vector<int64_t>{16, 80} : std::vector<int64_t>{40, 32};
}

inline std::vector<Graph> small_graphs() {
  std::vector<Graph> graphs;
  graphs.push_back(graph_of(small_gpt2("0.1")));
  graphs.push_back(graph_of(small_gpt2(), 16, Precision::bf16, 8));
  graphs.push_back(graph_of(small_llama(), 33, Precision::bf16, 8));
  graphs.push_back(graph_of(small_qwen2(), 40));
  graphs.push_back(graph_of(small_qwen3(), 24, Precision::bf16));
  graphs.push_back(graph_of(small_phi3("0.1"), 33));
  graphs.push_back(graph_of(small_smollm3(), 40, Precision::bf16, 8));
  graphs.push_back(graph_of(small_gemma3(), 33, Precision::bf16));
  graphs.push_back(graph_of(small_bloom("0.1"), 33, Precision::bf16, 8));
  for (const double dropout : {0.0, 0.1})
    graphs.push_back(graph_of({small_gpt2(), adapters_of_all(dropout)}, 33, Precision::bf16));
  graphs.push_back(graph_of({small_llama(), adapters_of_some()}, 40, Precision::fp32, 8));
  graphs.push_back(graph_for(small_gpt2(), Kernels::tensor));
  graphs.push_back(graph_for(small_gpt2("0.1"), Kernels::wgmma));
  add_small_tiles(graphs);
  return graphs;
}

// Classifiers, alone and with adapters, with several labels or numbers too, and masked language models. Their
// evaluation has one op more.
inline std::vector<Graph> classifier_graphs() {
  std::vector<Graph> graphs;
  graphs.push_back(graph_of(classifier_of(small_qwen2()), 33, Precision::bf16));
  graphs.push_back(graph_of({classifier_of(small_gpt2()), adapters_of_all()}, 24));
  for (const std::string& config : small_encoders("0.1"))
    graphs.push_back(graph_of(config, 33, graphs.size() % 2 ? Precision::fp32 : Precision::bf16, 8));
  graphs.push_back(graph_of(classifier_of(small_bert()), 40));
  graphs.push_back(graph_of(classifier_of(small_deberta("0.1")), 40));
  graphs.push_back(graph_of(classifier_of(small_modernbert()), 40));
  graphs.push_back(graph_for(classifier_of(small_roberta()), Kernels::tensor));
  graphs.push_back(graph_for(classifier_of(small_bert("0.1")), Kernels::wgmma));
  graphs.push_back(graph_of(masked_of(small_bert("0.1")), 33, Precision::bf16, 8));
  graphs.push_back(graph_of(masked_of(small_electra()), 24));
  graphs.push_back(graph_of(of_labels(small_bert("0.1")), 33, Precision::bf16, 8));
  graphs.push_back(graph_of({of_numbers(small_llama()), adapters_of_all()}, 40));
  graphs.push_back(graph_of(spans_of(small_bert("0.1")), 33, Precision::bf16, 8));
  graphs.push_back(graph_of(spans_of(small_modernbert()), 40));
  graphs.push_back(graph_of({spans_of(small_roberta()), adapters_of_all()}, 24));
  for (const std::string& config : {classifier_of(small_bert("0.1")), classifier_of(small_deberta("0.1")),
                                    classifier_of(small_modernbert()), of_labels(small_roberta("0.1"))}) {
    Numerics n;
    n.precision = graphs.size() % 2 ? Precision::fp32 : Precision::bf16;
    n.inputs.weights = graphs.size() % 2;
    n.inputs.texts = 5;
    graphs.push_back(build_model(config_of(config), 33, n));
  }
  add_small_tiles(graphs);
  return graphs;
}

// Graphs with all optional inputs, and graphs of pairs, whose logits are computed twice.
inline std::vector<Graph> packed_graphs() {
  std::vector<Graph> graphs;
  for (const std::string& config : {small_gpt2("0.1"), small_llama()}) {
    Numerics n;
    n.inputs = {true, true};
    graphs.push_back(build_model(config_of(config), 33, n));
    n.groups = {{"embeddings", true, {}, {}, {}}, {"blocks.0", true, {}, {}, {}}};
    n.inputs.weights = false;
    graphs.push_back(build_model(config_of(config), 33, n));
    n.inputs.preference = Preference::dpo;
    graphs.push_back(build_model(config_of(config), 33, n));
    n.inputs.preference = Preference::simpo, n.groups.clear();
    graphs.push_back(build_model(config_of(config), 33, n));
  }
  add_small_tiles(graphs);
  return graphs;
}

// Together these have every kind of op: all of the above, and `model` with every optimizer.
inline std::vector<Graph> graphs_with_all_ops(const SmallModel& model, Numerics numerics) {
  std::vector<Graph> graphs = small_graphs();
  for (Graph& g : classifier_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : packed_graphs()) graphs.push_back(std::move(g));
  for (int optimizer = 0; optimizer < optimizer_count; ++optimizer)
    for (int bits : {32, 8}) {
      numerics.optimizer = static_cast<Optimizer>(optimizer);
      numerics.state_bits = bits;
      graphs.push_back(build_model(config_of(model), 33, numerics));
    }
  return graphs;
}

// Graphs with frozen parameters: the lowest ones; parts of all blocks; all except one part.
inline std::vector<Graph> frozen_graphs() {
  std::vector<Graph> graphs;
  auto add = [&](const std::string& config, const std::vector<const char*>& patterns) {
    Numerics n;
    n.precision = Precision::bf16;
    for (const char* pattern : patterns) n.groups.push_back({pattern, true, {}, {}, {}});
    graphs.push_back(build_model(config_of(config), 33, n));
  };
  add(small_gpt2("0.1"), {"embeddings", "blocks.0"});
  add(small_llama(), {"matrices"});
  add(small_llama(), {"embeddings", "blocks.0", "*layers.1.self_attn*", "*layers.1.input_layernorm*"});
  add(small_qwen2(), {"head", "norms"});
  add(small_gpt2(), {"embeddings", "blocks"});
  add(small_qwen3(),
      {"embeddings", "*layers.0.input_layernorm*", "*layers.0.self_attn.?_proj*", "*layers.1*k_norm*"});
  graphs.push_back(graph_for(small_gpt2(), Kernels::tensor, false, {"embeddings", "blocks.0"}));
  graphs.push_back(graph_for(small_gpt2(), Kernels::tensor, false, {"*mlp.c_proj*", "*h.1.mlp*"}));
  add_small_tiles(graphs);
  return graphs;
}

// Graphs with updates inside the backward pass, by every rule, some of them with frozen parts.
inline std::vector<Graph> fused_graphs() {
  std::vector<Graph> graphs;
  auto add = [&](const SmallModel& config, Precision precision, Optimizer optimizer, int bits,
                 std::vector<const char*> frozen = {}) {
    Numerics n;
    n.fused_update = true;
    n.precision = precision;
    n.optimizer = optimizer;
    n.state_bits = bits;
    for (const char* pattern : frozen) n.groups.push_back({pattern, true, {}, {}, {}});
    graphs.push_back(build_model(config_of(config), 33, n));
  };
  add(small_gpt2("0.1"), Precision::fp32, Optimizer::adamw, 32);
  add(small_llama(), Precision::bf16, Optimizer::adamw, 8);
  add(small_qwen2(), Precision::fp32, Optimizer::muon, 32);
  add(small_qwen3(), Precision::bf16, Optimizer::lion, 8);
  add({small_qwen3(), adapters_of_all()}, Precision::bf16, Optimizer::adamw, 8, {"blocks.1"});
  add(small_llama(), Precision::bf16, Optimizer::adafactor, 32, {"embeddings", "blocks.0", "norms"});
  graphs.push_back(graph_for(small_gpt2(), Kernels::wgmma, true));
  add_small_tiles(graphs);
  return graphs;
}

inline Decisions random_decisions(const Graph& graph, std::mt19937& random, int64_t largest_micro_batch) {
  Decisions d;
  d.micro_batch = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(largest_micro_batch));
  d.loss_chunks = int64_t{1} << random() % 6;
  for (const Segment& s : graph.segments)
    d.saved.push_back(s.kind != SegmentKind::block
                          ? ~0u
                          : s.choice_of(static_cast<uint32_t>(random()) & ((1u << s.saveable.size()) - 1)));
  // In half of all blocks the feed-forward part keeps nothing. It then runs in tiles, if it may.
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    int64_t rows = 0;
    if (segment.feed_forward.exists() && random() % 2) {
      for (size_t bit = 0; bit < segment.saveable.size(); ++bit)
        if (is_inner(segment.feed_forward, graph.op(segment.saveable[bit]).outputs[0])) {
          d.saved[s] &= ~(1u << bit);
          if (!segment.kept_with.empty() && segment.kept_with[bit] >= 0)
            d.saved[s] &= ~(1u << segment.kept_with[bit]);
        }
      d.saved[s] = segment.choice_of(d.saved[s]);
      rows = graph.tile_rows[random() % graph.tile_rows.size()];
      const int64_t all = rows_in_tiles(graph, segment),
                    tiles = tiling_of(d.micro_batch * all, all, rows).tiles();
      if (tiles == 1 || tiles > most_tiles || !may_tile(graph, segment, d.saved[s])) rows = 0;
    }
    d.tile_rows.push_back(rows);
  }
  return d;
}

inline Decisions uniform_decisions(const Graph& graph, uint32_t saved, int64_t micro_batch = 2,
                                   int64_t chunks = 1) {
  Decisions d;
  d.micro_batch = micro_batch;
  d.loss_chunks = chunks;
  for (const Segment& s : graph.segments) d.saved.push_back(s.kind != SegmentKind::block ? ~0u : saved);
  return d;
}

}  // namespace stw::testing_tools
