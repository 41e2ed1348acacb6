// Shapes of operands: those of all models follow from the rules, and what does not fit is an error.
#include "planner/graph/infer.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "planner/graph/op_table.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

// Checks the operands of all ops of a graph, and that outputs have the inferred shapes.
Status check_shapes(const Graph& graph) {
  for (const std::vector<Op>* list : {&graph.ops, &graph.gradient_ops, &graph.update_ops, &graph.evaluate_ops,
                                      &graph.generate_ops, &graph.transfer_ops})
    for (const Op& op : *list) {
      Inference inference(graph, op, op.outputs.size());
      STW_TRY(inference.run());
      for (size_t k = 0; k < op.outputs.size(); ++k) {
        const Shape& inferred = inference.outputs[k].shape;
        if (op.outputs[k] < 0 || inferred.rank == 0) continue;
        const Tensor& output = graph.at(op.outputs[k]);
        if (output.shape != inferred)
          return inference.fail(std::string(output_row_of(op.kind, k).name) + " (" + output.name +
                                ") has the shape " + to_text(output.shape) + ", expected " +
                                to_text(inferred));
      }
    }
  return ok();
}

TEST(Operands, HaveNamesThatTheirOpsDoNotRepeat) {
  for (const Operands& row : operand_table) {
    std::set<std::string> names;
    for (const auto* list : {&row.inputs, &row.outputs})
      for (const OperandRow& operand : *list)
        if (operand.name) { EXPECT_TRUE(names.insert(operand.name).second) << operand.name; }
    for (const OperandRow& operand : row.parts)
      if (operand.name) { EXPECT_TRUE(names.insert(operand.name).second) << operand.name; }
    const auto check_like = [&](const OperandRow& operand) {
      if (operand.like) {
        EXPECT_TRUE(names.count(operand.like)) << operand.name << " like " << operand.like;
      }
    };
    for (const auto* list : {&row.inputs, &row.outputs})
      std::for_each(list->begin(), list->end(), check_like);
  }
}

// Every op of every list has its operands, and every output has the shape that the rules give.
TEST(Inference, GivesTheShapesOfAllModels) {
  Numerics numerics;
  numerics.kernels = Kernels::tensor;  // with fused ops
  numerics.precision = Precision::bf16;
  const std::vector<Graph> graphs = graphs_with_all_ops(small_gpt2(), numerics);
  size_t ops = 0;
  for (const Graph& g : graphs) {
    const Status status = check_shapes(g);
    EXPECT_TRUE(status) << g.architecture << ": " << (status ? "" : status.error().message);
    ops += g.ops.size() + g.gradient_ops.size();
  }
  EXPECT_GT(ops, 500u);
}

// One wrong shape, or one missing operand, of any op is found.
TEST(Inference, FindsAnyOutputOfAnotherShape) {
  for (Graph g : small_graphs()) {
    for (std::vector<Op>* list : {&g.ops, &g.gradient_ops})
      for (Op& op : *list) {
        for (size_t k = 0; k < op.outputs.size(); ++k) {
          const Operands& row = operands_of(op.kind);
          // A table's gradient has as many rows as the table, which is not an operand.
          if (op.outputs[k] < 0 || row.kind == OpKind::embedding_gradient ||
              row.kind == OpKind::position_gradient)
            continue;
          Shape& shape = g.tensors[op.outputs[k]].shape;
          const Shape good = shape;
          shape.dims[shape.rank - 1] += 1;
          EXPECT_FALSE(check_shapes(g)) << op_row(op.kind).name;
          shape = good;
        }
        std::vector<int> good = op.inputs;
        for (size_t k = 0; k < good.size(); ++k) {
          if (good[k] < 0 || input_row_of(op.kind, k).presence == Presence::optional) continue;
          op.inputs[k] = -1;
          EXPECT_FALSE(check_shapes(g))
              << op_row(op.kind).name << " without " << input_row_of(op.kind, k).name;
          op.inputs = good;
        }
      }
  }
}

// The message of a model that `build` builds on top of an embedding of 6 tokens, 8 features.
std::string error_of(const std::function<int(GraphBuilder&, int)>& build, GraphInputs inputs = {}) {
  GraphBuilder b("test", 6, 16, Format::f32, inputs);
  b.begin(SegmentKind::embedding, -1, -1);
  const int x = b.embedding(b.parameter("table", {16, 8}, Initializer::normal, 0.02f), -1, "embedding");
  b.end(x);
  b.begin(SegmentKind::head, -1, x);
  b.cross_entropy(build(b, x));
  const Result<Graph> graph = b.finish();
  return graph ? "" : graph.error().message;
}

