// Random small models of up to three blocks with at most four saveable tensors each, for checks against all
// choices. In half of them blocks share parameters: all blocks, or the first and the last.
#pragma once
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/shared_graphs.h"

namespace stw::testing_tools {

class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed), sharing_(seed % 4) {}

  Graph graph(const Numerics& numerics) {
    const int64_t width = 8 * pick(1, 5), vocabulary = 16 * pick(1, 8);
    GraphBuilder b("random", pick(3, 20), vocabulary, compute_format(numerics.precision));
    auto matrix = [&](const std::string& name, int64_t inputs, int64_t features) {
      return std::vector<LinearWeights>{
          {b.parameter(name, {features, inputs}, Initializer::normal, 0.02f), -1}};
    };
    b.begin(SegmentKind::embedding, -1, -1);
    const int table = b.parameter("table", {vocabulary, width}, Initializer::normal, 0.02f);
    int x = b.embedding(table, -1, "embedding");
    b.end(x);
    const int64_t blocks = pick(1, 6) == 1 ? 3 : pick(1, 2), hidden = 8 * pick(1, 12);
    const bool alike = pick(0, 2) > 0, attends = pick(0, 1), twice = pick(0, 1),
               norms_twice = pick(0, 3) == 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const bool shares = (alike && sharing_ == 1) || (alike && sharing_ == 3 && block != 1);
      const std::string name = "block." + std::to_string(shares ? 0 : block) + ".";
      const int64_t h = alike ? hidden : 8 * pick(1, 12);
      b.begin(SegmentKind::block, static_cast<int>(block), x);
      int n = b.norm(x, b.parameter(name + "norm", {width}, Initializer::ones), -1, 1e-5f, true, "norm");
      int y;
      if (attends) {
        y = b.linear(n, matrix(name + "qkv", width, 3 * width), false, "qkv");
        y = b.attention(y, 1, 1, static_cast<int>(width), 0.3f, 0, "attention");
        y = b.linear(y, matrix(name + "out", width, width), false, "out");
      } else {
        y = b.linear(n, matrix(name + "up", width, h), false, "up");
        y = b.activation(y, Activation::gelu_tanh, "gelu");
        if (twice) y = b.activation(b.dropout(y, 0.1f, "dropout"), Activation::gelu_erf, "gelu2");
        y = b.linear(y, matrix(name + "down", h, width), false, "down");
      }
      if (norms_twice)
        y = b.norm(y, b.parameter(name + "second_norm", {width}, Initializer::ones), -1, 1e-5f, true,
                   "second_norm");
      x = b.add(x, y, "residual");
      b.end(x);
    }
    b.begin(SegmentKind::final, -1, x);
    x = b.norm(x, b.parameter("final", {width}, Initializer::ones), -1, 1e-5f, true, "final");
    b.end(x);
    b.begin(SegmentKind::head, -1, x);
    b.cross_entropy(b.linear(x, matrix("head", width, vocabulary), false, "logits", Format::f32));
    Graph g = *b.finish();
    freeze(g);
    return completed(std::move(g), numerics);
  }

 private:
  // In half of the models some parameters are frozen: all from the first up to some parameter, or any except
  // the head.
  void freeze(Graph& g) {
    std::vector<Tensor*> parameters;
    for (Tensor& t : g.tensors)
      if (t.role == Role::parameter) parameters.push_back(&t);
    const int64_t count = static_cast<int64_t>(parameters.size()), how = pick(0, 3),
                  first = pick(1, count - 1);
    for (int64_t i = 0; i + 1 < count; ++i)
      if (how == 2 ? i < first : how == 3 && pick(0, 1)) parameters[i]->trainable = false;
  }
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  std::mt19937 random_;
  uint32_t sharing_;
};

}  // namespace stw::testing_tools
