// The lives of tensors that pass segments, and the reads that the builder refuses.
#include "planner/graph/segment_lives.h"

#include <functional>

#include "planner/graph/offload.h"
#include "planner/plan/plan.h"
#include "planner/program/verify.h"
#include "planner/search/segment_class.h"
#include "tests/planner/branching_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

// Segments: 0 is the embedding, 1 to 4 are the blocks, 5 is the final norm and 6 the head.
TEST(SegmentLives, ALongSkipIsKeptOnceAndItsGradientPasses) {
  const Graph g = branching_graph(Branching::long_skip);
  const std::vector<SegmentLives> lives = segment_lives(g);
  const int shared = g.segments[1].output;
  EXPECT_EQ(g.segments[4].inputs, (std::vector<int>{g.segments[3].output, shared}));
  for (size_t s = 0; s + 1 < lives.size(); ++s) EXPECT_TRUE(lives[s].keeps_output) << s;
  // Block 0 keeps the output, so that no segment but its readers sees it. Its life ends in block 1.
  const auto sees = [&](size_t s) {
    return std::find_if(lives[s].outputs.begin(), lives[s].outputs.end(),
                        [&](const OutsideOutput& o) { return o.tensor == shared; });
  };
  EXPECT_EQ(*sees(2), (OutsideOutput{shared, true, true, true, false}));
  EXPECT_EQ(sees(3), lives[3].outputs.end());
  EXPECT_EQ(*sees(4), (OutsideOutput{shared, true, true, true, true}));
  // Its gradient passes block 2, in addition to the gradient that block 2 reads, and is added to in block 1.
  size_t passing = 0;
  for (const OutsideGradient& gradient : lives[3].gradients) passing += gradient.enters && gradient.leaves;
  EXPECT_EQ(passing, 1u);
  EXPECT_EQ(lives[2].gradients.size(), 3u);
  EXPECT_EQ(lives[1].gradients.size(), 2u);
  // The blocks differ in what passes them.
  const std::vector<int> classes = segment_classes(g);
  EXPECT_NE(classes[2], classes[3]);
}

// The decoder's embedding comes between the encoder and the first segment that reads its output. Therefore
// the output is not alive in the backward pass of that embedding, and the encoder does not keep it.
TEST(SegmentLives, AnEncodersOutputLivesUpToItsFirstReader) {
  const Graph g = branching_graph(Branching::encoder_decoder);
  const std::vector<SegmentLives> lives = segment_lives(g);
  const int shared = g.segments[2].output;
  EXPECT_FALSE(lives[2].keeps_output);
  EXPECT_EQ(lives[3].outputs, (std::vector<OutsideOutput>{{shared, false, true, false, false}}));
  EXPECT_EQ(lives[4].outputs[0], (OutsideOutput{shared, false, true, true, false}));
  for (const size_t s : {5u, 6u, 7u, 8u})
    EXPECT_EQ(lives[s].outputs[0], (OutsideOutput{shared, false, true, true, true})) << s;
}

// Segments do not change the ops of gradients: a sum has the same terms in the same order.
TEST(SegmentLives, GradientsAddUpAsInOneSegment) {
  for (const Branching branching : all_branchings) {
    const Graph g = branching_graph(branching), whole = branching_graph(branching, {}, true);
    ASSERT_EQ(g.gradient_ops.size(), whole.gradient_ops.size());
    for (size_t i = 0; i < g.gradient_ops.size(); ++i) {
      EXPECT_EQ(g.gradient_ops[i].kind, whole.gradient_ops[i].kind);
      EXPECT_EQ(g.gradient_ops[i].inputs, whole.gradient_ops[i].inputs);
      EXPECT_EQ(g.gradient_ops[i].outputs, whole.gradient_ops[i].outputs);
    }
  }
}

TEST(SegmentLives, OnlyInputsOfOneReaderGoToHostMemory) {
  const Graph g = branching_graph(Branching::u_shape);
  const std::vector<int> inputs = inputs_for_host(g);
  Offload all;
  all.parts.fill(g.blocks());
  const std::vector<bool> is_on_host = on_host(g, all);
  for (size_t s = 1; s <= 5; ++s) {
    const bool is_shared = s == 2 || s == 3;  // the outputs of blocks 0 and 1
    EXPECT_EQ(inputs[s], is_shared ? -1 : g.segments[s].inputs[0]) << s;
    EXPECT_EQ(is_on_host[g.segments[s].inputs[0]], !is_shared) << s;
    EXPECT_EQ(input_on_host(g, g.segments[s], all), inputs[s]) << s;
  }
}

