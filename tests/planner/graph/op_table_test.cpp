#include "planner/graph/op_table.h"

#include <algorithm>
#include <set>

#include "planner/device/device.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/kept_rows.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

TEST(OpTable, EveryKindHasARowOfItsOwn) {
  std::set<std::string> names;
  for (int k = 0; k < op_kind_count; ++k) {
    const OpRow& row = op_row(static_cast<OpKind>(k));
    EXPECT_EQ(row.kind, static_cast<OpKind>(k));
    EXPECT_NE(row.cost, nullptr);
    EXPECT_NE(row.cpu_workspace, nullptr);
    EXPECT_NE(row.cuda_workspace, nullptr);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

TEST(OpTable, CostsArePositiveAndGrowWithTheBatch) {
  std::set<OpKind> seen;
  std::vector<Graph> graphs = graphs_with_all_ops(small_llama(), {});
  graphs.push_back(graph_of(with_vocabulary(small_qwen2(), 1500)));
  keep_rows(graphs.back(), 3);
  graphs.push_back(graph_of(with_vocabulary(small_llama(), 1500)));
  keep_rows(graphs.back(), 3);
  for (const Graph& g : graphs)
    for (const std::vector<Op>* list :
         {&g.ops, &g.gradient_ops, &g.update_ops, &g.evaluate_ops, &g.generate_ops, &g.transfer_ops,
          g.kept.exist() ? &g.table_gradient_ops : &g.ops})
      for (const Op& op : *list) {
        seen.insert(op.kind);
        const OpRow& row = op_row(op.kind);
        const Cost one = row.cost(g, op, {1, g.sequence, 1}), three = row.cost(g, op, {3, 3 * g.sequence, 1});
        EXPECT_GT(one.bytes, 0u) << row.name;
        EXPECT_GE(three.bytes, one.bytes) << row.name;
        EXPECT_GE(three.flops, one.flops) << row.name;
        EXPECT_EQ(three.flops == one.flops, list == &g.update_ops || one.flops == 0) << row.name;
        EXPECT_GE(row.workspace(g, op, {3, 3 * g.sequence, 2}), row.workspace(g, op, {1, g.sequence, 1}))
            << row.name;
      }
  EXPECT_EQ(seen.size(), static_cast<size_t>(op_kind_count));
}

// The matrices that tokens pass through take 6 FLOP for each parameter and token, forward and backward
// together. Causal attention takes 7·T·width for each layer and token: 2 products forward and 5 backward,
// each of half a score matrix.
TEST(OpTable, FlopsAgreeWithTheFormula) {
  const Graph g = graph_of(small_llama(), 33);
  uint64_t products = 0, attention = 0;
  for (const std::vector<Op>* list : {&g.ops, &g.gradient_ops})
    for (const Op& op : *list) {
      const uint64_t flops = op_row(op.kind).cost(g, op, {2, 66, 1}).flops;
      if (op.kind == OpKind::linear || op.kind == OpKind::linear_input_gradient ||
          op.kind == OpKind::linear_weight_gradient)
        products += flops;
      if (op.kind == OpKind::attention || op.kind == OpKind::attention_gradient) attention += flops;
    }
  const uint64_t matrices = 3 * (48 * 48 + 2 * 48 * 16 + 48 * 48 + 3 * 48 * 88) + 61 * 48;
  EXPECT_EQ(products, 6 * 66 * matrices);
  EXPECT_EQ(attention, uint64_t{3} * 7 * 66 * 33 * 48);
}

// A window of 7 leaves a band of the triangle: T² - (T - 7)² in place of T².
TEST(OpTable, FlopsOfAttentionCountOnlyItsWindow) {
  const Graph g = graph_of(small_phi3(), 33), inside = graph_of(small_phi3(), 7);
  const auto attention_of = [](const Graph& graph, int64_t rows) {
    uint64_t flops = 0;
    for (const std::vector<Op>* list : {&graph.ops, &graph.gradient_ops})
      for (const Op& op : *list)
        if (op.kind == OpKind::attention || op.kind == OpKind::attention_gradient)
          flops += op_row(op.kind).cost(graph, op, {2, 2 * rows, 1}).flops;
    return flops;
  };
  EXPECT_EQ(attention_of(g, 33), uint64_t{3} * 7 * 2 * (33 * 33 - 26 * 26) * 48);
  EXPECT_EQ(attention_of(inside, 7), uint64_t{3} * 7 * 2 * 49 * 48);
}

// Rows that also see later keys have the whole square. A window leaves a band on both sides of its diagonal.
TEST(OpTable, FlopsOfAttentionOnBothSidesAreTwiceThoseOfCausal) {
  Graph g = graph_of(small_llama(), 33);
  for (std::vector<Op>* list : {&g.ops, &g.gradient_ops})
    for (Op& op : *list) {
      if (!is_attention(op.kind)) continue;
      const auto flops = [&] { return op_row(op.kind).cost(g, op, {2, 66, 1}).flops; };
      const uint64_t products = op.kind == OpKind::attention ? 4 : 10, causal = flops();
      op.attributes.causal = false;
      EXPECT_EQ(flops(), 2 * causal);
      op.attributes.window = 7;
      EXPECT_EQ(flops(), products * 2 * (33 * 33 - 26 * 26) * 48);
    }
}

TEST(OpTable, AttentionHasTheOperandsOfItsRule) {
  GraphInputs inputs;
  inputs.positions = true;
  GraphBuilder b("rules", 12, 16, Format::bf16, inputs);
  b.begin(SegmentKind::embedding, -1, -1);
  int x = b.embedding(b.parameter("table", {16, 24}, Initializer::normal, 0.02f), -1, "embedding");
  b.end(x);
  b.begin(SegmentKind::block, 0, x);
  constexpr int following = 1;  // the targets take its place: int32 (sequence)
  const int qkv = b.linear(x, {{b.parameter("qkv", {24, 24}, Initializer::normal, 0.02f), -1}}, false, "qkv");
  x = b.attention(qkv, 1, 1, 8, 0.3f, 0, "attention", {.window = 5, .causal = false, .following = following});
  const int both = x;
  const int again =
      b.linear(x, {{b.parameter("again", {24, 8}, Initializer::normal, 0.02f), -1}}, false, "again");
  x = b.attention(again, 1, 1, 8, 0.3f, 0, "biased", {.alibi = true});
  b.end(x);
  b.begin(SegmentKind::head, -1, x);
  b.cross_entropy(b.linear(x, {{b.parameter("head", {16, 8}, Initializer::normal, 0.02f), -1}}, false,
                           "logits", Format::f32));
  Graph g = *b.finish();
  differentiate(g);
  g.attention = Attention::cudnn;
  int found = 0;
  for (const std::vector<Op>* list : {&g.ops, &g.gradient_ops})
    for (const Op& op : *list) {
      if (!is_attention(op.kind)) continue;
      ++found;
      std::vector<int> expected{op.inputs[0]};
      if (op.kind == OpKind::attention_gradient)
        expected.insert(expected.end(), op.inputs.begin() + 1, op.inputs.begin() + 4);
      expected.push_back(g.inputs[Input::positions]);
      const bool is_both = op.inputs[0] == qkv;
      if (is_both) expected.push_back(following);
      EXPECT_EQ(op.inputs, expected);
      EXPECT_EQ(op.attributes.causal, !is_both);
      EXPECT_EQ(op.attributes.alibi, !is_both);
      EXPECT_EQ(op.attributes.window, is_both ? 5 : 0);
    }
  EXPECT_EQ(found, 4);
  EXPECT_EQ(g.features(both), 8);
  g.inputs[Input::positions] = -1;  // as in samples of one document
  for (Op& op : g.ops) {
    if (op.kind != OpKind::attention) continue;
    EXPECT_FALSE(g.is_library_attention(op)) << "a window, or a bias";
    op.attributes.window = 0, op.attributes.alibi = false;
    EXPECT_TRUE(g.is_library_attention(op));
  }
}

// For a matrix with sides a <= b, each of the five steps multiplies (a, b) with (b, a), (a, a) with itself,
// and (a, a) with (a, b). These products are what Muon computes in addition to other optimizers.
TEST(OpTable, FlopsOfMuonCountItsProducts) {
  Numerics n;
  n.optimizer = Optimizer::muon;
  const Graph g = build_model(config_of(small_llama()), 33, n);
  int matrices = 0;
  for (const Op& op : g.update_ops) {
    if (op.kind != OpKind::muon) continue;
    const Shape& shape = g.at(op.outputs[0]).shape;
    const auto [a, b] = std::minmax({static_cast<uint64_t>(shape[0]), static_cast<uint64_t>(shape[1])});
    EXPECT_EQ(op_row(op.kind).cost(g, op, {1, 33, 1}).flops,
              12 * a * b + 5 * (2 * a * a * b + 2 * a * a * a + 2 * a * a * b))
        << g.at(op.outputs[0]).name;
    ++matrices;
  }
  EXPECT_EQ(matrices, 3 * 7);
}

// In 16 bits a GPU's tensor cores compute Muon's products, unless the kernels are portable. Otherwise the
// products are chains of multiply-adds: they run at the rate of fp32, and take more scratch memory.
TEST(OpTable, MuonIsPricedByItsKernels) {
  const auto* const device = find_device("h100");
  ASSERT_NE(device, nullptr);
  struct Found {
    uint64_t picoseconds, scratch;
  };
  const auto found = [&](Precision precision, Kernels kernels) {
    Numerics n;
    n.optimizer = Optimizer::muon, n.precision = precision, n.kernels = kernels;
    const Graph g = build_model(config_of(small_llama()), 33, n);
    Found f{};
    for (const Op& op : g.update_ops) {
      if (op.kind != OpKind::muon) continue;
      const OpRow& row = op_row(op.kind);
      Cost cost = row.cost(g, op, {1, 33, 0});
      cost.flops *= 1 << 20, cost.bytes = 0;  // as for large matrices
      f.picoseconds += op_picoseconds(*device, op.kind, g.peak_of(op), 0, cost);
      f.scratch += row.workspace(g, op, {1, 33, 0});
    }
    return f;
  };
  const Found chains = found(Precision::fp32, Kernels::portable);
  ASSERT_GT(chains.scratch, 0u);
  for (const auto& [precision, kernels] :
       {std::pair{Precision::bf16, Kernels::portable}, {Precision::fp32, Kernels::cublaslt}}) {
    const Found same = found(precision, kernels);
    EXPECT_EQ(same.picoseconds, chains.picoseconds);
    EXPECT_EQ(same.scratch, chains.scratch);
  }
  for (const Kernels kernels : {Kernels::tensor, Kernels::cublaslt})
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      const Found tensor = found(precision, kernels);
      EXPECT_LT(tensor.picoseconds, chains.picoseconds / 4);
      EXPECT_LT(tensor.scratch, chains.scratch * 3 / 4);
    }
}

}  // namespace
}  // namespace stw
