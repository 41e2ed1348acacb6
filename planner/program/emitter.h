// Emits the instructions of one program. Tracks which buffer holds a tensor at each moment, and how long that
// buffer lives.
#pragma once
#include <algorithm>
#include <map>

#include "planner/graph/feed_forward.h"
#include "planner/program/program.h"

namespace stw {

class Emitter {
 public:
  // `rows`: 0 for whole samples; otherwise every per-sample tensor has this many rows (generation). `ops`: an
  // estimate of the ops to emit; 0: those of a micro-step.
  Emitter(const Graph& graph, const Arena& arena, int threads, int64_t samples, int64_t rows = 0,
          size_t ops = 0);

  // Adds a buffer that is filled before the program runs.
  int input(int tensor);
  // The same for all inputs of a sample.
  void inputs();
  // Declares that earlier instructions, which are not emitted here, have computed this tensor.
  int assume(int tensor, Phase phase) { return new_value(tensor, all_rows(tensor), phase); }
  int instruction_count() const { return static_cast<int>(program_.instructions.size()); }
  // Emits one kernel call over rows [row_begin, row_begin + rows) of its per-sample operands. 0 rows: all.
  void emit(int op, Phase phase, bool accumulate, int64_t row_begin, int64_t rows) {
    emit_ops(op, 1, -1, phase, accumulate, row_begin, rows);
  }
  void emit(int op, Phase phase, bool accumulate = false) { emit(op, phase, accumulate, 0, 0); }
  // Emits the fused ops [first, first + count). If `keeps`, the output of the first op gets a buffer;
  // otherwise it is never stored.
  void emit_fused(int first, int count, Phase phase, bool keeps, bool accumulate, int64_t row_begin,
                  int64_t rows) {
    emit_ops(first, count, -1, phase, accumulate, row_begin, rows, keeps);
  }
  void emit_fused(int first, int count, Phase phase, bool keeps, bool accumulate = false) {
    emit_fused(first, count, phase, keeps, accumulate, 0, 0);
  }

  // Copies a tensor from host memory into a buffer of its own, and back.
  void fetch(int tensor, Phase phase);
  void store(int tensor, Phase phase);
  const Arena& arena() const { return arena_; }
  bool on_host(int tensor) const { return tensor >= 0 && arena_.on_host(tensor); }
  // The tensors in host memory that an op reads. `accumulate` as for `emit`. Before the op is emitted, those
  // that are not on the device are fetched.
  std::vector<int> host_operands(int op, Phase phase, bool accumulate) const;
  // Ends the stage (program.h). All buffers that its copies read or fill live to the end of the stage.
  void end_stage();
  // Keeps a buffer alive up to the last instruction so far.
  void hold(int buffer);
  // Keeps a buffer alive beyond the last instruction so far, so that no output of that takes its memory.
  void outlive(int buffer) {
    Buffer& b = program_.buffers[buffer];
    b.last = std::max(b.last, instruction_count());
  }
  // From now on these tensors hold the rows of one tile (`tiled`) or all rows.
  void set_tiled(const std::vector<int>& tensors, bool tiled) {
    for (int t : tensors) tiled_[t] = tiled;
  }
  // From now on instructions work on these elements of a parameter and of its gradient and states. 0
  // elements: on all.
  void set_slice(int64_t first, int64_t elements) { first_element_ = first, elements_ = elements; }
  // Sets the buffer of a tensor to the one that `buffer_of` returned before the tensor was dropped.
  void attach(int tensor, int buffer) { value_[tensor] = buffer; }

  // Emits `ops`, in this order, for each chunk of rows.
  void emit_chunks(const std::vector<int>& ops, const std::vector<Tile>& chunks, Phase phase,
                   bool accumulate);

  // Emits forward ops [first, first + count) for each tile. The `inner` tensors hold the rows of one tile,
  // and are dropped at the end.
  void emit_tiles(int first, int count, const std::vector<int>& inner, const std::vector<Tile>& tiles);

  // Emits the update's ops [op, op + ops) as one instruction. `element`: the element of the first output that
  // the first op fills; each further op fills the next one. -1: all elements.
  void emit_update(int op, int64_t element, int ops = 1) {
    emit_ops(op, ops, element, Phase::update, false, 0, 0);
  }

  bool has(int tensor) const { return value_[tensor] >= 0; }
  void drop(int tensor) { value_[tensor] = -1; }
  int buffer_of(int tensor) const { return value_[tensor]; }
  // Adds a buffer that lives through the whole program and keeps its contents from run to run.
  void cache(int tensor) { program_.caches.push_back(input(tensor)); }
  // Remembers a tensor's buffer: after `finish`, watched()[i] is the index in the program of the i-th
  // remembered buffer.
  void watch(int tensor) { watched_.push_back(buffer_of(tensor)); }
  const std::vector<int>& watched() const { return watched_; }
  void result(int tensor) { program_.logits = buffer_of(tensor); }
  // `losses` must be an operand of the last instruction.
  void result_of_tokens(int losses) { program_.losses = buffer_of(losses); }
  // Rows of all samples, for a tensor or an op.
  int64_t all_rows(int tensor) const { return rows_ > 0 ? rows_ : samples_ * graph_.rows_of(tensor); }
  int64_t all_rows(const Op& op) const { return rows_ > 0 ? rows_ : samples_ * graph_.rows_of(op); }
  int64_t samples() const { return samples_; }
  // Lets outputs take the memory of inputs that die in the same instruction. Returns the finished program.
  Program finish(uint64_t base);

 private:
  int new_value(int tensor, int64_t rows, Phase phase);
  // Rows [begin, begin + count) of a tensor. `part`: not all of them.
  struct RowRange {
    int64_t begin, count;
    bool part;
  };
  Operand use(int tensor, const RowRange& rows, Phase phase);
  Operand define(int tensor, const RowRange& rows, Phase phase, int64_t element);
  void emit_ops(int first, int count, int64_t element, Phase phase, bool accumulate, int64_t row_begin,
                int64_t rows, bool keeps = true);
  uint64_t part_begin(int tensor) const;
  bool holds_part(int tensor) const { return graph_.at(tensor).chunked || tiled_[tensor]; }
  void merge_in_place();

  const Graph& graph_;
  const Arena& arena_;
  int threads_;
  int64_t samples_, rows_;
  int64_t first_element_ = 0, elements_ = 0;
  int stage_ = 0;
  std::vector<int> copied_;       // buffers that a copy of this stage reads or fills
  std::map<int, int> copied_in_;  // such buffers of earlier stages, with the last of these stages
  Program program_;
  std::vector<int> value_;      // tensor -> buffer, or -1
  std::vector<Phase> made_in_;  // by buffer
  std::vector<bool> tiled_;     // by tensor
  std::vector<int> watched_;
};

}  // namespace stw
