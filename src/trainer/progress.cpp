#include "src/trainer/progress.h"

#include <algorithm>

#include "planner/base/check_in.h"

namespace stw {

Progress ProgressBoard::read() const {
  std::lock_guard lock(mutex_);
  return progress_;
}

void ProgressBoard::replace(const Progress& progress) {
  std::lock_guard lock(mutex_);
  progress_ = progress;
}

void ProgressBoard::enter(TrainerPhase phase) {
  std::lock_guard lock(mutex_);
  progress_.phase = phase;
}

void ProgressBoard::set_loss_scale(double scale) {
  std::lock_guard lock(mutex_);
  progress_.loss_scale = scale;
}

void ProgressBoard::begin_step(uint64_t micro_steps) {
  std::lock_guard lock(mutex_);
  progress_.micro_steps = micro_steps;
  progress_.micro_steps_done = 0;
}

void ProgressBoard::count_micro_step() {
  {
    std::lock_guard lock(mutex_);
    progress_.micro_steps_done += 1;
  }
  check_in(1);
}

void ProgressBoard::count_step(StepResult& result, uint64_t samples, double learning_rate,
                               double next_loss_scale) {
  const bool skipped = result.skip != kernels::skip_none;
  std::lock_guard lock(mutex_);
  progress_.step += !skipped;
  progress_.skipped += skipped;
  progress_.skip = result.skip;
  progress_.loss_scale = next_loss_scale;
  progress_.batches += 1;
  progress_.samples += samples;
  progress_.tokens += skipped ? 0 : result.targets;
  progress_.loss = result.loss;
  progress_.grad_norm = result.grad_norm;
  progress_.accuracy = result.accuracy;
  progress_.sample_tokens = 0;
  progress_.learning_rate = learning_rate;
  progress_.seconds = result.seconds;
  progress_.tokens_per_second = static_cast<double>(result.targets) / std::max(result.seconds, 1e-9);
  result.step = progress_.step;
}

void ProgressBoard::set_sample_tokens(uint64_t tokens) {
  std::lock_guard lock(mutex_);
  progress_.sample_tokens = tokens;
}

void ProgressBoard::begin_evaluation(uint64_t samples) {
  std::lock_guard lock(mutex_);
  progress_.evaluation_samples = samples;
  progress_.evaluated_samples = 0;
}

void ProgressBoard::count_evaluated(uint64_t samples) {
  uint64_t more = 0;
  {
    std::lock_guard lock(mutex_);
    more = std::min(samples, progress_.evaluation_samples - progress_.evaluated_samples);
    progress_.evaluated_samples += more;
  }
  check_in(more);
}

void ProgressBoard::end_evaluation(uint64_t targets, uint64_t tokens, double loss, double accuracy) {
  std::lock_guard lock(mutex_);
  progress_.evaluation_targets = targets;
  progress_.evaluation_tokens = tokens;
  progress_.evaluation_loss = loss;
  progress_.evaluation_accuracy = accuracy;
}

}  // namespace stw
