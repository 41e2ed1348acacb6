// Emits instructions of one program and keeps track of values: which buffer holds a tensor now, and how long it lives.
#pragma once
#include "planner/graph/feed_forward.h"
#include "planner/program/program.h"

namespace stw {

class Emitter {
 public:
  // `rows`: 0 for whole samples; else every per-sample tensor has this many rows (generation). `ops`: about how many will
  // be emitted; 0: those of a micro-step.
  Emitter(const Graph& graph, const Arena& arena, int threads, int64_t samples, int64_t rows = 0, size_t ops = 0);

  // A buffer that is filled before the program runs.
  int input(int tensor);
  // Such buffers for all that a sample brings.
  void inputs();
  // Declares that instructions before the emitted ones have made a value of this tensor.
  int assume(int tensor, Phase phase) { return new_value(tensor, all_rows(tensor), phase); }
  int instruction_count() const { return static_cast<int>(program_.instructions.size()); }
  // One kernel call over rows [row_begin, row_begin + rows) of its per-sample operands; 0 rows: over all.
  void emit(int op, Phase phase, bool accumulate, int64_t row_begin, int64_t rows) { emit_ops(op, 1, -1, phase, accumulate, row_begin, rows); }
  void emit(int op, Phase phase, bool accumulate = false) { emit(op, phase, accumulate, 0, 0); }
  // Ops [first, first + count) that are fused. What the first of them makes has a value where it `keeps` it, else it is gone at once.
  void emit_fused(int first, int count, Phase phase, bool keeps, bool accumulate, int64_t row_begin, int64_t rows) {
    emit_ops(first, count, -1, phase, accumulate, row_begin, rows, keeps);
  }
  void emit_fused(int first, int count, Phase phase, bool keeps, bool accumulate = false) { emit_fused(first, count, phase, keeps, accumulate, 0, 0); }

  // Copies a tensor that lies in host memory into a buffer of its own, and back.
  void fetch(int tensor, Phase phase);
  void store(int tensor, Phase phase);
  const Arena& arena() const { return arena_; }
  bool on_host(int tensor) const { return tensor >= 0 && arena_.on_host(tensor); }
  // The tensors in host memory that an op reads; `accumulate` as for `emit`. An op fetches those that were not fetched before.
  std::vector<int> host_operands(int op, Phase phase, bool accumulate) const;
  // What follows belongs to the next stage, with all that the copies of this one have touched alive to its end.
  void end_stage();
  // A buffer lives to the last instruction so far.
  void hold(int buffer);
  // From now on these tensors hold the rows of one tile, or all rows again.
  void set_tiled(const std::vector<int>& tensors, bool tiled) {
    for (int t : tensors) tiled_[static_cast<size_t>(t)] = tiled;
  }
  // What follows works on these elements of a parameter, and on what belongs to them; 0 elements: on all.
  void set_slice(int64_t first, int64_t elements) { first_element_ = first, elements_ = elements; }
  // Gives a tensor the value that `buffer_of` told before it was dropped.
  void attach(int tensor, int buffer) { value_[static_cast<size_t>(tensor)] = buffer; }

  // `ops`, in this order, for one chunk of rows after the other.
  void emit_chunks(const std::vector<int>& ops, const std::vector<Tile>& chunks, Phase phase, bool accumulate);

  // Forward ops [first, first + count), for one tile after the other; `inner` tensors hold the rows of one and are gone at the end.
  void emit_tiles(int first, int count, const std::vector<int>& inner, const std::vector<Tile>& tiles);

  // Ops [op, op + ops) of the update, which one instruction does. `element`: of its first output the one that the first of them
  // fills, each other the next one, or -1 for all.
  void emit_update(int op, int64_t element, int ops = 1) { emit_ops(op, ops, element, Phase::update, false, 0, 0); }

  bool has(int tensor) const { return value_[static_cast<size_t>(tensor)] >= 0; }
  void drop(int tensor) { value_[static_cast<size_t>(tensor)] = -1; }
  int buffer_of(int tensor) const { return value_[static_cast<size_t>(tensor)]; }
  // A buffer that lives through the whole program and keeps its contents from run to run.
  void cache(int tensor) { program_.caches.push_back(input(tensor)); }
  // Follows a value's buffer through `finish`: watched()[i] is then its number in the program.
  void watch(int tensor) { watched_.push_back(buffer_of(tensor)); }
  const std::vector<int>& watched() const { return watched_; }
  void result(int tensor) { program_.logits = buffer_of(tensor); }
  void result_of_tokens(int losses) { program_.losses = buffer_of(losses); }   // that the last instruction reads
  // Rows of all samples, of a tensor and of an op.
  int64_t all_rows(int tensor) const { return rows_ > 0 ? rows_ : samples_ * graph_.rows_of(tensor); }
  int64_t all_rows(const Op& op) const { return rows_ > 0 ? rows_ : samples_ * graph_.rows_of(op); }
  int64_t samples() const { return samples_; }
  // Merges outputs into inputs that end where they begin, and returns the finished program.
  Program finish(uint64_t base);

 private:
  int new_value(int tensor, int64_t rows, Phase phase);
  // Rows [begin, begin + count) of a tensor; a `part`: not all of them.
  struct RowRange { int64_t begin, count; bool part; };
  Operand use(int tensor, const RowRange& rows, Phase phase);
  Operand define(int tensor, const RowRange& rows, Phase phase, int64_t element);
  void emit_ops(int first, int count, int64_t element, Phase phase, bool accumulate, int64_t row_begin, int64_t rows, bool keeps = true);
  uint64_t part_begin(int tensor) const;
  bool holds_part(int tensor) const { return graph_.at(tensor).chunked || tiled_[static_cast<size_t>(tensor)]; }
  void merge_in_place();

  const Graph& graph_;
  const Arena& arena_;
  int threads_;
  int64_t samples_, rows_;
  int64_t first_element_ = 0, elements_ = 0;
  int stage_ = 0;
  std::vector<int> copied_;      // buffers that a copy of this stage reads or fills
  Program program_;
  std::vector<int> value_;       // tensor -> buffer, or -1
  std::vector<Phase> made_in_;   // of a buffer
  std::vector<bool> tiled_;      // tensors
  std::vector<int> watched_;
};

}  // namespace stw
