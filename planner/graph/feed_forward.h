// The feed-forward part of a block, in tiles: a matrix product, activations, a matrix product, with their adapters. Every row goes
// through it alone, so forward and backward may run for one tile of rows after the other, and what lies between the two products takes the
// memory of one tile. No bit changes: the sums over rows of weights' and biases' gradients go on from tile to tile where they
// would have gone on inside one kernel. For that a tile is made of whole samples, or of a multiple of tile_unit(graph, part) rows
// inside of one (kernels/contract/kernels.h, contract of the reductions).
#pragma once
#include "planner/graph/graph.h"

namespace stw {

inline constexpr int64_t frozen_tile_unit = 64;
// The unit of a tile's rows: chain_unit where the part trains a matrix or a bias, so that no tile cuts a chain of its gradient.
int64_t tile_unit(const Graph& graph, const FeedForward& part);

// Rows that instructions work on: a tile, or a chunk of the loss.
struct Tile {
  int64_t begin, rows;
  bool operator==(const Tile&) const = default;
};
// `rows` (whole samples) cut into tiles of at most `tile_rows`, 0: one tile. Only the last one of all, or the last one of each
// sample, has fewer rows than the others.
std::vector<Tile> tiles_of(int64_t rows, int64_t rows_per_sample, int64_t tile_rows);
// The same tiles as numbers, without a list.
struct Tiling {
  int64_t rows, count;               // of the tiles with the most rows
  int64_t short_rows, short_count;   // of the shorter tiles; 0 where all are alike
  int64_t tiles() const { return count + short_count; }
  int64_t last_rows() const { return short_count > 0 ? short_rows : rows; }
};
Tiling tiling_of(int64_t rows, int64_t rows_per_sample, int64_t tile_rows);

int64_t rows_in_tiles(const Graph& graph, const Segment& segment);   // of a sample: those of the segment's feed-forward part

// Whether a tensor, or the value of which it is the gradient, lies inside of the part.
bool is_inner(const FeedForward& part, int tensor);
// Whether a segment with this save-set may run in tiles: its feed-forward part keeps nothing, and nothing behind it makes
// backward compute the part's output again.
bool may_tile(const Graph& graph, const Segment& segment, uint32_t saved);
inline constexpr int64_t most_tiles = 128;   // beyond them programs get long, and memory is no longer what is missing

// Fills Segment::feed_forward of every block that has such a part. After add_update: a gradient in bf16 is rounded once a sample,
// which tiles inside of one would not do.
void find_feed_forward(Graph& graph);

}  // namespace stw