// Three blocks and a head. `change` may replace what block 2 reads: its inputs `x` and `others`, and a tensor
// that it adds. `inner`: a tensor inside of block 0.
struct Reads {
  int x, inner, skip;
  std::vector<int> others{};
  int added = -1;
};
std::string message_of(const std::function<void(Reads&)>& change, SegmentKind kind = SegmentKind::block) {
  GraphBuilder b("refused", 8, 16, Format::f32);
  const auto product = [&](int x, const char* name) {
    return b.linear(x, {{b.parameter(name, {16, 16}, Initializer::normal, 0.02f)}}, false, name);
  };
  b.begin(SegmentKind::embedding, -1, -1);
  int x = b.embedding(b.parameter("table", {16, 16}, Initializer::normal, 0.02f), -1, "embedding");
  b.end(x);
  Reads r{};
  for (int block = 0; block < 2; ++block) {
    b.begin(SegmentKind::block, block, x);
    const int inner = b.activation(product(x, "up"), Activation::gelu_tanh, "gelu");
    x = product(inner, "down");
    b.end(x);
    if (block == 0) r.inner = inner, r.skip = x;
  }
  r.x = x;
  change(r);
  b.begin(kind, 2, r.x, r.others);
  x = r.x;
  if (r.added >= 0) x = b.add(r.added, x, "sum");  // no part of the product in block 1
  x = product(x, "last");
  if (kind != SegmentKind::head) {
    b.end(x);
    b.begin(SegmentKind::head, -1, x);
    x = product(x, "logits");
  }
  b.cross_entropy(x);
  const auto graph = b.finish();
  return graph ? "" : graph.error().message;
}

TEST(GraphBuilder, RefusesReadsThatAreNotDeclared) {
  EXPECT_EQ(message_of([](Reads& r) { r.others = {r.skip}, r.added = r.skip; }), "");
  EXPECT_EQ(message_of([](Reads& r) { r.added = r.skip; }),
            "block 2: add reads down of block 0, which is not an input of the segment");
  EXPECT_EQ(message_of([](Reads& r) { r.added = r.inner; }),
            "block 2: add reads gelu of block 0, which is not an input of the segment");
  EXPECT_EQ(message_of([](Reads& r) { r.others = {r.inner}, r.added = r.inner; }),
            "block 2: its input gelu is not the output of an earlier segment");
  EXPECT_EQ(message_of([](Reads& r) { r.others = {r.x}, r.added = r.skip; }),
            "block 2: its input down is given twice");
  EXPECT_EQ(message_of([](Reads& r) { r.others = {r.skip}; }), "block 2: no op reads its input down");
  EXPECT_EQ(message_of([](Reads& r) { r.x = r.skip; }), "block 1: no segment reads its output down");
  EXPECT_EQ(message_of([](Reads& r) { r.others = {r.skip}, r.added = r.skip; }, SegmentKind::head),
            "head: its input down is not the output of the segment before");
}

// A residual of the product of another segment stays in its own segment.
TEST(GraphBuilder, AddsToNoProductOfAnotherSegment) {
  GraphBuilder b("residual", 8, 16, Format::f32);
  const auto matrix = [&](const char* name) {
    return std::vector<LinearWeights>{{b.parameter(name, {16, 16}, Initializer::normal, 0.02f)}};
  };
  b.begin(SegmentKind::embedding, -1, -1);
  const int first = b.embedding(matrix("table")[0].weight, -1, "embedding");
  b.end(first);
  b.begin(SegmentKind::block, 0, first);
  const int product = b.linear(first, matrix("first"), false, "product");
  b.end(product);
  b.begin(SegmentKind::block, 1, product, {first});
  const int sum = b.add(first, product, "sum");
  EXPECT_NE(sum, product);
  b.end(sum);
  b.begin(SegmentKind::head, -1, sum);
  b.cross_entropy(b.linear(sum, matrix("head"), false, "logits"));
  const auto g = b.finish();
  ASSERT_TRUE(g) << g.error().message;
  EXPECT_EQ(g->segments[2].op_count, 1);
  EXPECT_EQ(residual_of(g->ops[g->segments[1].first_op]), -1);
}

// A buffer that a stage stores in host memory keeps its contents to the end of the stage: the last op of the
// stage does not write over it.
TEST(SegmentLives, NoOpWritesOverAnInputThatIsStored) {
  for (const Branching branching : all_branchings) {
    const Graph g = branching_graph(branching);
    Decisions d;
    d.micro_batch = 2;
    for (const Segment& s : g.segments) d.saved.push_back(s.kind == SegmentKind::block ? 0 : ~0u);
    d.offload.parts.fill(g.blocks());
    d.offload.overlap = true;
    const Programs programs = make_programs(g, d, 5, 1, 64);
    for (const Program* p : programs.all()) {
      const Status status = verify(g, programs.arena, *p, programs.arena_bytes);
      EXPECT_TRUE(status) << status.error().message;
    }
  }
}

}  // namespace
}  // namespace stw
