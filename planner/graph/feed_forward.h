// The feed-forward part of a block, in tiles: a matrix product, activations, and a matrix product, with their
// adapters. Rows do not depend on each other. Therefore the forward and the backward pass may run tile by
// tile, and the tensors between the two products take the memory of one tile. No bit changes: sums over rows,
// for the gradients of weights and biases, continue from tile to tile where they would have continued inside
// one kernel. Therefore a tile is made of whole samples, or of a multiple of tile_unit(graph, part) rows
// inside of one sample (kernels/contract/kernels.h, contract of the reductions).
#pragma once
#include "planner/graph/graph.h"

namespace stw {

inline constexpr int64_t frozen_tile_unit = 64;
// The rows of a tile are a multiple of this unit. If the part trains a matrix or a bias, the unit is
// kernels::chain_terms, so that no tile cuts a chain of the gradient's sum.
int64_t tile_unit(const Graph& graph, const FeedForward& part);

// The rows that an instruction works on: a tile, or a chunk of the loss.
struct Tile {
  int64_t begin, rows;
  bool operator==(const Tile&) const = default;
};
// Cuts `rows` (whole samples) into tiles of at most `tile_rows`; 0: one tile. Only the last tile, or the last
// tile of each sample, has fewer rows than the others.
std::vector<Tile> tiles_of(int64_t rows, int64_t rows_per_sample, int64_t tile_rows);
// The same tiles as numbers, without a list.
struct Tiling {
  int64_t rows, count;              // of the tiles with the most rows
  int64_t short_rows, short_count;  // of the shorter tiles; 0 if all tiles are equal
  int64_t tiles() const { return count + short_count; }
  int64_t last_rows() const { return short_count > 0 ? short_rows : rows; }
};
Tiling tiling_of(int64_t rows, int64_t rows_per_sample, int64_t tile_rows);

// Rows of a sample in the segment's feed-forward part.
int64_t rows_in_tiles(const Graph& graph, const Segment& segment);

// Whether a tensor lies inside of the part, or is the gradient of one that does.
bool is_inner(const FeedForward& part, int tensor);
// Whether a segment with this save-set may run in tiles. It may if the feed-forward part keeps nothing, and
// the backward pass does not have to recompute the part's output.
bool may_tile(const Graph& graph, const Segment& segment, uint32_t saved);
// The most tiles that the planner tries. More tiles make programs longer and save little memory, because
// other tensors then need most of it.
inline constexpr int64_t most_tiles = 128;

// Sets Segment::feed_forward of every block that has such a part. Call it after add_update. Gradients in bf16
// exclude tiles inside of a sample, because such a gradient is rounded once a sample.
void find_feed_forward(Graph& graph);

}  // namespace stw
