// Emits instructions of one program and keeps track of values: which buffer holds a tensor now, and how long it lives.
#pragma once
#include "planner/program.h"

namespace stw {

class Emitter {
 public:
  // `rows`: 0 for whole samples; else every per-sample tensor has this many rows (generation). `ops`: about how many will
  // be emitted; 0: those of a micro-step.
  Emitter(const Graph& graph, const Arena& arena, int threads, int64_t samples, int64_t rows = 0, size_t ops = 0);

  // A buffer that is filled before the program runs.
  int input(int tensor);
  // A value that instructions before these have made.
  int assume(int tensor, Phase phase) { return new_value(tensor, all_rows(), phase); }
  int instruction_count() const { return static_cast<int>(program_.instructions.size()); }
  // One kernel call over rows [row_begin, row_begin + rows) of its per-sample operands.
  void emit(int op, Phase phase, bool accumulate, int64_t row_begin, int64_t rows);
  void emit(int op, Phase phase, bool accumulate = false) { emit(op, phase, accumulate, 0, all_rows()); }

  // `ops`, in this order, for one chunk of rows after the other.
  void emit_chunks(const std::vector<int>& ops, int64_t chunks, Phase phase, bool accumulate);

  // An op of the update. `element`: the element of its first output that it fills, or -1 for all.
  void emit_update(int op, int64_t element) {
    element_ = element;
    emit(op, Phase::update);
  }

  bool has(int tensor) const { return value_[static_cast<size_t>(tensor)] >= 0; }
  void drop(int tensor) { value_[static_cast<size_t>(tensor)] = -1; }
  int buffer_of(int tensor) const { return value_[static_cast<size_t>(tensor)]; }
  // A buffer that lives through the whole program and keeps its contents from run to run.
  void cache(int tensor) { program_.caches.push_back(input(tensor)); }
  // Follows a value's buffer through `finish`: watched()[i] is then its number in the program.
  void watch(int tensor) { watched_.push_back(buffer_of(tensor)); }
  const std::vector<int>& watched() const { return watched_; }
  void result(int tensor) { program_.logits = buffer_of(tensor); }
  int64_t all_rows() const { return rows_ > 0 ? rows_ : samples_ * graph_.sequence; }
  // Merges outputs into inputs that end where they begin, and returns the finished program.
  Program finish(uint64_t base);

 private:
  int new_value(int tensor, int64_t rows, Phase phase);
  Operand use(int tensor, int64_t row_begin, int64_t rows, Phase phase);
  Operand define(int tensor, int64_t row_begin, int64_t rows, Phase phase);
  uint64_t row_bytes(int tensor) const;
  void merge_in_place();

  const Graph& graph_;
  const Arena& arena_;
  int threads_;
  int64_t samples_, rows_;
  int64_t element_ = -1;
  Program program_;
  std::vector<int> value_;       // tensor -> buffer, or -1
  std::vector<Phase> made_in_;   // of a buffer
  std::vector<int> watched_;
};

}  // namespace stw
