// The lifetimes of the buffers of a segment, for each of its save-sets.
//
// For every save-set, the code that emits programs (MicroBuilder) emits the segment once, alone. A trace
// records the lifetimes. It names tensors and ops by local numbers, which are the same in all segments that
// are alike, and it holds no bytes. So other lengths of samples, other batches and other formats of the
// optimizer have the same traces, and TraceCache makes them once.
//
// If something lies in host memory, a trace fetches all weights and gradients of the segment. So blocks with
// different tensors in host memory have the same traces. A tensor that lies in the arena counts no bytes
// there (SegmentProfile).
//
// A save-set that keeps nothing of the feed-forward part is also emitted in two tiles, and in three. Three
// tiles represent any larger number, because no tile between the first and the last needs more than the
// second. (The last tile of a sample may have fewer rows. It then needs no more memory, because no op's
// scratch memory shrinks with more rows.)
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "planner/graph/segment_lives.h"
#include "planner/plan/plan.h"
#include "planner/program/emitter.h"

namespace stw {

// Numbers the tensors of a segment in the order in which its ops name them, then those of other segments that
// are alive in its passes. Numbers its ops: first the forward ops, then the gradient ops. Another op `o`,
// which only fused updates have, has the number -1 - o.
class LocalNumbers {
 public:
  LocalNumbers(const Graph& graph, const Segment& segment, const SegmentLives& lives);
  int of_tensor(int tensor) const;  // -1: another tensor
  int tensor(int number) const { return tensors_[static_cast<size_t>(number)]; }
  const std::vector<int>& tensors() const { return tensors_; }
  int of_op(int op) const;
  int op(int number) const;

 private:
  void add(int tensor);

  std::vector<int> tensors_;
  std::map<int, int> numbers_;
  int first_op_, op_count_, first_gradient_op_, gradient_op_count_;  // as numbers of Graph::op
};

// The arena of traces for plans with this arena.
Arena arena_of_traces(const Graph& graph, const Arena& arena);

class SegmentTraces {
 public:
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
  // A buffer's first and last instruction. `size`: index in sizes().
  struct Life {
    uint16_t size, first, last;
  };
  struct RecomputedOp {
    int16_t op;
    bool is_fused;  // the kernel of the op before computes this one too
  };
  struct Transfer {
    int16_t tensor;
    bool is_store;
  };
  // An output that an earlier segment counts, and that no op needs after the instruction `last`.
  struct Released {
    uint16_t size, last;
  };
  struct Trace {
    uint32_t saved = 0;
    int tiles = 1;                               // 3 stands for 3 or more
    std::vector<Life> lives;                     // of all buffers except those that earlier segments count
    std::vector<uint16_t> kept;                  // sizes of buffers that live until the backward pass
    std::vector<RecomputedOp> recomputed;        // ops that are recomputed over all rows
    std::vector<RecomputedOp> recomputed_tiles;  // ops that are recomputed tile by tile
    std::vector<int16_t> unshared;               // unshared_weight_gradients
    std::vector<Transfer> transfers;             // the segment's own fetches and stores
    int instructions = 0, backward = 0;          // `backward`: the first instruction of the backward pass
    // For each pass, the first instruction after its fetches. These fetches run while a neighbour computes.
    int forward_ops = 0, backward_ops = 0;
    std::vector<Released> released;
  };

  // `arena`: from arena_of_traces.
  SegmentTraces(const Graph& graph, const Arena& arena, size_t segment, const SegmentLives& lives,
                int threads, Recompute recompute);

  const std::vector<Trace>& traces() const { return traces_; }
  const std::vector<Size>& sizes() const { return sizes_; }  // distinct

 private:
  // The graph, and the lists that are the same for all traces of the segment.
  struct Source {
    Source(const Graph& graph, const Arena& arena, size_t segment, const SegmentLives& lives, int threads);
    const Graph& graph;
    const Arena& arena;
    size_t segment;
    const SegmentLives& lives;
    int threads;
    LocalNumbers numbers;
    // Tensors. sample_inputs: they are always alive, and OffloadSearch counts them.
    std::vector<int> sample_inputs, forward_reads, backward_reads;  // reads: host_reads
  };
  Trace trace(const Source& source, uint32_t saved, int tiles);
  // Sets the trace's instructions and buffers.
  void record(const Source& source, const Emitter& emitter, const Program& program, Trace& trace);
  uint16_t size_index(const Size& size);

  std::vector<Trace> traces_;
  std::vector<Size> sizes_;
  std::map<Size, uint16_t> size_index_;
};

// Traces of segments of several graphs. Segments that are alike share theirs.
class TraceCache {
 public:
  // `lives`: those of the segment (segment_lives).
  std::shared_ptr<const SegmentTraces> of(const Graph& graph, const Arena& arena, size_t segment,
                                          const SegmentLives& lives, int threads, Recompute recompute);

 private:
  std::map<std::vector<int64_t>, std::shared_ptr<const SegmentTraces>> known_;
};

}  // namespace stw
