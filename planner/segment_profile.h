// What a segment costs in memory and time for each of its save-sets and tiles, without building a whole program.
//
// Every save-set is emitted once, for that segment alone, by the code that emits programs. What remains are lifetimes of
// buffers whose bytes follow from the number of samples, so that another micro-batch is a sum over them. Where the
// feed-forward part keeps nothing it is emitted in tiles, too: in two, and in three, which stand for more: of those between the
// first and the last the second one needs most (where samples are cut, the shorter tiles among them need less: less scratch
// memory, too, as that of no op shrinks with more rows).
#pragma once
#include <algorithm>
#include <compare>
#include <map>
#include <vector>

#include "planner/plan.h"
#include "planner/pricing.h"

namespace stw {

// One choice for a segment at a micro-batch. Bytes are multiples of the alignment; both are counted beyond what earlier
// segments keep, among it this segment's input, and beyond the micro-batch's tokens and targets.
struct Variant {
  uint32_t saved = ~0u;        // save-set; of the head: the number of loss chunks
  int64_t kept = 0;            // bytes that live until the backward pass has gone past this segment
  int64_t peak = 0;            // most bytes alive while an instruction of this segment runs, `kept` among them
  uint64_t picoseconds = 0;    // of recompute and tiles in a step; of the head: of all that no choice changes and of the loss
  int64_t tile_rows = 0;       // of the feed-forward part; 0: all
};

// Where copies run beside the ops: what is copied while a segment computes, but belongs to its neighbours (tensors). Traces do not depend on it.
struct NeighbourCopies {
  std::vector<int> forward_fetches, backward_fetches, backward_stores;
};
NeighbourCopies neighbour_copies(const Graph& graph, const Arena& arena, size_t segment);

class SegmentProfile {
 public:
  SegmentProfile(const Graph& graph, const Arena& arena, size_t segment, int threads, Recompute recompute);
  // `picoseconds` are those of one micro-step: of recompute, and what tiles and copies add to the time of the ops. `accumulate`:
  // not the first micro-step of its step. Bytes do not depend on it.
  std::vector<Variant> at(int64_t samples, const Pricing& pricing, const NeighbourCopies& beside = {}, bool accumulate = true) const;
  // The picoseconds alone, of the variants of `micro_batch` with so many samples, in the same order.
  std::vector<uint64_t> times(int64_t micro_batch, int64_t samples, const Pricing& pricing, const NeighbourCopies& beside = {}, bool accumulate = true) const;

 private:
  // Whose bytes a buffer has: those of a tensor, or of the scratch memory of an op, with all rows or those of a tile.
  enum class Rows : uint8_t { all, tile, last_tile };
  struct Size {
    bool is_workspace;
    int what;
    Rows rows;
    auto operator<=>(const Size&) const = default;
  };
  struct Life { int size, first, last; };   // `size`: in sizes_
  struct Trace {
    uint32_t saved = 0;
    int tiles = 1;                     // 3: or more
    std::vector<Life> lives;           // of all but the input
    std::vector<int> kept;             // in sizes_: of buffers that live until the backward pass
    std::vector<int> recomputed;       // ops, counted from the segment's first; those of all rows
    std::vector<int> recomputed_tiles; // those in tiles
    std::vector<int> transfers;        // ops: fetches and stores among the segment's own
    int instructions = 0, backward = 0;   // `backward`: the first one of the backward pass
    int forward_ops = 0, backward_ops = 0;   // behind the fetches of the passes, which are made while neighbours compute
    int input_last = 0;                // the last one that needs the input's buffer
  };
  Trace trace(uint32_t saved, int tiles);
  // The variants of a micro-batch.
  struct Option { const Trace* trace; int64_t tile_rows; };
  std::vector<Option> options(int64_t micro_batch) const;
  // A stage of programs whose copies run beside the ops, in picoseconds.
  struct Stage {
    uint64_t ops = 0, fetches = 0, stores = 0;
    // Beyond the ops, with so much recompute.
    uint64_t excess(uint64_t recompute) const { return std::max({size_add(ops, recompute), fetches, stores}) - ops; }
  };
  Stage forward_stage(const Pricing& pricing, int64_t samples, const NeighbourCopies& beside) const;
  Stage backward_stage(const Pricing& pricing, int64_t samples, const NeighbourCopies& beside, bool accumulate) const;
  int size_index(const Size& size);

  const Graph& graph_;
  const Arena& arena_;
  size_t segment_;
  int threads_;
  std::vector<Trace> traces_;
  std::vector<Size> sizes_;        // distinct ones
  std::map<Size, int> size_index_;
};

// The head at a micro-batch and a number of loss chunks: bytes only.
Variant head_variant(const Graph& graph, const Arena& arena, int threads, int64_t samples, int64_t chunks);

}  // namespace stw
