// A training run: trains until an evaluation or a save is due, does it, and goes on.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/handles.h"
#include "base/interrupt.h"
#include "base/progress_line.h"
#include "evaluation/answers.h"
#include "evaluation/rewards.h"
#include "run/best.h"
#include "run/event_file.h"
#include "run/metrics.h"
#include "run/run_folder.h"
#include "run/step_check.h"

namespace command {

// The units that steps learn: tokens of a language model or hidden tokens of a masked one; texts of a
// classifier or with numbers; words with tags; preference pairs.
enum class Learned { tokens, masked_tokens, texts, numbers, words, pairs, answers };
const char* name_of(Learned learned);

// The flags of the loop.
struct RunFlags {
  std::optional<uint64_t> warmup;  // unset: a tenth of the steps, at most 100
  double learning_rate = 0;        // 0: the optimizer's default
  std::optional<double> min_rate;  // unset: a tenth of learning_rate
  std::string schedule = "cosine";
  uint64_t decay_steps = 0;       // for wsd; 0: a fifth of the steps
  uint64_t base_batch = 0;        // 0: learning rates are not scaled
  uint64_t evaluate_every = 250;  // batches; 0: only after the last one
  uint64_t evaluation_batches = 20;
  // after the last batch, a classifier or preference is evaluated on the whole held-out part
  bool evaluates_all = false;
  std::optional<uint64_t> save_every;  // batches; unset: every ten minutes
  uint64_t check_every = 0;            // batches; 0: steps are not checked
  std::string metric = "loss";         // metric that decides which evaluation is the best
  // keep the checkpoint of the best evaluation; its weights become the result
  bool keeps_best = false;
  // the run ends after this many evaluations without a better one; unset: never
  std::optional<uint64_t> patience;
  uint64_t keep = 0;         // number of recent checkpoints to keep in addition to the last one
  std::string event_folder;  // folder of TensorBoard's events; empty: none
};

struct RunSettings : RunFlags {
  uint64_t steps;  // global batches of the whole run; also the length of the schedule
};

// For a resumed run whose schedule has changed.
struct ScheduleChange {
  std::string options;                // the options that have changed; empty: none
  std::optional<double> rate_before;  // learning rate of the resumed run's last step
};

// The data of a run's evaluations.
struct HeldOut {
  stw_dataset* dataset;
  // For models with labels or numbers: the whole dataset, with the held-out part at its end; else null.
  std::shared_ptr<const Examples> labelled;
  uint32_t task;
  std::vector<std::string> labels;
  std::function<Rewards()> rewards;  // rewards of the held-out pairs; empty if there are no pairs
};

// The reason why a step made no update (STW_SKIP_*), as the end of a sentence.
const char* skip_reason(uint32_t skip);

// Steps of warm-up, given or by default.
uint64_t warmup_steps(const RunSettings& settings);

// Throws a Failure if the library refuses these settings. Makes no step.
void check_run(const RunSettings& settings, stw_trainer* trainer, stw_dataset* data);

class TrainingRun {
 public:
  // Borrows all arguments.
  TrainingRun(const RunSettings& settings, const ScheduleChange& change, const RunFolder& folder,
              stw_trainer* trainer, stw_dataset* data, const HeldOut& held_out, Learned learned,
              const stw_plan_info& plan);
  // Trains to the end or to the first signal, saves, and evaluates after the last step. Returns whether the
  // end was reached. After a failure, saves a checkpoint if the trainer is at the end of a complete step,
  // and the message says so.
  bool run();
  // The exit code for the signal that stopped the run; 0 if none did.
  int exit_code() const { return interrupt_.exit_code(); }
  // The loss of the evaluation after the last step, if there was one.
  std::optional<double> evaluation_loss() const { return evaluation_loss_; }
  // The best evaluation by the metrics so far.
  BestEvaluation best() const;
  // Whether the run ended because evaluations no longer improved.
  bool has_lost_patience() const { return settings_.patience && best().after >= *settings_.patience; }
  // The number of most recent consecutive batches whose loss or gradient was not finite.
  uint64_t lost_batches() const { return lost_batches_; }

 private:
  using Clock = std::chrono::steady_clock;
  static int32_t after_step(void* self, const stw_progress* now);
  stw_progress progress() const;
  uint64_t next_event(uint64_t batches) const;
  // Returns false if a signal or a callback stopped it. `reports`: writes metrics and progress.
  bool train_until(uint64_t batches, bool reports = true);
  void tell_rate(const stw_progress& now);  // after the first step of a changed schedule
  bool save_due(uint64_t batches) const;
  bool evaluation_due(uint64_t batches) const;
  bool is_evaluated(uint64_t step) const;  // according to the metrics
  // Saves if possible, and throws the failure with a note on what was saved.
  [[noreturn]] void rescue(const Failure& failure);
  void evaluate(bool is_last = false);
  Evaluation evaluation_of(uint64_t batches);
  bool has_accuracy() const {
    return learned_ != Learned::tokens && learned_ != Learned::numbers && learned_ != Learned::answers;
  }
  void save();
  bool compares() const { return settings_.keeps_best || settings_.patience; }
  void keep_best();  // of the trainer's current state
  void find_best();  // for a resumed run
  void write_events(const Evaluation& evaluation);

  const RunSettings& settings_;
  const ScheduleChange& change_;
  const RunFolder& folder_;
  stw_trainer* const trainer_;
  stw_dataset* const data_;
  const HeldOut& held_out_;
  const Learned learned_;
  const uint64_t global_batch_;
  const bool is_fp16_;
  const stw_progress start_;
  Interrupt interrupt_;
  Metrics metrics_;
  ProgressLine line_;
  StepCheck check_;
  uint64_t skipped_, lost_batches_ = 0;
  uint64_t saved_batches_;  // batches of the last checkpoint
  Clock::time_point saved_ = Clock::now();
  std::optional<double> evaluation_loss_;
  bool has_evaluated_ = false;  // after the last step, even if there was no target
  uint64_t best_from_ = 0;      // evaluations of earlier steps do not count
  std::optional<EventFile> events_;
  bool has_lost_events_ = false;
};

}  // namespace command
