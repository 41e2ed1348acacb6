// Tests the tensors and ops that adapters add to a graph, and their plans.
#include "planner/graph/adapters.h"

#include <set>

#include "planner/graph/op_table.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

std::set<std::string> adapted(const Graph& g) {
  std::set<std::string> modules;
  for (const Tensor& t : g.tensors)
    if (t.adapter_of >= 0) modules.insert(module_name(g.at(t.adapter_of)));
  return modules;
}

Status add(const std::string& config, const Adapters& adapters) {
  const auto forward = build_forward(config_of({config, adapters}), 33, Format::f32, {});
  return forward ? ok() : Status(forward.error());
}

TEST(Adapters, AreAddedToTheirMatrices) {
  for (const std::string& config : {small_gpt2(), small_llama(), small_qwen2(), small_qwen3()}) {
    const Graph plain = graph_of(config), g = graph_of({config, adapters_of_all()});
    const bool is_gpt2 = g.architecture == "gpt2";
    EXPECT_EQ(adapted(g).size(), is_gpt2 ? 3u * 4 : 3u * 7);
    EXPECT_FALSE(plain.has_adapters());
    EXPECT_TRUE(g.has_adapters());
    std::set<int> numbers;
    for (size_t t = 0; t < g.tensors.size(); ++t) {
      const Tensor& p = g.tensors[t];
      if (p.role != Role::parameter) continue;
      EXPECT_EQ(numbers.insert(p.ordinal).second, p.tied_to < 0);  // numbers of random streams
      EXPECT_EQ(p.trainable, p.adapter_of >= 0) << p.name;
      if (p.adapter_of < 0) {
        EXPECT_EQ(p.name, plain.tensors[t].name);
        EXPECT_EQ(p.ordinal, plain.tensors[t].ordinal);
        continue;
      }
      const Tensor& w = g.at(p.adapter_of);
      const bool is_low = p.name == module_name(w) + ".lora_A.weight";
      EXPECT_TRUE(is_low || p.name == module_name(w) + ".lora_B.weight") << p.name;
      const int64_t inputs = w.shape[is_gpt2 ? 0 : 1], features = w.shape[is_gpt2 ? 1 : 0];
      EXPECT_EQ(p.shape, is_low ? Shape({3, inputs}) : Shape({features, 3})) << p.name;
      EXPECT_EQ(p.initializer, is_low ? Initializer::normal : Initializer::zeros);
    }
    EXPECT_EQ(g.parameter_count(), plain.parameter_count() + g.trainable_count());
  }
}

TEST(Adapters, AreForTheNamedTargets) {
  const auto named = [&](std::vector<std::string> targets) {
    Adapters a = adapters_of_all();
    a.targets = std::move(targets);
    return adapted(graph_of({small_llama(), a}));
  };
  EXPECT_EQ(named({"q_proj"}).size(), 3u);
  EXPECT_EQ(named({"self_attn.q_proj", "v_proj"}).size(), 6u);
  EXPECT_EQ(named({"model.layers.1.mlp.gate_proj"}), std::set<std::string>{"model.layers.1.mlp.gate_proj"});
  EXPECT_EQ(named({"all-linear", "o_proj"}).size(), 21u);
  for (const char* wrong : {"proj", "lm_head", "embed_tokens", "", "*", "norm"}) {
    Adapters a = adapters_of_all();
    a.targets = {"q_proj", wrong};
    const Status status = add(small_llama(), a);
    ASSERT_FALSE(status) << wrong;
    EXPECT_EQ(status.error().code, Code::bad_argument);
    EXPECT_NE(status.error().message.find(std::string("\"") + wrong +
                                          "\"; there are down_proj, gate_proj, k_proj, "),
              std::string::npos)
        << status.error().message;
  }
}

