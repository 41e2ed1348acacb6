// Tests the choice of the part of a block that runs in tiles, and the cuts of its rows.
#include "planner/graph/feed_forward.h"

#include "planner/graph/differentiate.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

TEST(Tiling, CoversAllRowsInOrder) {
  for (int64_t sequence : {1, 33, 64, 150, 1000})
    for (int64_t samples : {1, 2, 3, 7})
      for (int64_t tile_rows : {0, 1, 64, 100, 256, 1024, 100000}) {
        const int64_t rows = samples * sequence;
        const std::vector<Tile> tiles = tiles_of(rows, sequence, tile_rows);
        const Tiling tiling = tiling_of(rows, sequence, tile_rows);
        ASSERT_EQ(static_cast<int64_t>(tiles.size()), tiling.tiles());
        int64_t next = 0, shorter = 0;
        for (const Tile& t : tiles) {
          EXPECT_EQ(t.begin, next);
          EXPECT_TRUE(t.rows == tiling.rows || t.rows == tiling.short_rows);
          EXPECT_GT(t.rows, 0);
          EXPECT_LE(t.rows, tiling.rows);
          EXPECT_TRUE(tile_rows == 0 || t.rows <= tile_rows);
          // A tile is made of whole samples, or lies inside of one and begins at a multiple of the tile's
          // rows.
          if (t.begin % sequence != 0) {
            EXPECT_EQ(t.begin % sequence % tile_rows, 0);
            EXPECT_LE(t.begin % sequence + t.rows, sequence);
          } else if (t.rows > sequence) {
            EXPECT_EQ(t.rows % sequence, 0);
          }
          shorter += t.rows != tiling.rows;
          next += t.rows;
        }
        EXPECT_EQ(next, rows);
        EXPECT_EQ(shorter, tiling.short_count);
        EXPECT_EQ(tiles.front().rows, tiling.rows);
        EXPECT_EQ(tiles.back().rows, tiling.last_rows());
      }
  EXPECT_EQ(tiling_of(int64_t{1} << 50, int64_t{1} << 50, 256).tiles(), int64_t{1} << 42);
}

TEST(FeedForward, IsFoundInEveryModel) {
  std::vector<Graph> graphs = small_graphs();
  for (Graph& g : packed_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : classifier_graphs()) graphs.push_back(std::move(g));
  for (Graph& g : fused_graphs()) graphs.push_back(std::move(g));
  const auto is_dropped = [](const Op& op) { return op.kind == OpKind::dropout; };
  for (const Graph& g : graphs)
    for (const Segment& s : g.segments) {
      const FeedForward& part = s.feed_forward;
      // The dropout of an adapter's input, or of ModernBERT's last product's input.
      const bool drops = (g.has_adapters() || g.architecture == "modernbert") &&
                         std::any_of(g.ops.begin(), g.ops.end(), is_dropped);
      ASSERT_EQ(part.exists(), s.kind == SegmentKind::block && !drops);
      if (!part.exists()) continue;
      const auto is_of_adapter = [](const Op& op) {
        return op.kind == OpKind::scale || op.kind == OpKind::adapter;
      };
      const auto first = g.ops.begin() + part.first_op;
      const auto adapters = std::count_if(first, first + part.op_count,
                                          [](const Op& op) { return op.kind == OpKind::adapter; });
      // Each adapter has a product of its own.
      EXPECT_EQ(part.op_count, 3 + adapters + std::count_if(first, first + part.op_count, is_of_adapter));
      EXPECT_EQ(adapters, g.has_adapters() ? 2 : 0);
      EXPECT_EQ(part.inner.size() + 1, static_cast<size_t>(part.op_count));
      // Whether the block's backward pass reads the part's output, as the gradient of a norm after the part
      // does.
      const int last = part.first_op + part.op_count - 1;
      const bool is_read_again = std::find(s.saveable.begin(), s.saveable.end(), last) != s.saveable.end();
      // In an encoder, the norm after the part reads that output, or the sum of its dropout and the residual.
      const bool is_encoder = !g.head.generates && g.architecture != "modernbert",
                 is_sum = is_encoder && is_dropped(g.ops[static_cast<size_t>(last) + 1]);
      EXPECT_EQ(is_read_again, g.architecture == "gemma3_text" || (is_encoder && !is_sum));
      EXPECT_EQ(may_tile(g, s, 0), !is_read_again && !is_encoder);
      if (s.gradient_op_count == 0) continue;
      EXPECT_FALSE(may_tile(g, s, ~0u));
      for (int t : part.inner_gradients) EXPECT_TRUE(is_inner(part, t));
      // All gradient ops that touch inner tensors stand next to each other.
      for (int i = 0; i < static_cast<int>(g.gradient_ops.size()); ++i) {
        const bool is_part =
            i >= part.first_gradient_op && i < part.first_gradient_op + part.gradient_op_count;
        const Op& op = g.gradient_ops[i];
        for (const auto* list : {&op.inputs, &op.outputs})
          for (int t : *list) EXPECT_TRUE(t < 0 || is_part || !is_inner(part, t)) << g.at(t).name;
      }
    }
}

