// The memory and time of a segment for each of its variants, without building a whole program.
//
// The traces of the segment (segment_traces.h) hold the lifetimes of its buffers. Their bytes depend on the
// number of samples, so another micro-batch needs new sums, but no new trace.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/pricing.h"
#include "planner/search/segment_traces.h"

namespace stw {

// One choice for a segment at a micro-batch. Bytes are multiples of the alignment. `kept` and `peak` count
// neither the bytes that earlier segments keep (among them, usually, this segment's inputs) nor the inputs of
// the micro-batch.
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

// The micro-steps of a step: the first one, `next` further ones of the same size, and a last one of `rest`
// samples, if that is not 0.
struct MicroSteps {
  int64_t samples, next, rest;
  static MicroSteps of(int64_t global_batch, int64_t micro_batch) {
    return {micro_batch, global_batch / micro_batch - 1, global_batch % micro_batch};
  }
};

// A choice for a segment at a micro-batch, without the copies of its neighbours.
struct OwnFigures {
  uint32_t saved = ~0u;
  int64_t tile_rows = 0;
  int64_t kept = 0;
  // The most bytes alive while copies of neighbours may run, in the forward and in the backward pass, and at
  // all other times.
  int64_t forward_peak = INT64_MIN, backward_peak = INT64_MIN, other_peak = INT64_MIN;
  // Picoseconds that recompute, tiles and, unless copies run while ops compute, the segment's own copies add
  // to each pass.
  struct Times {
    uint64_t forward = 0, backward = 0;
  };
  Times first, next, last;  // of the micro-steps
};
// Drops every choice that another one equals or beats in all figures, so that it does so with any copies of
// neighbours. Of equal choices the first one stays.
void drop_dominated(std::vector<OwnFigures>& list);

class SegmentProfile {
 public:
  // `of_traces`: arena_of_traces. `lives`: those of the segment (segment_lives).
  SegmentProfile(const Graph& graph, const Arena& arena, const Arena& of_traces, size_t segment,
                 const SegmentLives& lives, int threads, Recompute recompute, TraceCache& cache);
  std::vector<OwnFigures> own_figures(const MicroSteps& steps, const Pricing& pricing) const;
  // The variants that own_figures and the copies of neighbours give, in the same order. `picoseconds` is the
  // time that recompute, tiles and copies add to a step.
  std::vector<Variant> variants(const std::vector<OwnFigures>& own, const MicroSteps& steps,
                                const Pricing& pricing, const NeighbourCopies& copies = {}) const;
  // Lower bounds for all micro-batches in a range: every variant at one of these micro-batches keeps at least
  // as many bytes, has at least as high a peak, and takes at least as much time as some variant here. These
  // times include those of the segment's ops. `bytes`: least_bytes(range.fewest).
  std::vector<OwnFigures> least_figures(std::vector<OwnFigures> bytes, const MicroBatches& range,
                                        const Pricing& pricing) const;
  // The bytes of least_figures for every range that begins with this micro-batch.
  std::vector<OwnFigures> least_bytes(int64_t fewest) const;
  std::vector<Variant> least_variants(const std::vector<OwnFigures>& least, const MicroBatches& range,
                                      int64_t global_batch, const Pricing& pricing,
                                      const NeighbourCopies& copies = {}) const;

 private:
  using Rows = SegmentTraces::Rows;
  using Size = SegmentTraces::Size;
  using Life = SegmentTraces::Life;
  using Trace = SegmentTraces::Trace;
  // The variants of a micro-batch.
  struct Option {
    const Trace* trace;
    int64_t tile_rows;
  };
  std::vector<Option> options(int64_t micro_batch) const;
  // Whether figures are exact, or lower bounds that also hold for more samples (bytes) and for fewer (times).
  enum class Figures : uint8_t { exact, least };
  // Sets the bytes of every option.
  void set_bytes(const std::vector<Option>& options, int64_t samples, Figures figures,
                 std::vector<OwnFigures>& list) const;
  // Sets the times of every option in a micro-step. `accumulate`: not the first micro-step of its step.
  void set_times(OwnFigures::Times OwnFigures::*which, const std::vector<Option>& options, int64_t samples,
                 bool accumulate, Figures figures, const Pricing& pricing,
                 std::vector<OwnFigures>& list) const;
  // Sets the times of all micro-steps but the last.
  void set_times(const std::vector<Option>& options, int64_t samples, Figures figures, const Pricing& pricing,
                 std::vector<OwnFigures>& list) const;
  // Bytes of all sizes of the traces.
  std::vector<int64_t> sizes_with(int64_t tile_rows, int64_t samples, Figures figures) const;
  // Variants with the bytes of `own`, the copies of neighbours, and no time.
  std::vector<Variant> bytes_with(const std::vector<OwnFigures>& own, int64_t samples,
                                  const NeighbourCopies& copies) const;
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

  const Graph& graph_;
  const Arena& arena_;
  size_t segment_;
  int threads_;
  std::shared_ptr<const SegmentTraces> traces_;
  LocalNumbers numbers_;
  bool has_forward_fetches_, has_backward_fetches_;  // of its own tensors
};

// The variant of the head at a micro-batch and a number of loss chunks. Sets bytes only. `lives`: those of
// the head.
Variant head_variant(const Graph& graph, const Arena& arena, const SegmentLives& lives, int threads,
                     int64_t samples, int64_t chunks);

}  // namespace stw
