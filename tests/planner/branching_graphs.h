// Graphs whose segments read outputs of several earlier segments: three that networks have, and random ones.
#pragma once
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/shared_graphs.h"

namespace stw::testing_tools {

// long_skip: block 3 adds the output of block 0. u_shape: blocks 3 and 4 add the outputs of blocks 1 and 0.
// encoder_decoder: blocks 0 and 1 are an encoder, whose output blocks 2, 3 and 4 read. The decoder has an
// embedding of its own.
enum class Branching { long_skip, u_shape, encoder_decoder };
inline constexpr Branching all_branchings[] = {Branching::long_skip, Branching::u_shape,
                                               Branching::encoder_decoder};

class BranchingBuilder {
 public:
  BranchingBuilder(Branching branching, Format compute, bool in_one_segment = false, int64_t sequence = 20)
      : b_("branching", sequence, 24, compute), branching_(branching), in_one_segment_(in_one_segment) {}

  // `in_one_segment`: the same ops, all of them except the head in one segment.
  Graph graph() {
    if (in_one_segment_) b_.begin(SegmentKind::final, -1, -1);
    int x = embedding("table");
    std::vector<int> outputs;
    for (int block = 0; block < blocks(); ++block) {
      if (branching_ == Branching::encoder_decoder && block == 2) x = embedding("decoder.table");
      std::vector<int> others;
      if (const int from = other_of(block); from >= 0) others = {outputs[from]};
      begin(SegmentKind::block, block, x, others);
      outputs.push_back(x = end(this->block(block, x, others)));
    }
    begin(SegmentKind::final, -1, x);
    x = end(b_.norm(x, b_.parameter("final", {width}, Initializer::ones), -1, 1e-5f, true, "final_norm"));
    if (in_one_segment_) b_.end(x);
    b_.begin(SegmentKind::head, -1, x);
    b_.cross_entropy(b_.linear(x, matrix("head", vocabulary, width), false, "logits", Format::f32));
    return *b_.finish();
  }

 private:
  static constexpr int64_t width = 16, vocabulary = 24;
  int blocks() const { return branching_ == Branching::long_skip ? 4 : 5; }
  // The block whose output a block reads in addition to the output before it.
  int other_of(int block) const {
    switch (branching_) {
      case Branching::long_skip: return block == 3 ? 0 : -1;
      case Branching::u_shape: return block == 3 ? 1 : block == 4 ? 0 : -1;
      case Branching::encoder_decoder: return block >= 2 ? 1 : -1;
    }
    return -1;
  }
  void begin(SegmentKind kind, int block, int x, const std::vector<int>& others = {}) {
    if (!in_one_segment_) b_.begin(kind, block, x, others);
  }
  int end(int x) {
    if (!in_one_segment_) b_.end(x);
    return x;
  }
  std::vector<LinearWeights> matrix(const std::string& name, int64_t features, int64_t inputs) {
    return {{b_.parameter(name, {features, inputs}, Initializer::normal, 0.02f), -1}};
  }
  int embedding(const char* table) {
    begin(SegmentKind::embedding, -1, -1);
    return end(b_.embedding(b_.parameter(table, {vocabulary, width}, Initializer::normal, 0.02f), -1, table));
  }
  int block(int block, int x, const std::vector<int>& others) {
    const std::string name = "block." + std::to_string(block) + ".";
    if (!others.empty() && branching_ != Branching::encoder_decoder) x = b_.add(x, others[0], "joined");
    int y = b_.norm(x, b_.parameter(name + "norm", {width}, Initializer::ones), -1, 1e-5f, true, "norm");
    y = b_.linear(y, matrix(name + "up", 2 * width, width), false, "up");
    y = b_.activation(y, Activation::gelu_tanh, "gelu");
    y = b_.dropout(b_.linear(y, matrix(name + "down", width, 2 * width), false, "down"), 0.1f, "dropped");
    x = b_.add(x, y, "residual");
    if (!others.empty() && branching_ == Branching::encoder_decoder)
      x = b_.add(x, b_.linear(others[0], matrix(name + "cross", width, width), false, "cross"), "crossed");
    return x;
  }
  GraphBuilder b_;
  Branching branching_;
  bool in_one_segment_;
};

inline Graph branching_graph(Branching branching, const Numerics& numerics = {}, bool in_one_segment = false,
                             int64_t sequence = 20) {
  const Format compute = compute_format(numerics.precision);
  return completed(BranchingBuilder(branching, compute, in_one_segment, sequence).graph(), numerics);
}

// Random small networks of one to three blocks, for checks against all choices. A block may read any earlier
// outputs, and may begin a new chain. The last segment reads what no other one does. In half of the networks
// some parameters are frozen.
class RandomNetwork {
 public:
  explicit RandomNetwork(uint32_t seed) : random_(seed) {}

