// The progress of a trainer. Any thread may read it.
#pragma once
#include <cstdint>
#include <mutex>

#include "kernels/contract/kernels.h"

namespace stw {

enum class TrainerPhase : uint8_t { idle, train, evaluate, generate, save, calibrate };

struct Progress {
  TrainerPhase phase = TrainerPhase::idle;
  uint64_t step = 0, batches = 0, skipped = 0, tokens = 0;
  uint64_t samples = 0;  // of all batches: the position in a dataset that is read in order
  double loss = 0, grad_norm = 0, learning_rate = 0, seconds = 0, tokens_per_second = 0;
  double evaluation_loss = 0, evaluation_accuracy = 0;
  double accuracy = 0;  // with a preference: share of the last step's pairs whose chosen text was ahead
  // The current or the last evaluation: all samples, and those already given to the device.
  uint64_t evaluation_samples = 0, evaluated_samples = 0;
  uint64_t evaluation_targets = 0;  // of the last evaluation
  // Tokens of a dataset's samples, without padding: in the last step, and in the last evaluation.
  uint64_t sample_tokens = 0, evaluation_tokens = 0;
  uint64_t micro_steps = 0, micro_steps_done = 0;  // of the current or the last step
  double loss_scale = 1;                           // of the next step
  kernels::Skip skip = kernels::skip_none;         // of the last step
};

// The result of one optimizer step.
struct StepResult {
  kernels::Skip skip = kernels::skip_none;
  uint64_t step = 0, targets = 0;
  double loss = 0, grad_norm = 0, seconds = 0;
  double loss_scale = 1;  // of this step
  double accuracy = 0;    // as in Progress
};

// The trainer's thread writes, any thread reads.
class ProgressBoard {
 public:
  Progress read() const;
  void replace(const Progress& progress);
  TrainerPhase phase() const { return read().phase; }
  void enter(TrainerPhase phase);
  void set_loss_scale(double scale);

  void begin_step(uint64_t micro_steps);
  void count_micro_step();  // also a point at which the call may be cancelled
  // Counts a step and sets result.step, its number. `samples`: of the batch.
  void count_step(StepResult& result, uint64_t samples, double learning_rate, double next_loss_scale);

  void set_sample_tokens(uint64_t tokens);  // of the step that was counted last

  void begin_evaluation(uint64_t samples);
  void count_evaluated(uint64_t samples);  // `samples` more; also a point at which the call may be cancelled
  void end_evaluation(uint64_t targets, uint64_t tokens, double loss, double accuracy);

 private:
  mutable std::mutex mutex_;
  Progress progress_;
};

// Enters a phase for the lifetime of the object. Afterwards the earlier phase continues.
struct InPhase {
  InPhase(ProgressBoard& board, TrainerPhase phase) : board_(board), before_(board.phase()) {
    board.enter(phase);
  }
  ~InPhase() { board_.enter(before_); }
  InPhase(const InPhase&) = delete;

 private:
  ProgressBoard& board_;
  const TrainerPhase before_;
};

}  // namespace stw