// Gradients of trained matrices and biases are sums in chains, which no tile may cut.
TEST(FeedForward, TilesAreMadeOfWholeChains) {
  const auto unit_of = [](const SmallModel& model, const char* frozen) {
    Numerics numerics;
    if (*frozen) numerics.groups = {{frozen, true, {}, {}, {}}};
    const Graph g = build_model(config_of(model), 33, numerics);
    return tile_unit(g, g.segments[1].feed_forward);
  };
  EXPECT_EQ(unit_of(small_gpt2(), ""), kernels::chain_terms);
  EXPECT_EQ(unit_of(small_gpt2(), "*mlp.c_fc*"), kernels::chain_terms);
  EXPECT_EQ(unit_of(small_gpt2(), "*mlp.*"), frozen_tile_unit);
  EXPECT_EQ(unit_of(small_gpt2(), "*mlp.*.weight"), kernels::chain_terms);
  EXPECT_EQ(unit_of(small_llama(), "blocks.0"), frozen_tile_unit);
  EXPECT_EQ(unit_of({small_llama(), adapters_of_all()}, ""), kernels::chain_terms);
  EXPECT_EQ(unit_of({small_gpt2(), adapters_of_some_of_gpt2()}, ""), kernels::chain_terms);
}

// No tile cuts a part if a kernel rounds once a sample, or draws random numbers by row.
TEST(FeedForward, IsLeftWholeWhereTilesWouldChangeBits) {
  Numerics numerics;
  numerics.precision = Precision::bf16;
  numerics.gradients = Gradients::bf16;
  for (const Segment& s : build_model(config_of(small_llama()), 33, numerics).segments)
    EXPECT_FALSE(s.feed_forward.exists());

  GraphBuilder b("dropout between the products", 8, 16, Format::f32);
  auto matrix = [&](const char* name, int64_t features, int64_t inputs) {
    return std::vector<LinearWeights>{
        {b.parameter(name, {features, inputs}, Initializer::normal, 0.02f), -1}};
  };
  b.begin(SegmentKind::embedding, -1, -1);
  int x = b.embedding(b.parameter("table", {16, 8}, Initializer::normal, 0.02f), -1, "embedding");
  b.end(x);
  b.begin(SegmentKind::block, 0, x);
  int y = b.activation(b.linear(x, matrix("up", 32, 8), false, "up"), Activation::gelu_tanh, "gelu");
  x = b.add(x, b.linear(b.dropout(y, 0.1f, "dropout"), matrix("down", 8, 32), false, "down"), "residual");
  b.end(x);
  b.begin(SegmentKind::head, -1, x);
  b.cross_entropy(b.linear(x, matrix("head", 16, 8), false, "logits", Format::f32));
  Graph g = *b.finish();
  differentiate(g);
  find_feed_forward(g);
  for (const Segment& s : g.segments) EXPECT_FALSE(s.feed_forward.exists());
}

}  // namespace
}  // namespace stw