TEST(Inference, SaysBothShapes) {
  const auto matrix = [](GraphBuilder& b, const char* name, Shape shape) {
    return b.parameter(name, shape, Initializer::normal, 0.02f);
  };
  const auto head = [&](GraphBuilder& b, int x) {
    return b.linear(x, {{matrix(b, "head", {16, 8}), -1}}, false, "logits");
  };
  EXPECT_EQ(error_of(head), "");
  EXPECT_EQ(
      error_of([&](GraphBuilder& b, int x) {
        return b.linear(x, {{matrix(b, "wide", {16, 9}), -1}}, false, "logits");
      }),
      "linear: weight (wide) with the shape (16, 9) does not fit x (embedding) with the shape (6, 8): it "
      "takes 9 features");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) {
              return b.linear(x, {{matrix(b, "head", {16, 8}), matrix(b, "bias", {15})}}, false, "logits");
            }),
            "linear: bias (bias) with the shape (15) does not fit weight (head) with the shape (16, 8): "
            "expected (16)");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) {
              return head(b, b.norm(x, matrix(b, "scale", {7}), -1, 1e-5f, false, "norm"));
            }),
            "norm: weight (scale) with the shape (7) does not fit x (embedding) with the shape (6, 8): "
            "expected (8)");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) {
              const int wide = b.linear(x, {{matrix(b, "up", {12, 8}), -1}}, false, "up");
              return head(b, b.add(x, b.scale(wide, 2, "scaled"), "sum"));
            }),
            "add: b (scaled) with the shape (6, 12) does not fit a with the shape (6, 8)");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) {  // the residual that becomes a part of a product
              return head(b, b.add(x, b.linear(x, {{matrix(b, "up", {12, 8}), -1}}, false, "up"), "sum"));
            }),
            "linear: residual (embedding) with the shape (6, 8) does not fit y with the shape (6, 12)");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) { return head(b, b.attention(x, 2, 1, 3, 1, 0, "out")); }),
            "attention: qkv (embedding) with the shape (6, 8) does not fit 2 query heads, 1 key-value heads "
            "and a head size of 3: expected (6, 12)");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) { return head(b, b.attention(x, 3, 2, 2, 1, 0, "out")); }),
            "attention: cannot have 3 query heads, 2 key-value heads and a head size of 2");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) {
              const int odd = b.linear(x, {{matrix(b, "odd", {7, 8}), -1}}, false, "odd");
              return head(b, b.gated(odd, "gated"));
            }),
            "swiglu: x (odd) with the shape (6, 7) cannot be divided into gate and up");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) {
              return b.linear(x, {{matrix(b, "head", {15, 8}), -1}}, false, "logits");
            }),
            "cross_entropy: logits (logits) with the shape (6, 15) does not fit targets of 16 classes: "
            "expected (6, 16)");
  EXPECT_EQ(error_of([&](GraphBuilder& b, int x) {
              matrix(b, "head", {16, 4});
              return head(b, x);
            }),
            "head: one parameter has the shapes (16, 4) and (16, 8)");
  GraphInputs documents;
  documents.positions = true;
  EXPECT_EQ(error_of(
                [&](GraphBuilder& b, int x) {
                  const int qkv = b.linear(x, {{matrix(b, "qkv", {24, 8}), -1}}, false, "qkv");
                  return head(b, b.attention(qkv, 1, 1, 8, 1, 0, "out", {.causal = false}));
                },
                documents),
            "attention: attention to both sides inside documents needs positions and following, or neither");
}

TEST(Inference, KeepsTheFirstError) {
  GraphBuilder b("test", 6, 16, Format::f32);
  b.begin(SegmentKind::embedding, -1, -1);
  const int x = b.embedding(b.parameter("table", {16, 8}, Initializer::normal, 0.02f), -1, "embedding");
  b.norm(x, b.parameter("first", {7}, Initializer::ones), -1, 1e-5f, false, "norm");
  b.norm(x, b.parameter("second", {9}, Initializer::ones), -1, 1e-5f, false, "norm");
  const Result<Graph> graph = b.finish();
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, Code::unsupported_shape);
  EXPECT_NE(graph.error().message.find("first"), std::string::npos) << graph.error().message;
}

}  // namespace
}  // namespace stw
