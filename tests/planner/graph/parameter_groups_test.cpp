// Tests patterns that name parameters, and the effect of groups on a graph.
#include "planner/graph/parameter_groups.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/graph/optimizer.h"
#include "planner/graph/update.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

std::set<std::string> named_by(const Graph& g, const std::string& pattern) {
  auto named = matches(g, parameter_uses(g), pattern);
  std::set<std::string> names;
  if (!named) return {named.error().message};
  for (size_t t = 0; t < g.tensors.size(); ++t)
    if ((*named)[t]) names.insert(g.at(static_cast<int>(t)).name);
  return names;
}

TEST(Pattern, NamesParametersByTheirUse) {
  const Graph gpt2 = graph_of(small_gpt2()), llama = graph_of(small_llama()), qwen = graph_of(small_qwen2()),
              qwen3 = graph_of(small_qwen3());
  EXPECT_EQ(named_by(gpt2, "embeddings"),
            (std::set<std::string>{"transformer.wte.weight", "transformer.wpe.weight"}));
  EXPECT_EQ(named_by(gpt2, "head"), std::set<std::string>{"transformer.wte.weight"});  // tied
  EXPECT_EQ(named_by(llama, "head"), std::set<std::string>{"lm_head.weight"});
  const Graph bert = graph_of(classifier_of(small_bert())),
              electra = graph_of(classifier_of(small_electra())), bloom = graph_of(small_bloom());
  EXPECT_EQ(named_by(bert, "embeddings").size(), 3u + 2);         // a norm after the tables
  EXPECT_EQ(named_by(electra, "embeddings").size(), 3u + 2 + 2);  // and a projection
  EXPECT_EQ(named_by(bloom, "embeddings"),
            (std::set<std::string>{"transformer.word_embeddings.weight",
                                   "transformer.word_embeddings_layernorm.weight",
                                   "transformer.word_embeddings_layernorm.bias"}));
  EXPECT_EQ(named_by(bert, "head"),
            (std::set<std::string>{"bert.pooler.dense.weight", "bert.pooler.dense.bias", "classifier.weight",
                                   "classifier.bias"}));
  // A head includes the norm after its matrix. The norm before that matrix is no part of the head.
  EXPECT_EQ(named_by(graph_of(classifier_of(small_modernbert())), "head"),
            (std::set<std::string>{"head.dense.weight", "head.norm.weight", "classifier.weight",
                                   "classifier.bias"}));
  EXPECT_EQ(named_by(graph_of(masked_of(small_bert())), "head"),
            (std::set<std::string>{
                "bert.embeddings.word_embeddings.weight", "cls.predictions.bias",
                "cls.predictions.transform.dense.weight", "cls.predictions.transform.dense.bias",
                "cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.LayerNorm.bias"}));
  EXPECT_EQ(named_by(llama, "norms").size(), 7u);
  EXPECT_EQ(named_by(gpt2, "norms").size(), 14u);
  EXPECT_EQ(named_by(qwen3, "norms").size(), 3u * 4 + 1);
  EXPECT_EQ(named_by(qwen3, "matrices").size(), 3u * 7);
  EXPECT_EQ(named_by(gpt2, "biases").size(), 3u * 4 + 7);
  EXPECT_EQ(named_by(qwen, "biases").size(), 3u * 3);
  EXPECT_EQ(named_by(llama, "matrices").size(), 3u * 7);
  EXPECT_EQ(named_by(llama, "blocks").size(), 3u * 9);
  EXPECT_EQ(named_by(llama, "blocks.1").size(), 9u);
  EXPECT_EQ(named_by(llama, "blocks.1-2").size(), 18u);
  for (const std::string& name : named_by(llama, "blocks.1"))
    EXPECT_NE(name.find("layers.1."), std::string::npos) << name;
}

TEST(Pattern, NamesTensorsWithWildcards) {
  const Graph g = graph_of(small_llama());
  EXPECT_EQ(named_by(g, "model.norm.weight"), std::set<std::string>{"model.norm.weight"});
  EXPECT_EQ(named_by(g, "*q_proj*").size(), 3u);
  EXPECT_EQ(named_by(g, "model.layers.?.self_attn.k_proj.weight").size(), 3u);
  EXPECT_EQ(named_by(g, "*.layers.*.mlp.*_proj.weight").size(), 9u);
  EXPECT_EQ(named_by(g, "*").size(), 3u * 9 + 3);
  EXPECT_EQ(named_by(g, "m*l.norm.weight*").size(), 1u);
  EXPECT_EQ(named_by(graph_of(small_gpt2()), "lm_head.weight"),
            std::set<std::string>{"transformer.wte.weight"});
}

