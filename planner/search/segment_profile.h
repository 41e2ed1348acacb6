// The memory and time of a segment for each of its variants, without building a whole program.
//
// For every save-set, the code that emits programs (MicroBuilder) emits the segment once, alone. A trace
// records the lifetimes of the buffers. Their bytes depend on the number of samples, so another micro-batch
// needs new sums, but no new trace.
//
// A save-set that keeps nothing of the feed-forward part is also emitted in two tiles, and in three. Three
// tiles represent any larger number, because no tile between the first and the last needs more than the
// second. (The last tile of a sample may have fewer rows. It then needs no more memory, because no op's
// scratch memory shrinks with more rows.)
#pragma once
#include <algorithm>
#include <compare>
#include <map>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/pricing.h"

namespace stw {

// One choice for a segment at a micro-batch. Bytes are multiples of the alignment. `kept` and `peak` count
// neither the bytes that earlier segments keep (among them this segment's input) nor the inputs of the
// micro-batch.
struct Variant {
  uint32_t saved = ~0u;  // save-set; for the head the number of loss chunks
  int64_t kept = 0;      // bytes that are alive until the backward pass has finished this segment
  int64_t peak = 0;      // most bytes alive while an instruction of this segment runs, including `kept`
  // Time in a step that recompute, tiles and copies add. For the head: the time of the loss and of everything
  // that does not depend on variants.
  uint64_t picoseconds = 0;
  int64_t tile_rows = 0;  // of the feed-forward part; 0: all
};

// The tensors of neighbouring segments that are copied while this segment computes. Empty unless copies run
// while ops compute. The segment's traces do not depend on these copies.
struct NeighbourCopies {
  std::vector<int> forward_fetches, backward_fetches, backward_stores;
};
NeighbourCopies neighbour_copies(const Graph& graph, const Arena& arena, size_t segment);

class SegmentProfile {
 public:
  SegmentProfile(const Graph& graph, const Arena& arena, size_t segment, int threads, Recompute recompute);
  // The variants at a micro-batch. `picoseconds` is the time that recompute, tiles and copies add to one
  // micro-step. `accumulate`: not the first micro-step of its step. It does not change the bytes.
  std::vector<Variant> at(int64_t samples, const Pricing& pricing, const NeighbourCopies& copies = {},
                          bool accumulate = true) const;
  // Only the times, for a micro-step of `samples`. The variants are those of `micro_batch`, in the same
  // order.
  std::vector<uint64_t> times(int64_t micro_batch, int64_t samples, const Pricing& pricing,
                              const NeighbourCopies& copies = {}, bool accumulate = true) const;

 private:
  enum class Rows : uint8_t { all, tile, last_tile };
  // Determines the bytes of a buffer. A buffer holds a tensor, or is the scratch memory of an instruction. It
  // covers all rows or those of a tile.
  struct Size {
    bool is_workspace;
    // The tensor, or the instruction's first op. `ops`: the number of the instruction's ops; 0 for a tensor.
    int tensor_or_op, ops;
    Rows rows;
    auto operator<=>(const Size&) const = default;
  };
  // A buffer's first and last instruction. `size`: index in sizes_.
  struct Life {
    int size, first, last;
  };
  struct Trace {
    uint32_t saved = 0;
    int tiles = 1;            // 3 stands for 3 or more
    std::vector<Life> lives;  // of all buffers except the input's
    std::vector<int> kept;    // indices in sizes_ of buffers that live until the backward pass
    // `op` is counted from the segment's first op. `is_fused`: the kernel of the op before computes this one
    // too.
    struct RecomputedOp {
      int op;
      bool is_fused;
    };
    std::vector<RecomputedOp> recomputed;        // ops that are recomputed over all rows
    std::vector<RecomputedOp> recomputed_tiles;  // ops that are recomputed tile by tile
    std::vector<int> transfers;                  // the segment's own fetches and stores, as ops
    int instructions = 0, backward = 0;          // `backward`: the first instruction of the backward pass
    // For each pass, the first instruction after its fetches. These fetches run while a neighbour computes.
    int forward_ops = 0, backward_ops = 0;
    int input_last = 0;  // the last instruction that needs the input's buffer
  };
  Trace trace(uint32_t saved, int tiles);
  // The variants of a micro-batch.
  struct Option {
    const Trace* trace;
    int64_t tile_rows;
  };
  std::vector<Option> options(int64_t micro_batch) const;
  // Picoseconds of a stage (program.h): of its ops, and of the fetches and stores that run concurrently.
  struct Stage {
    uint64_t ops = 0, fetches = 0, stores = 0;
    // The time of the stage beyond that of its ops, if it also recomputes for `recompute` picoseconds.
    uint64_t excess(uint64_t recompute) const {
      return std::max({size_add(ops, recompute), fetches, stores}) - ops;
    }
  };
  Stage forward_stage(const Pricing& pricing, int64_t samples, const NeighbourCopies& copies) const;
  Stage backward_stage(const Pricing& pricing, int64_t samples, const NeighbourCopies& copies,
                       bool accumulate) const;
  int size_index(const Size& size);

  const Graph& graph_;
  const Arena& arena_;
  size_t segment_;
  int threads_;
  std::vector<Trace> traces_;
  std::vector<Size> sizes_;  // distinct
  std::map<Size, int> size_index_;
};

// The variant of the head at a micro-batch and a number of loss chunks. Sets bytes only.
Variant head_variant(const Graph& graph, const Arena& arena, int threads, int64_t samples, int64_t chunks);

}  // namespace stw