  Graph graph(const Numerics& numerics) {
    GraphBuilder b("random network", pick(3, 20), vocabulary, compute_format(numerics.precision));
    width_ = 8 * pick(1, 4);
    int x = embedding(b);
    const int64_t blocks = pick(1, 3);
    for (int64_t block = 0; block < blocks; ++block) {
      if (pick(0, 3) == 0) x = embedding(b);
      std::vector<int> others;
      for (const int t : outputs_)
        if (t != x && pick(0, 2) == 0) others.push_back(t);
      b.begin(SegmentKind::block, static_cast<int>(block), x, others);
      take(x, others);
      x = end(b, body(b, x, others));
    }
    unread_.erase(std::find(unread_.begin(), unread_.end(), x));
    const std::vector<int> rest = unread_;
    b.begin(SegmentKind::final, -1, x, rest);
    for (const int t : rest) x = b.add(x, t, "sum");
    x = b.norm(x, b.parameter("final", {width_}, Initializer::ones), -1, 1e-5f, true, "final");
    b.end(x);
    b.begin(SegmentKind::head, -1, x);
    b.cross_entropy(b.linear(x, matrix(b, vocabulary, width_), false, "logits", Format::f32));
    Graph g = *b.finish();
    freeze(g);
    return completed(std::move(g), numerics);
  }

 private:
  static constexpr int64_t vocabulary = 32;

  int end(GraphBuilder& b, int x) {
    b.end(x);
    outputs_.push_back(x);
    unread_.push_back(x);
    return x;
  }
  void take(int x, const std::vector<int>& others) {
    std::erase_if(
        unread_, [&](int t) { return t == x || std::find(others.begin(), others.end(), t) != others.end(); });
  }
  std::vector<LinearWeights> matrix(GraphBuilder& b, int64_t features, int64_t inputs) {
    const std::string name = "matrix." + std::to_string(parameters_++);
    return {{b.parameter(name, {features, inputs}, Initializer::normal, 0.02f), -1}};
  }
  int embedding(GraphBuilder& b) {
    b.begin(SegmentKind::embedding, -1, -1);
    return end(b, b.embedding(matrix(b, vocabulary, width_)[0].weight, -1, "embedding"));
  }
  // Some of the others are added before the block's ops, some after them, and some go through a product.
  int body(GraphBuilder& b, int x, const std::vector<int>& others) {
    std::vector<int> late;
    for (const int t : others) {
      if (pick(0, 1)) x = b.add(x, t, "joined");
      else late.push_back(t);
    }
    int y = x;
    switch (pick(0, 3)) {
      case 0: y = b.linear(y, matrix(b, width_, width_), false, "product"); break;
      case 1:
        y = b.linear(y, matrix(b, 3 * width_, width_), false, "qkv");
        y = b.attention(y, 1, 1, static_cast<int>(width_), 0.3f, 0, "attention");
        break;
      default:
        y = b.norm(y, b.parameter("norm." + std::to_string(parameters_++), {width_}, Initializer::ones), -1,
                   1e-5f, true, "norm");
        y = b.linear(y, matrix(b, 4 * width_, width_), false, "up");
        y = b.activation(y, Activation::gelu_tanh, "gelu");
        y = b.linear(y, matrix(b, width_, 4 * width_), false, "down");
    }
    if (pick(0, 2)) y = b.add(x, y, "residual");
    for (const int t : late)
      y = b.add(y, pick(0, 1) ? t : b.linear(t, matrix(b, width_, width_), false, "crossed"), "sum");
    return y;
  }
  void freeze(Graph& g) {
    const int64_t how = pick(0, 3);
    int64_t count = 0;
    for (Tensor& t : g.tensors)
      if (t.role == Role::parameter && (how == 2 ? count++ < parameters_ / 2 : how == 3 && pick(0, 1)))
        t.trainable = false;
    for (Tensor& t : g.tensors)
      if (t.name == "final") t.trainable = true;
  }
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  std::mt19937 random_;
  int64_t width_ = 0, parameters_ = 0;
  std::vector<int> outputs_, unread_;
};

}  // namespace stw::testing_tools