TEST(Pattern, PatternsWithoutAMatchAreRefused) {
  const Graph g = graph_of(small_llama());
  for (const char* pattern :
       {"", "embedding", "blocks.3", "blocks.1-3", "blocks.2-1", "blocks.", "blocks.-1", "blocks.0-",
        "blocks.x", "blocks.0-1-2", "biases", "model.norm", "?", "q_proj"}) {
    auto named = matches(g, parameter_uses(g), pattern);
    ASSERT_FALSE(named) << pattern;
    EXPECT_EQ(named.error().code, Code::bad_argument);
    EXPECT_NE(named.error().message.find("blocks.0-2"), std::string::npos) << named.error().message;
    EXPECT_EQ(named.error().message.find("biases, "), std::string::npos)
        << "it has none: " << named.error().message;
  }
  EXPECT_NE(named_by(graph_of(small_gpt2()), "bias").begin()->find("biases, "), std::string::npos);
}

Graph grouped(const std::string& config, Numerics n, std::vector<ParameterGroup> groups) {
  n.groups = std::move(groups);
  return build_model(config_of(config), 33, n);
}

const Tensor& tensor(const Graph& g, const std::string& name) {
  return *std::find_if(g.tensors.begin(), g.tensors.end(), [&](const Tensor& t) { return t.name == name; });
}
bool has(const Graph& g, const std::string& name) {
  return std::any_of(g.tensors.begin(), g.tensors.end(), [&](const Tensor& t) { return t.name == name; });
}

TEST(Groups, LaterOnesWin) {
  const Graph g = grouped(
      small_llama(), {},
      {{"*", true, {}, {}, {}}, {"blocks.2", false, 0.5, {}, {}}, {"*layers.2*norm*", {}, 0.25, 0.01, {}}});
  const std::string block = "model.layers.2.";
  EXPECT_FALSE(tensor(g, "lm_head.weight").trainable);
  EXPECT_FALSE(tensor(g, "model.layers.1.mlp.up_proj.weight").trainable);
  EXPECT_TRUE(tensor(g, block + "mlp.up_proj.weight").trainable);
  EXPECT_EQ(tensor(g, block + "mlp.up_proj.weight").rate, 0.5);
  EXPECT_FALSE(tensor(g, block + "mlp.up_proj.weight").decay);
  EXPECT_EQ(tensor(g, block + "input_layernorm.weight").rate, 0.25);
  EXPECT_EQ(tensor(g, block + "input_layernorm.weight").decay, 0.01);
  EXPECT_EQ(tensor(g, "model.norm.weight").decay, 0);  // norms have none
}

TEST(Groups, AFrozenParameterHasNeitherGradientNorStateNorMaster) {
  Numerics n;
  n.precision = Precision::bf16;
  const Graph g =
      grouped(small_llama(), n, {{"embeddings", true, {}, {}, {}}, {"blocks.0-1", true, {}, {}, {}}});
  const Graph whole = grouped(small_llama(), n, {});
  uint64_t saved = 0;
  for (const Tensor& t : whole.tensors) {
    if (t.role != Role::gradient && t.role != Role::master && t.role != Role::optimizer) continue;
    const bool is_frozen = t.name.find("embed_tokens") != std::string::npos ||
                           t.name.find("layers.0") != std::string::npos ||
                           t.name.find("layers.1") != std::string::npos;
    EXPECT_EQ(has(g, t.name), !is_frozen) << t.name;
    if (is_frozen) saved += t.bytes(1);
  }
  EXPECT_EQ(frozen_savings(g, n), saved);
  EXPECT_EQ(frozen_savings(whole, n), 0u);
  for (const Segment& s : g.segments)
    EXPECT_EQ(s.gradient_op_count == 0, s.block == 0 || s.block == 1 || s.kind == SegmentKind::embedding);
  EXPECT_LT(g.gradient_ops.size(), whole.gradient_ops.size() / 2);
}

TEST(Groups, ATiedHeadIsFrozenWithItsEmbedding) {
  const Graph g = grouped(small_gpt2(), {}, {{"embeddings", true, {}, {}, {}}});
  EXPECT_FALSE(has(g, "transformer.wte.weight.gradient"));
  EXPECT_FALSE(has(g, "lm_head.weight.gradient"));
  // The table has two gradients, because it has two uses. The positions have one. Both have two moments.
  EXPECT_EQ(frozen_savings(g, {}), 40u * (61 * 2 + 40) * 4 + 40u * (61 + 40) * 8);
}

TEST(Groups, StateBitsComeFromTheGroup) {
  Numerics n;
  n.state_bits = 8;
  const Graph g = grouped(small_llama(), n, {{"blocks.1", {}, {}, {}, 32}});
  for (const Op& op : g.update_ops) {
    if (!is_update(op.kind)) continue;
    const std::string& name = g.at(op.outputs[0]).name;
    if (name.find("mlp.up_proj") == std::string::npos) continue;
    EXPECT_EQ(op.kind, name.find("layers.1.") != std::string::npos ? OpKind::adamw : OpKind::adamw8) << name;
  }
}

