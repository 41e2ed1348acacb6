// A run from one event to the next: train until there is something to evaluate or to save, do it, go on.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/answers.h"
#include "run/best.h"
#include "run/event_file.h"
#include "base/handles.h"
#include "base/interrupt.h"
#include "run/metrics.h"
#include "base/progress_line.h"
#include "evaluation/rewards.h"
#include "run/run_folder.h"
#include "run/step_check.h"

namespace command {

enum class Learned { tokens, masked_tokens, texts, numbers, words, pairs };   // what steps go over: of a language model, a masked one, a classifier of texts, texts with numbers, of words, a preference
const char* name_of(Learned learned);

struct RunSettings {
  uint64_t steps = 0;              // global batches of the whole run, and the length of the schedule
  std::optional<uint64_t> warmup;  // unset: a tenth of the steps, at most 100
  double learning_rate = 0;        // 0: the optimizer's default
  std::optional<double> min_rate;  // unset: a tenth of it
  uint32_t schedule = STW_SCHEDULE_COSINE;
  uint64_t decay_steps = 0;        // wsd; 0: a fifth of the steps
  uint64_t base_batch = 0;         // 0: learning rates are not scaled
  uint64_t evaluate_every = 250;  // batches; 0: only after the last
  uint64_t evaluation_batches = 20;
  bool evaluates_all = false;      // after the last batch a classifier or a preference on all that is held out, however many batches that are
  std::optional<uint64_t> save_every;  // batches; unset: every ten minutes
  uint64_t check_every = 0;        // batches; 0: no step is made twice
  std::string metric = "loss";     // which evaluation is the best one
  bool keeps_best = false;         // the checkpoint of that one is kept, and its weights are the run's result
  std::optional<uint64_t> patience;   // evaluations without a better one after which the run ends; unset: it does not
  uint64_t keep = 0;               // checkpoints that are kept beside the last one; 0: none
  std::string event_folder;        // of TensorBoard; empty: none
  std::string schedule_change;     // of a run that goes on with another schedule: what has changed; else empty
  std::optional<double> rate_before;   // of the last step that it made
};

// What a run is evaluated on.
struct HeldOut {
  stw_dataset* dataset;
  std::shared_ptr<const Examples> labelled;   // where the model has labels or numbers: all of the dataset, whose held-out part is at its end; else none
  uint32_t task;
  std::vector<std::string> labels;
  std::function<Rewards()> rewards;   // of the pairs that are held out; none where there are no pairs
};

// Why a step made no update, STW_SKIP_*: the end of a sentence.
const char* skip_reason(uint32_t skip);

// Steps of warm-up, said or not.
uint64_t warmup_steps(const RunSettings& settings);

// Throws where the library refuses to run like that; makes no step.
void check_run(const RunSettings& settings, stw_trainer* trainer, stw_dataset* data);

class TrainingRun {
 public:
  // Borrows all of it.
  TrainingRun(const RunSettings& settings, const RunFolder& folder, stw_trainer* trainer, stw_dataset* data,
              const HeldOut& held_out, Learned learned, const stw_plan_info& plan);
  // Trains to the end or to the first signal, saves, and evaluates after the last step. True: to the end. A failure leaves
  // a checkpoint of the last complete step where the trainer stands at one, and says so.
  bool run();
  // Of the signal that stopped it; 0: none did.
  int exit_code() const { return interrupt_.exit_code(); }
  // Of the evaluation after the last step, where there was one.
  std::optional<double> evaluation_loss() const { return evaluation_loss_; }
  // By the metrics, as they are now.
  BestEvaluation best() const;
  // Whether it ended for want of a better evaluation.
  bool has_lost_patience() const { return settings_.patience && best().after >= *settings_.patience; }
  // How many of the last batches had a loss or gradient that is not finite, one after the other.
  uint64_t lost_batches() const { return lost_batches_; }

 private:
  using Clock = std::chrono::steady_clock;
  static int32_t after_step(void* self, const stw_progress* now);
  stw_progress progress() const;
  uint64_t next_event(uint64_t batches) const;
  // `told`: with lines of metrics and progress.
  // False: a signal or a callback stopped it before.
  bool train_until(uint64_t batches, bool told = true);
  void tell_rate(const stw_progress& now);   // of the first step of another schedule
  bool save_due(uint64_t batches) const;
  bool evaluation_due(uint64_t batches) const;
  bool is_evaluated(uint64_t step) const;   // as the metrics say
  // Throws the failure on, with what became of the steps since the last checkpoint.
  [[noreturn]] void rescue(const Failure& failure);
  void evaluate(bool is_last = false);
  Evaluation evaluation_of(uint64_t batches);
  bool has_accuracy() const { return learned_ != Learned::tokens && learned_ != Learned::numbers; }
  void save();
  bool compares() const { return settings_.keeps_best || settings_.patience; }
  void keep_best();        // what the trainer is now
  void find_best();        // of a run that goes on
  void write_events(const Evaluation& evaluation);

  const RunSettings& settings_;
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
  uint64_t saved_batches_;  // of the last checkpoint
  Clock::time_point saved_ = Clock::now();
  std::optional<double> evaluation_loss_;
  bool has_evaluated_ = false;   // after the last step, also where there was no target
  uint64_t best_from_ = 0;   // steps before do not count
  std::optional<EventFile> events_;
  bool has_lost_events_ = false;
};

}  // namespace command
