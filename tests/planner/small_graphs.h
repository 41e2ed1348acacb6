// Complete graphs of small models for the planner's tests: what build_model makes of the small configurations.
#pragma once
#include <gtest/gtest.h>

#include <random>

#include "planner/plan.h"
#include "src/models/model.h"
#include "tests/small_configs.h"

namespace stw::testing_tools {

inline ModelConfig config_of(const std::string& json) {
  auto config = parse_model(json, "test");
  if (!config) {
    ADD_FAILURE() << config.error().message;
    return {};
  }
  return *config;
}

inline Graph graph_of(const std::string& json, int64_t sequence = 33, Precision precision = Precision::fp32, int bits = 32) {
  Numerics n;
  n.precision = precision;
  n.state_bits = bits;
  return build_model(config_of(json), sequence, n);
}

inline std::vector<Graph> small_graphs() {
  std::vector<Graph> graphs;
  graphs.push_back(graph_of(small_gpt2("0.1")));
  graphs.push_back(graph_of(small_gpt2(), 16, Precision::bf16, 8));
  graphs.push_back(graph_of(small_llama(), 33, Precision::bf16, 8));
  graphs.push_back(graph_of(small_qwen2(), 40));
  return graphs;
}

inline Decisions random_decisions(const Graph& graph, std::mt19937& random, int64_t largest_micro_batch) {
  Decisions d;
  d.micro_batch = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(largest_micro_batch));
  d.loss_chunks = int64_t{1} << random() % 6;
  for (const Segment& s : graph.segments)
    d.saved.push_back(s.kind != SegmentKind::block ? ~0u : static_cast<uint32_t>(random()) & ((1u << s.saveable.size()) - 1));
  return d;
}

inline Decisions uniform_decisions(const Graph& graph, uint32_t saved, int64_t micro_batch = 2, int64_t chunks = 1) {
  Decisions d;
  d.micro_batch = micro_batch;
  d.loss_chunks = chunks;
  for (const Segment& s : graph.segments) d.saved.push_back(s.kind != SegmentKind::block ? ~0u : saved);
  return d;
}

}  // namespace stw::testing_tools