TEST(Groups, InvalidGroupsAreRefused) {
  const ModelConfig config = config_of(small_gpt2());
  auto refused = [&](Optimizer optimizer, const ParameterGroup& group, const std::string& why) {
    Numerics n;
    n.optimizer = optimizer;
    n.groups = {group};
    const Status status = check_numerics(config, n);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::bad_argument);
    EXPECT_NE(status.error().message.find(why), std::string::npos) << status.error().message;
  };
  refused(Optimizer::adamw, {"*", true, {}, {}, {}}, "nothing is left to train");
  refused(Optimizer::adamw, {"no_such_part", true, {}, {}, {}}, "no_such_part");
  refused(Optimizer::adamw, {"blocks", {}, -1.0, {}, {}}, "learning rate");
  refused(Optimizer::adamw, {"blocks", {}, {}, NAN, {}}, "weight decay");
  refused(Optimizer::adamw, {"blocks", {}, {}, {}, 16}, "8 or 32 bits");
  refused(Optimizer::sgd, {"blocks", {}, {}, {}, 8}, "sgd has no 8-bit states");
  // The limits are accepted; values beyond them are refused.
  for (const double end : {0.0, 1e6}) {
    Numerics n;
    n.groups = {{"blocks", {}, end, end, {}}};
    EXPECT_TRUE(check_numerics(config, n)) << end;
    const double outside = std::nextafter(end, end > 0 ? INFINITY : -INFINITY);
    refused(Optimizer::adamw, {"blocks", {}, outside, end, {}}, "learning rate from 0 to 1e6");
    refused(Optimizer::adamw, {"blocks", {}, end, outside, {}}, "weight decay from 0 to 1e6");
  }
}

// ---- optimizers -----------------------------------------------------------------------------------------

TEST(OptimizerRow, StatesTakeTheExpectedBytes) {
  struct Expected {
    Optimizer optimizer;
    int bits;
    double matrix_bytes;
  };
  for (const auto& [optimizer, bits, matrix_bytes] : {Expected{Optimizer::adamw, 32, 8},
                                                      {Optimizer::adamw, 8, 2 + 8.0 / 256},
                                                      {Optimizer::sgd, 32, 4},
                                                      {Optimizer::lion, 32, 4},
                                                      {Optimizer::lion, 8, 1 + 4.0 / 256},
                                                      {Optimizer::muon, 32, 4}}) {
    Numerics n;
    n.optimizer = optimizer;
    n.state_bits = bits;
    const Graph g = build_model(config_of(small_llama()), 33, n);
    for (const Op& op : g.update_ops) {
      if (!is_update(op.kind)) continue;
      const Tensor& p = g.at(op.outputs[0]);
      if (p.name.find("layers.0.mlp.up_proj") == std::string::npos) continue;
      double bytes = 0;
      for (size_t k = 2; k < op.outputs.size(); ++k)
        bytes += static_cast<double>(g.at(op.outputs[k]).bytes(1));
      EXPECT_NEAR(bytes / static_cast<double>(p.shape.elements()), matrix_bytes, bits == 8 ? 0.01 : 0)
          << name_of(optimizer);
    }
  }
}

// Tensors of every rank and every use. Only embeddings have no 8-bit states.
TEST(OptimizerRow, EightBitStatesAreForLargeTensorsThatAreNoEmbeddings) {
  const Graph g =
      graph_of(R"({"model_type": "gpt2", "vocab_size": 128, "n_positions": 128, "n_embd": 40, "n_layer": 1, )"
               R"("n_head": 4,
                               "n_inner": 4096, "tie_word_embeddings": false})",
               33, Precision::fp32, 8);
  std::set<std::string> in_8_bits;
  for (const Op& op : g.update_ops)
    if (op.kind == OpKind::adamw8) in_8_bits.insert(g.at(op.outputs[0]).name);
  EXPECT_EQ(in_8_bits,
            (std::set<std::string>{"transformer.h.0.attn.c_attn.weight", "transformer.h.0.mlp.c_fc.weight",
                                   "transformer.h.0.mlp.c_fc.bias", "transformer.h.0.mlp.c_proj.weight",
                                   "lm_head.weight"}));
}

TEST(OptimizerRow, MuonIsForHiddenMatricesAndAdafactorFactorsMatrices) {
  Numerics n;
  n.optimizer = Optimizer::muon;
  for (const Op& op : build_model(config_of(small_llama()), 33, n).update_ops) {
    if (!is_update(op.kind)) continue;
    const Graph g = build_model(config_of(small_llama()), 33, n);
    const std::string& name = g.at(op.outputs[0]).name;
    EXPECT_EQ(op.kind == OpKind::muon, name.find("proj") != std::string::npos) << name;
  }
  n.optimizer = Optimizer::adafactor;
  const Graph g = build_model(config_of(small_gpt2()), 33, n);
  EXPECT_EQ(tensor(g, "transformer.h.0.mlp.c_fc.weight.row_mean").shape, Shape({40}));
  EXPECT_EQ(tensor(g, "transformer.h.0.mlp.c_fc.weight.column_mean").shape, Shape({160}));
  EXPECT_EQ(tensor(g, "transformer.h.0.mlp.c_fc.bias.second").shape, Shape({160}));
}

}  // namespace
}  // namespace stw