// In encoders all products below the logits have adapters, but not those of a head that is trained as a
// whole.
TEST(Adapters, OfEncodersAreInTheSamePlacesAsPefts) {
  const auto named = [&](const std::string& config, std::vector<std::string> targets,
                         std::set<std::string> frozen_head = {}) {
    ModelConfig c = config_of({classifier_of(config), adapters_of_all()});
    c.adapters.targets = std::move(targets);
    c.frozen_head = std::move(frozen_head);
    const Graph g = build_model(c, 33, {});
    for (const Tensor& t : g.tensors)
      if (t.role == Role::parameter) {
        EXPECT_EQ(t.trainable, t.of_adapters) << t.name;
        EXPECT_EQ(t.of_adapters, t.adapter_of >= 0 || (is_of_head(c, t.name) && !c.frozen_head.count(t.name)))
            << t.name;
      }
    return adapted(g);
  };
  const std::set<std::string> pooler{"bert.pooler.dense.weight", "bert.pooler.dense.bias"};
  EXPECT_EQ(named(small_bert(), {"query", "value"}).size(), 6u);
  EXPECT_EQ(named(small_bert(), {"attention.output.dense"}).size(), 3u);
  EXPECT_EQ(named(small_bert(), {"output.dense"}).size(), 6u);  // including those of attention
  EXPECT_EQ(named(small_bert(), {"dense"}).size(), 9u);
  EXPECT_EQ(named(small_bert(), {"dense"}, pooler).size(), 10u);
  EXPECT_EQ(named(small_bert(), {all_targets}).size(), 18u);
  EXPECT_EQ(named(small_bert(), {all_targets}, pooler).size(), 19u);
  EXPECT_EQ(named(small_bert(), {"pooler.dense"}, pooler), std::set<std::string>{"bert.pooler.dense"});
  EXPECT_EQ(named(small_roberta(), {"dense"}).size(), 9u);
  EXPECT_EQ(named(small_distilbert(), {"q_lin", "k_lin", "v_lin", "out_lin", "lin1", "lin2"}),
            named(small_distilbert(), {all_targets}));
  EXPECT_EQ(named(small_electra(), {all_targets}).size(), 19u);
  EXPECT_EQ(named(small_electra(), {"embeddings_project"}),
            std::set<std::string>{"electra.embeddings_project"});
  EXPECT_EQ(adapted(graph_of({small_bloom(), {3, 6, false, 0, {"dense"}}})).size(), 3u);
  EXPECT_EQ(
      adapted(graph_of(
          {small_bloom(), {3, 6, false, 0, {"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}}})),
      adapted(graph_of({small_bloom(), adapters_of_all()})));
  Adapters a = adapters_of_all();
  a.targets = {"pre_classifier"};
  const Status refused = add(classifier_of(small_distilbert()), a);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("\"pre_classifier\"; there are k_lin, lin1, "), std::string::npos)
      << refused.error().message;
}

TEST(Adapters, OfMissingBlocksAreRefused) {
  Adapters a = adapters_of_all();
  a.targets = {"model.layers.7.mlp.up_proj"};
  EXPECT_NE(add(small_llama(), a).error().message.find("no block of the model has"), std::string::npos);
}

TEST(Adapters, InvalidSettingsAreRefused) {
  const auto refused = [&](const Adapters& a, const char* part) {
    const Status status = add(small_llama(), a);
    ASSERT_FALSE(status) << part;
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
  };
  const std::vector<std::string> all{all_targets};
  refused({largest_rank + 1, 8, false, 0, all}, "rank");
  refused({8, 0, false, 0, all}, "alpha");
  refused({8, -1, false, 0, all}, "alpha");
  refused({8, std::nan(""), false, 0, all}, "alpha");
  refused({8, 8, false, 1, all}, "dropout");
  refused({8, 8, false, 0, {}}, "targets");
}

TEST(Adapters, AreScaledByAlphaOverTheRankOrItsRoot) {
  EXPECT_EQ((Adapters{8, 16, false, 0, {}}).scale(), 2);
  EXPECT_EQ((Adapters{16, 16, true, 0, {}}).scale(), 4);
  // A scale of 1 multiplies nothing.
  for (const double alpha : {3.0, 6.0}) {
    const Graph g = graph_of({small_llama(), {3, alpha, false, 0, {all_targets}}});
    const auto count =
        std::count_if(g.ops.begin(), g.ops.end(), [](const Op& op) { return op.kind == OpKind::scale; });
    EXPECT_EQ(count, alpha == 3 ? 0 : 3 * 4);
  }
}

TEST(Adapters, GroupsNameThemAndNothingElseIsTrained) {
  const ModelConfig config = config_of({small_llama(), adapters_of_all()});
  Numerics n;
  n.groups = {
      {"adapters", {}, 0.5, {}, {}}, {"*.lora_B.weight", {}, 8.0, 0.0, {}}, {"blocks.0", true, {}, {}, {}}};
  ASSERT_TRUE(check_numerics(config, n));
  const Graph g = build_model(config, 33, n);
  for (const Tensor& t : g.tensors) {
    if (t.adapter_of < 0) continue;
    EXPECT_EQ(t.rate, t.name.ends_with("lora_B.weight") ? 8 : 0.5);
    EXPECT_EQ(t.trainable, t.name.find("layers.0.") == std::string::npos) << t.name;
  }
  n.groups = {{"norms", false, {}, {}, {}}};
  const Status status = check_numerics(config, n);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("only adapters are trained"), std::string::npos)
      << status.error().message;
  n.groups = {{"norms", {}, 0.5, {}, {}}};
  EXPECT_FALSE(check_numerics(config, n));
  n.groups = {{"norm", true, {}, {}, {}}};
  EXPECT_NE(check_numerics(config, n).error().message.find("matrices, adapters, norms"), std::string::npos);
  n.groups = {{"adapters", {}, 0.5, {}, {}}};
  EXPECT_FALSE(check_numerics(config_of(small_llama()), n));
}

// The adapter's output takes over the base's memory. B's gradient is in fp32 even if those of matrices are
// not.
TEST(Adapters, TakeNoWideMemoryOfTheirOwn) {
  Numerics n;
  n.precision = Precision::bf16;
  n.gradients = Gradients::bf16;
  for (const SmallModel& model :
       {SmallModel{small_gpt2(), adapters_of_all(0.1)}, SmallModel{small_llama(), adapters_of_some()}}) {
    const Graph g = build_model(config_of(model), 33, n);
    for (const ParameterGradient& p : g.gradients) EXPECT_EQ(g.at(p.gradient).format, Format::f32);
    for (const uint32_t saved : {0u, ~0u}) {
      const Programs programs = make_programs(g, uniform_decisions(g, saved), 6, 2, 64);
      int adapters = 0;
      for (const Program* p : {&programs.micro_first, &programs.evaluate})
        for (const Instruction& i : p->instructions) {
          if (i.kind != OpKind::adapter) continue;
          const Operand *base = &p->operands[i.first_operand], *y = base + i.inputs;
          EXPECT_EQ(base->buffer, y->buffer);
          ++adapters;
        }
      EXPECT_GT(adapters, 0);
    }
  }
}

}  // namespace
}  // namespace stw
