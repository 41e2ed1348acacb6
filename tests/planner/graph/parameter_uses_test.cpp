// Tests parameters that several ops use: each use has a gradient, and these are added up in op order before
// norm and update.
#include <algorithm>
#include <functional>
#include <set>

#include "planner/graph/optimizer.h"
#include "planner/plan/plan_file.h"
#include "planner/program/verify.h"
#include "planner/search/segment_class.h"
#include "tests/planner/shared_graphs.h"
#include "tests/planner/small_graphs.h"

namespace stw::parameter_uses_test {
namespace {

using namespace testing_tools;

constexpr int64_t global_batch = 5;

int parameter_of(const Graph& g, const std::string& name) {
  for (int t = 0; t < static_cast<int>(g.tensors.size()); ++t)
    if (g.at(t).role == Role::parameter && g.at(t).name == name) return t;
  ADD_FAILURE() << "no parameter " << name;
  return -1;
}

std::vector<int> gradients_of(const Graph& g, int parameter) {
  std::vector<int> list;
  for (const ParameterGradient& p : g.gradients)
    if (p.parameter == parameter) list.push_back(p.gradient);
  return list;
}

std::vector<int> sums_in(const Graph& g) {  // indices in update_ops
  std::vector<int> list;
  for (int k = 0; k < static_cast<int>(g.update_ops.size()); ++k)
    if (g.update_ops[k].kind == OpKind::gradient_sum) list.push_back(k);
  return list;
}

// Judges the programs of a step, in all variants.
void expect_good(const Graph& g, const Offload& offload = {}) {
  for (const uint32_t saved : {0u, ~0u, 5u}) {
    Decisions d = uniform_decisions(g, saved, g.fuses_updates() ? global_batch : 2, 2);
    d.offload = offload;
    const Programs programs = make_programs(g, d, global_batch, 2, 64);
    std::vector<const Program*> step{&programs.update};
    if (g.fuses_updates()) step.push_back(&programs.micro_first);
    const Status updated = verify_updates(g, step);
    EXPECT_TRUE(updated) << updated.error().message;
    for (const Program* p : programs.all()) {
      const Status status = verify(g, programs.arena, *p, programs.arena_bytes);
      EXPECT_TRUE(status) << status.error().message;
    }
  }
}

TEST(ParameterUses, OneAndTwoNeedNoSum) {
  for (const Graph& g : small_graphs()) EXPECT_TRUE(sums_in(g).empty());
  const Graph g = shared_graph({.blocks = 2});
  EXPECT_TRUE(sums_in(g).empty());
  for (const char* name : {"table", "matrix", "bias", "norm"}) {
    const std::vector<int> gradients = gradients_of(g, parameter_of(g, name));
    ASSERT_EQ(gradients.size(), 2u) << name;
    EXPECT_EQ(std::count_if(g.update_ops.begin(), g.update_ops.end(),
                            [&](const Op& op) { return op.inputs == gradients; }),
              2)
        << name;
  }
  expect_good(g);
}

TEST(ParameterUses, MoreAreAddedUpInOpOrderBeforeTheNorm) {
  for (const SharedStack& s :
       {SharedStack{.blocks = 3}, SharedStack{.blocks = 12}, SharedStack{.blocks = 1, .products = 3},
        SharedStack{.blocks = 4, .products = 3}, SharedStack{.blocks = 40}, SharedStack{.blocks = 32},
        SharedStack{.blocks = 33}, SharedStack{.blocks = 63}}) {
    const Graph g = shared_graph(s);
    const int matrix = parameter_of(g, "matrix");
    const std::vector<int> gradients = gradients_of(g, matrix);
    ASSERT_EQ(gradients.size(), static_cast<size_t>(s.blocks * s.products));
    // The order of the forward ops. Later ones compute their gradient earlier.
    std::vector<int> made;
    for (const Op& op : g.gradient_ops)
      for (int t : op.outputs)
        if (std::count(gradients.begin(), gradients.end(), t)) made.insert(made.begin(), t);
    EXPECT_EQ(made, gradients);
    for (size_t k = 0; k < gradients.size(); ++k) EXPECT_EQ(g.at(gradients[k]).ordinal, static_cast<int>(k));
    std::vector<int> added{gradients[0]};
    for (const int k : sums_in(g)) {
      const Op& op = g.update_ops[k];
      if (op.outputs[0] != gradients[0]) continue;
      EXPECT_LE(op.inputs.size(), size_t{kernels::most_terms});
      EXPECT_EQ(op.inputs[0], gradients[0]);
      added.insert(added.end(), op.inputs.begin() + 1, op.inputs.end());
      EXPECT_LT(k, g.first_square_sum() - g.first_update_op());
    }
    EXPECT_EQ(added, gradients);
    const std::vector<int> alone{gradients[0], -1};
    EXPECT_EQ(std::count_if(g.update_ops.begin(), g.update_ops.end(),
                            [&](const Op& op) { return op.inputs == alone; }),
              2);
    expect_good(g);
  }
}

TEST(ParameterUses, EveryNumericsAndOffloadHasAProgram) {
  const std::vector<SharedStack> stacks{
      {.blocks = 3}, {.blocks = 3, .products = 3, .apart = 1}, {.blocks = 12, .width = 64}};
  for (const SharedStack& s : stacks)
    for (const Optimizer optimizer :
         {Optimizer::adamw, Optimizer::sgd, Optimizer::lion, Optimizer::muon, Optimizer::adafactor})
      for (const bool fused : {false, true})
        for (const int bits : {8, 32}) {
          Numerics n;
          n.precision = bits == 8 ? Precision::bf16 : Precision::fp32;
          n.optimizer = optimizer;
          n.state_bits = bits;
          n.fused_update = fused;
          if (bits == 8 && !fused) n.gradients = Gradients::bf16;
          const Graph g = shared_graph(s, n);
          EXPECT_EQ(g.at(gradients_of(g, parameter_of(g, "matrix"))[2]).format,
                    n.gradients == Gradients::bf16 ? Format::bf16 : Format::f32);
          expect_good(g);
          if (fused) {  // a parameter of one op is updated early, the sums at the end
            EXPECT_TRUE(std::any_of(g.updates_after.begin(), g.updates_after.end(),
                                    [](const auto& list) { return !list.empty(); }) ||
                        s.apart < 0);
            EXPECT_EQ(g.at(gradients_of(g, parameter_of(g, "matrix"))[0]).role, Role::gradient);
            continue;
          }
          for (const bool overlap : {false, true}) {
            Offload offload;
            offload.parts = {g.blocks() + 1, bits == 8 ? g.blocks() + 1 : 0, g.blocks(), g.blocks(),
                             g.blocks()};
            offload.overlap = overlap;
            offload.slice = 256;
            expect_good(g, offload);
          }
        }
}

// The judge finds a gradient that is left out, or comes in another order, or too late.
TEST(ParameterUses, TheJudgeFindsEveryMistake) {
  for (const int blocks : {3, 40}) {
    const Graph good = shared_graph({.blocks = blocks});
    const Arena arena = make_arena(good, 64);
    const auto message_of = [&](const Graph& g, const std::function<void(Program&)>& change = {}) {
      Program update = build_update(g, arena, 1);
      if (change) change(update);
      const Status status = verify_updates(g, {&update});
      return status ? std::string() : status.error().message;
    };
    EXPECT_EQ(message_of(good), "");
    for (const int k : sums_in(good)) {
      Graph g = good;
      std::vector<int>& terms = g.update_ops[k].inputs;
      const std::string expected =
          "the gradients of its " + std::to_string(blocks) + " uses are not added up once";
      terms.pop_back();
      EXPECT_NE(message_of(g).find(expected), std::string::npos) << message_of(g);
      terms = good.update_ops[k].inputs;
      std::swap(terms[1], terms[2]);
      EXPECT_NE(message_of(g).find(expected), std::string::npos);
      terms = good.update_ops[k].inputs;
      terms.push_back(terms[1]);
      EXPECT_NE(message_of(g).find(expected), std::string::npos);
    }
    Graph two = good;  // as if the update could add two of them itself
    std::erase_if(two.update_ops, [](const Op& op) { return op.kind == OpKind::gradient_sum; });
    EXPECT_NE(message_of(two).find("are not added up once"), std::string::npos);
    const Program update = build_update(good, arena, 1);
    for (size_t n = 0; n < update.instructions.size(); ++n) {
      if (update.instructions[n].kind != OpKind::gradient_sum) continue;
      const auto at = [&](Program& p) { return p.instructions.begin() + static_cast<std::ptrdiff_t>(n); };
      EXPECT_NE(message_of(good, [&](Program& p) { p.instructions.erase(at(p)); }).find("is read before"),
                std::string::npos);
      EXPECT_NE(message_of(good, [&](Program& p) { std::rotate(at(p), at(p) + 1, p.instructions.end()); }),
                "");
      EXPECT_NE(message_of(good, [&](Program& p) { p.instructions.insert(at(p), update.instructions[n]); })
                    .find("is not added up once"),
                std::string::npos);
      EXPECT_NE(message_of(good, [&](Program& p) { at(p)->elements = 16; }).find("is not added up once"),
                std::string::npos);
    }
  }
}

// Blocks that share all parameters are equal, and so are blocks that share none. The two differ in kind,
// because unshared weights may go to host memory.
TEST(ParameterUses, BlocksThatShareAreAlike) {
  const auto classes = [](const SharedStack& s) {
    std::vector<int> all = segment_classes(shared_graph(s));
    return std::vector<int>(all.begin() + 1, all.end() - 2);
  };
  EXPECT_EQ(classes({.blocks = 4}), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(classes({.blocks = 4, .shares = false}), (std::vector<int>{1, 1, 1, 1}));
  EXPECT_EQ(classes({.blocks = 4, .apart = 2}), (std::vector<int>{1, 1, 2, 1}));
  const Graph g = shared_graph({.blocks = 3, .products = 3, .apart = 1});
  Offload offload;
  offload.parts = {3, 3, 3, 3, 0};
  const Arena arena = make_arena(g, 64, offload);
  EXPECT_FALSE(arena.on_host(parameter_of(g, "matrix")));
  EXPECT_TRUE(arena.on_host(parameter_of(g, "matrix#3")));
  for (const int t : gradients_of(g, parameter_of(g, "matrix"))) EXPECT_FALSE(arena.on_host(t));
  // All uses are in one block, and there are more than the update adds up. Their sum is computed in the
  // arena.
  const Graph within = shared_graph({.blocks = 1, .products = 3});
  const Arena of_one = make_arena(within, 64, [] {
    Offload o;
    o.parts = {1, 1, 1, 1, 0};
    return o;
  }());
  EXPECT_TRUE(of_one.on_host(parameter_of(within, "matrix")));
  for (const int t : gradients_of(within, parameter_of(within, "matrix"))) EXPECT_FALSE(of_one.on_host(t));
}

TEST(ParameterUses, PatternsNameWhatABlockUses) {
  const Graph g = shared_graph({.blocks = 4, .apart = 2});
  const std::vector<ParameterUse> uses = parameter_uses(g);
  const auto named = [&](const char* pattern) {
    std::set<std::string> names;
    const auto all = matches(g, uses, pattern);
    EXPECT_TRUE(all);
    for (size_t t = 0; t < all->size(); ++t)
      if ((*all)[t]) names.insert(g.tensors[t].name);
    return names;
  };
  const std::set<std::string> shared{"bias", "matrix", "norm", "norm_after"},
      own{"bias#2", "matrix#2", "norm#2", "norm_after#2"};
  EXPECT_EQ(named("blocks.2"), own);
  EXPECT_EQ(named("blocks.1"), shared);
  EXPECT_EQ(named("blocks.3"), shared);
  EXPECT_EQ(named("blocks.2-3").size(), 8u);
  // A frozen parameter has neither gradients nor sums.
  Numerics n;
  n.groups = {{"blocks.0", true, {}, {}, {}}};
  const Graph frozen = shared_graph({.blocks = 4, .apart = 2}, n);
  EXPECT_TRUE(sums_in(frozen).empty());
  EXPECT_TRUE(gradients_of(frozen, parameter_of(frozen, "matrix")).empty());
  EXPECT_EQ(gradients_of(frozen, parameter_of(frozen, "matrix#2")).size(), 1u);
  expect_good(frozen);
}

// A module that runs several times has one adapter, as in PEFT. Its factors are used as often as the matrix,
// which may be codes.
TEST(ParameterUses, AMatrixHasOneAdapter) {
  for (const Quantize quantize : {Quantize::none, Quantize::nf4, Quantize::int8}) {
    Numerics n;
    n.precision = Precision::bf16;
    n.quantize = quantize;
    SharedStack s{.blocks = 3, .products = 2};
    s.adapters.rank = 4, s.adapters.alpha = 8, s.adapters.targets = {all_targets}, s.adapters.dropout = 0.1;
    const Graph g = shared_graph(s, n);
    std::set<int> factors, numbers;
    for (const ParameterGradient& p : g.gradients) factors.insert(p.parameter);
    EXPECT_EQ(factors.size(), 2u);
    for (const int t : factors) {
      EXPECT_GE(g.at(t).adapter_of, 0);
      EXPECT_EQ(gradients_of(g, t).size(), 6u);
      numbers.insert(g.at(t).ordinal);
    }
    EXPECT_EQ(numbers.size(), 2u);
    EXPECT_EQ(sums_in(g).size(), 2u);
    EXPECT_EQ(is_quantized(g.at(parameter_of(g, "matrix")).format), quantize != Quantize::none);
    EXPECT_TRUE(gradients_of(g, parameter_of(g, "matrix")).empty());
    expect_good(g);
  }
}

TEST(ParameterUses, TheHashOfAModelDependsOnWhichOpUsesAParameter) {
  EXPECT_NE(describe(shared_graph({.blocks = 4})).find(" again matrix"), std::string::npos);
  std::set<std::string> texts;
  // The same parameters and ops; in one variant, two ops exchange parameters.
  for (const int swapped : {0, 1}) {
    GraphBuilder b("two", 8, 24, Format::f32);
    b.begin(SegmentKind::embedding, -1, -1);
    int x = b.embedding(b.parameter("table", {24, 16}, Initializer::normal, 0.02f), -1, "embedding");
    b.end(x);
    const int first = b.parameter("first", {16, 16}, Initializer::normal, 0.02f),
              second = b.parameter("second", {16, 16}, Initializer::normal, 0.02f);
    for (int block = 0; block < 4; ++block) {
      b.begin(SegmentKind::block, block, x);
      x = b.linear(x, {{block == 0 || block == 2 + swapped ? first : second, -1}}, false, "out");
      b.end(x);
    }
    b.begin(SegmentKind::head, -1, x);
    b.cross_entropy(
        b.linear(x, {{b.parameter("head", {24, 16}, Initializer::normal, 0.02f), -1}}, false, "logits"));
    texts.insert(describe(*b.finish()));
  }
  EXPECT_EQ(texts.size(), 2u);
  for (const std::string& config : small_models())
    EXPECT_EQ(describe(graph_of(config)).find(" again "), std::string::npos);
}

// Plans of shared blocks: their programs have the bytes that the search counted, at every budget.
TEST(ParameterUses, PlansHaveTheBytesThatTheSearchCounts) {
  for (const bool offloads : {false, true}) {
    Request r;
    r.global_batch = 6, r.sequence = 40, r.threads = 2, r.memory_bytes = uint64_t{1} << 30;
    if (offloads) r.host_bytes = uint64_t{1} << 30;
    const GraphSource source = [](const Numerics& n) {
      return build_model(config_of(classifier_of(small_albert("0.1", 12))), 40, n);
    };
    const auto loose = search(source, r);
    ASSERT_TRUE(loose) << loose.error().message;
    for (int part = 0; part <= 3; ++part) {
      r.memory_bytes =
          loose->minimum_bytes + (loose->bytes.peak - std::min(loose->bytes.peak, loose->minimum_bytes)) *
                                     static_cast<uint64_t>(part) / 3;
      const auto plan = search(source, r);
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_TRUE(plan->fits);
      EXPECT_LE(plan->bytes.peak, r.memory_bytes);
      const Graph g = source(plan->numerics);
      const auto programs = realize(g, *plan);
      EXPECT_TRUE(programs) << programs.error().message;
    }
  }
}

}  // namespace
}  // namespace stw::parameter_uses_test
