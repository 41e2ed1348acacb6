// What a segment costs in memory and time for each of its variants, without building a whole program.
//
// Every save-set is emitted once, for that segment alone, by the code that emits programs (MicroBuilder). A trace remains of it:
// the lifetimes of its buffers. Their bytes follow from the number of samples, so another micro-batch takes new sums, not a new
// trace.
//
// A save-set that keeps nothing of the feed-forward part is also emitted in two tiles, and in three. Three tiles stand for any
// larger number: of the tiles between the first and the last, the second one needs most. (Tiles that end a sample may be shorter
// and then need less, scratch memory included, as that of no op shrinks with more rows.)
#pragma once
#include <algorithm>
#include <compare>
#include <map>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/pricing.h"

namespace stw {

// One choice for a segment at a micro-batch. Bytes are multiples of the alignment. Neither `kept` nor `peak` counts what earlier
// segments keep (this segment's input is part of that), or the micro-batch's tokens and targets.
struct Variant {
  uint32_t saved = ~0u;        // save-set; of the head: the number of loss chunks
  int64_t kept = 0;            // bytes that live until the backward pass has gone past this segment
  int64_t peak = 0;            // most bytes alive while an instruction of this segment runs, `kept` among them
  uint64_t picoseconds = 0;    // of a step: what recompute and tiles take; of the head: the loss, and all that no choice changes
  int64_t tile_rows = 0;       // of the feed-forward part; 0: all
};

// Where copies run copies the ops: the tensors of the neighbouring segments that are copied while a segment computes. Traces of
// the segment do not depend on these copies.
struct NeighbourCopies {
  std::vector<int> forward_fetches, backward_fetches, backward_stores;
};
NeighbourCopies neighbour_copies(const Graph& graph, const Arena& arena, size_t segment);

class SegmentProfile {
 public:
  SegmentProfile(const Graph& graph, const Arena& arena, size_t segment, int threads, Recompute recompute);
  // The variants at a micro-batch. `picoseconds` are those of one micro-step: of recompute, and what tiles and copies add to the
  // time of the ops. `accumulate`: not the first micro-step of its step; bytes are the same in all of them.
  std::vector<Variant> at(int64_t samples, const Pricing& pricing, const NeighbourCopies& copies = {}, bool accumulate = true) const;
  // The picoseconds alone: those that the variants of `micro_batch`, in the same order, take for a micro-step of `samples`.
  std::vector<uint64_t> times(int64_t micro_batch, int64_t samples, const Pricing& pricing, const NeighbourCopies& copies = {}, bool accumulate = true) const;

 private:
  // What a buffer's bytes follow from: a tensor, or an op whose scratch memory it is, with all rows or with those of a tile.
  enum class Rows : uint8_t { all, tile, last_tile };
  struct Size {
    bool is_workspace;
    int tensor_or_op, ops;   // `ops`: as of an instruction, whose scratch memory is that of all of them
    Rows rows;
    auto operator<=>(const Size&) const = default;
  };
  struct Life { int size, first, last; };   // `size`: in sizes_
  struct Trace {
    uint32_t saved = 0;
    int tiles = 1;                     // 3 stands for 3 and more
    std::vector<Life> lives;           // of all buffers but the input's
    std::vector<int> kept;             // in sizes_: of buffers that live until the backward pass
    struct RecomputedOp { int op; bool is_fused; };   // counted from the segment's first op; whether the one before it does it
    std::vector<RecomputedOp> recomputed;       // ops that run again over all rows
    std::vector<RecomputedOp> recomputed_tiles; // ops that run again tile by tile
    std::vector<int> transfers;        // ops: fetches and stores among the segment's own
    int instructions = 0, backward = 0;   // `backward`: the first instruction of the backward pass
    int forward_ops = 0, backward_ops = 0;   // of the passes, behind their fetches, which run while neighbours compute
    int input_last = 0;                // the last instruction that needs the input's buffer
  };
  Trace trace(uint32_t saved, int tiles);
  // The variants of a micro-batch.
  struct Option { const Trace* trace; int64_t tile_rows; };
  std::vector<Option> options(int64_t micro_batch) const;
  // Picoseconds of a stage (program.h): of its ops, and of the fetches and stores that run copies them.
  struct Stage {
    uint64_t ops = 0, fetches = 0, stores = 0;
    // What the stage takes beyond its ops, where it also recomputes for so long.
    uint64_t excess(uint64_t recompute) const { return std::max({size_add(ops, recompute), fetches, stores}) - ops; }
  };
  Stage forward_stage(const Pricing& pricing, int64_t samples, const NeighbourCopies& copies) const;
  Stage backward_stage(const Pricing& pricing, int64_t samples, const NeighbourCopies& copies, bool accumulate) const;
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
