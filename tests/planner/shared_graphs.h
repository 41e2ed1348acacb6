// Stacks of blocks that use the same parameters, once or more often in each block.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "planner/graph/adapters.h"
#include "planner/program/complete.h"

namespace stw::testing_tools {

struct SharedStack {
  int blocks = 3;
  int products = 1;  // of the shared matrix in each block
  // False: every use has its own copy. The copy's name is that of the parameter, "#", and the number of the
  // use.
  bool shares = true;
  int apart = -1;  // a block that shares no parameter
  Adapters adapters = {};
  int64_t sequence = 20, width = 16, vocabulary = 24;
};

// Blocks of a norm, products with "matrix" and its "bias", GELU, a residual and another norm. The head reads
// the table of tokens again.
inline Graph forward_graph_of(const SharedStack& s, Format compute = Format::f32) {
  GraphBuilder b("shared", s.sequence, s.vocabulary, compute);
  const auto parameter = [&](const std::string& name, const Shape& shape, Initializer initializer, int block,
                             int use) {
    const bool own = !s.shares || block == s.apart;
    return b.parameter(own ? name + "#" + std::to_string(use) : name, shape, initializer, 0.02f);
  };
  b.begin(SegmentKind::embedding, -1, -1);
  const int table = b.parameter("table", {s.vocabulary, s.width}, Initializer::normal, 0.02f);
  int x = b.embedding(table, -1, "embedding");
  b.end(x);
  for (int block = 0; block < s.blocks; ++block) {
    b.begin(SegmentKind::block, block, x);
    int y = b.norm(x, parameter("norm", {s.width}, Initializer::ones, block, block), -1, 1e-5f, true, "norm");
    for (int k = 0; k < s.products; ++k) {
      const int use = block * s.products + k;
      y = b.linear(y,
                   {{parameter("matrix", {s.width, s.width}, Initializer::normal, block, use),
                     parameter("bias", {s.width}, Initializer::zeros, block, use)}},
                   false, "product");
      y = b.activation(y, Activation::gelu_tanh, "gelu");
    }
    x = b.norm(b.add(x, y, "residual"), parameter("norm_after", {s.width}, Initializer::ones, block, block),
               -1, 1e-5f, true, "norm_after");
    b.end(x);
  }
  b.begin(SegmentKind::final, -1, x);
  x = b.norm(x, b.parameter("final", {s.width}, Initializer::ones), -1, 1e-5f, true, "final_norm");
  b.end(x);
  b.begin(SegmentKind::head, -1, x);
  b.cross_entropy(b.linear(x, {{table, -1}}, false, "logits"));
  return *b.finish();
}

// Completes forward ops with groups that they have.
inline Graph completed(Graph g, const Numerics& numerics) {
  auto graph = complete(std::move(g), numerics);
  EXPECT_TRUE(graph);
  return std::move(*graph);
}

inline Graph shared_graph(const SharedStack& s, const Numerics& numerics = {}) {
  Graph g = forward_graph_of(s, compute_format(numerics.precision));
  EXPECT_TRUE(add_adapters(g, s.adapters));
  return completed(std::move(g), numerics);
}

}  // namespace stw::testing_tools
