#include "run/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "base/work_line.h"
#include "evaluation/evaluation_line.h"
#include "run/checkpoint_header.h"

namespace command {
namespace {

constexpr std::chrono::minutes save_interval{10};
// A step that is not finite does not change the parameters. After this many in a row, the following ones will
// not be finite either. The loss scale of fp16 reaches its minimum earlier.
constexpr uint64_t diverged_batches = 100;

uint64_t next_multiple(uint64_t of, uint64_t after) { return of ? (after / of + 1) * of : UINT64_MAX; }

// The metric to show to people in addition to the loss.
std::string quality_of(const Evaluation& evaluation) {
  if (evaluation.rmse) return fmt::format("RMSE {:.4g}", *evaluation.rmse);
  if (const auto exact = evaluation.figure("exact"))
    return fmt::format("exact match {:.2f}, F1 {:.2f}", *exact, evaluation.figure("f1").value_or(0));
  if (!evaluation.accuracy) return fmt::format("perplexity {:.4g}", std::exp(evaluation.loss));
  if (const auto margin = evaluation.figure("reward_margin"))
    return fmt::format("accuracy {:.4f}, reward margin {:.4g}", *evaluation.accuracy, *margin);
  const auto macro = evaluation.figure("f1_macro"), f1 = evaluation.figure("f1");
  return fmt::format("accuracy {:.4f}{}", *evaluation.accuracy,
                     macro ? fmt::format(", F1 {:.4f} macro", *macro)
                     : f1  ? fmt::format(", F1 {:.4f}", *f1)
                           : "");
}

bool has_tokens(Learned learned) { return learned == Learned::tokens || learned == Learned::masked_tokens; }

stw_progress progress_of(const stw_trainer* trainer) {
  return query<stw_progress>(stw_trainer_progress, trainer);
}

uint32_t schedule_of(const std::string& name) {
  if (name == "linear") return STW_SCHEDULE_LINEAR;
  if (name == "constant") return STW_SCHEDULE_CONSTANT;
  if (name == "wsd") return STW_SCHEDULE_WSD;
  return name == "inverse-root" ? STW_SCHEDULE_INVERSE_ROOT : STW_SCHEDULE_COSINE;
}

stw_run_options run_options(const RunSettings& settings, uint64_t until) {
  auto options = sized<stw_run_options>();
  options.until = until;
  options.total = settings.steps;
  options.warmup = warmup_steps(settings);
  options.learning_rate = settings.learning_rate;
  if (settings.min_rate) {
    options.set_mask = STW_SET_MIN_RATE;
    options.min_rate = *settings.min_rate;
  }
  options.schedule = schedule_of(settings.schedule);
  options.decay_steps = settings.decay_steps;
  options.base_batch = settings.base_batch;
  return options;
}

}  // namespace

const char* name_of(Learned learned) {
  switch (learned) {
    case Learned::tokens: return "tokens";
    case Learned::masked_tokens: return "hidden tokens";
    case Learned::texts:
    case Learned::answers:
    case Learned::numbers: return "texts";
    case Learned::words: return "words";
    case Learned::pairs: break;
  }
  return "pairs";
}

const char* skip_reason(uint32_t skip) {
  switch (skip) {
    case STW_SKIP_NO_TARGET: return "it has no target";
    case STW_SKIP_OUTLIER: return "its loss or gradient norm is an outlier";
    default: return "its loss or gradient is not finite";
  }
}

uint64_t warmup_steps(const RunSettings& settings) {
  return settings.warmup.value_or(std::min<uint64_t>(100, settings.steps / 10));
}

void check_run(const RunSettings& settings, stw_trainer* trainer, stw_dataset* data) {
  const stw_run_options no_step = run_options(settings, 0);
  call([&](stw_error* error) { return stw_trainer_run(trainer, data, &no_step, error); });
}

TrainingRun::TrainingRun(const RunSettings& settings, const ScheduleChange& change, const RunFolder& folder,
                         stw_trainer* trainer, stw_dataset* data, const HeldOut& held_out, Learned learned,
                         const stw_plan_info& plan)
    : settings_(settings),
      change_(change),
      folder_(folder),
      trainer_(trainer),
      data_(data),
      held_out_(held_out),
      learned_(learned),
      global_batch_(plan.global_batch),
      is_fp16_(plan.precision == STW_PRECISION_FP16),
      start_(progress_of(trainer)),
      metrics_(folder.metrics(), {learned == Learned::pairs, is_fp16_, plan.global_batch * plan.sequence,
                                  has_tokens(learned) ? nullptr : name_of(learned),
                                  tokens_so_far(read_text_if_there(folder.metrics()).value_or(""))}),
      line_(start_.batches, settings.steps, plan.peak, plan.budget, std::string(name_of(learned)) + "/s",
            plan.global_batch * plan.sequence),
      check_(settings.check_every, folder, trainer),
      skipped_(start_.skipped),
      saved_batches_(start_.batches) {
  if (start_.batches > 0) interrupt_.saved();  // the checkpoint to resume from
  if (!settings.event_folder.empty())
    events_.emplace(settings.event_folder, start_.batches > 0 ? start_.step + 1 : 0);
}

stw_progress TrainingRun::progress() const { return progress_of(trainer_); }

int32_t TrainingRun::after_step(void* user, const stw_progress* now) {
  auto& self = *static_cast<TrainingRun*>(user);
  const bool skipped = now->skipped != self.skipped_;
  self.skipped_ = now->skipped;
  self.lost_batches_ = skipped && now->skip_reason == STW_SKIP_NOT_FINITE ? self.lost_batches_ + 1 : 0;
  self.metrics_.step(*now, skipped);
  if (self.events_ && !skipped) {
    self.events_->add(now->step, "train/loss", now->loss);
    self.events_->add(now->step, "train/grad_norm", now->grad_norm);
    self.events_->add(now->step, "train/lr", now->learning_rate);
    if (self.learned_ == Learned::pairs) self.events_->add(now->step, "train/accuracy", now->accuracy);
    self.has_lost_events_ = !self.events_->write();
  }
  self.line_.step(*now);
  if (!skipped && now->step == self.start_.step + 1) self.tell_rate(*now);
  if (skipped)
    self.line_.say(fmt::format("batch {}: no update, {}{} ({} so far)", grouped(now->batches),
                               skip_reason(now->skip_reason),
                               self.is_fp16_ ? fmt::format("; the loss scale is {:g}", now->loss_scale) : "",
                               grouped(now->skipped)));
  return self.interrupt_.requested() || self.metrics_.has_failed() || self.has_lost_events_ ||
         self.lost_batches_ == diverged_batches || self.save_due(now->batches);
}

void TrainingRun::tell_rate(const stw_progress& now) {
  if (change_.options.empty() || !change_.rate_before || *change_.rate_before == now.learning_rate) return;
  line_.say(fmt::format(
      "step {}: the learning rate goes from {:.4g} to {:.4g}, because the schedule has changed: {}",
      grouped(now.step), *change_.rate_before, now.learning_rate, change_.options));
}

bool TrainingRun::save_due(uint64_t batches) const {
  if (batches == settings_.steps) return false;  // the end of the run saves anyway
  if (!settings_.save_every) return Clock::now() - saved_ >= save_interval;
  return *settings_.save_every && batches % *settings_.save_every == 0;
}

bool TrainingRun::evaluation_due(uint64_t batches) const {  // the last evaluation is made at the end
  return settings_.evaluate_every && batches > 0 && batches % settings_.evaluate_every == 0 &&
         batches < settings_.steps;
}

bool TrainingRun::is_evaluated(uint64_t step) const {
  const std::vector<MetricPoint> evaluations = read_metrics(read_text(folder_.metrics())).evaluations;
  return !evaluations.empty() && evaluations.back().step == static_cast<double>(step);
}

uint64_t TrainingRun::next_event(uint64_t batches) const {
  return std::min({settings_.steps, next_multiple(settings_.evaluate_every, batches),
                   next_multiple(settings_.save_every.value_or(0), batches),
                   next_multiple(settings_.check_every, batches)});
}

// If saving fails too, the original failure is thrown.
void TrainingRun::rescue(const Failure& failure) {
  line_.finish();
  const uint64_t batches = progress().batches;
  if (batches == saved_batches_) throw failure;
  try {
    save();
  } catch (const Failure&) { throw failure; }
  const char* const lost = metrics_.write_rest() ? "" : ", and its last line is missing";
  throw Failure(failure.exit_code, fmt::format("{}; saved after batch {}, --resume {} continues from there{}",
                                               failure.what(), grouped(batches), folder_.path(), lost));
}

bool TrainingRun::train_until(uint64_t batches, bool reports) {
  stw_run_options options = run_options(settings_, batches);
  if (reports) {
    options.progress = after_step;
    options.progress_user = this;
  }
  try {
    const StepsDrawnBy line([this](const stw_watch_info& now) { line_.within(now); });
    interrupt_.cancels(trainer_);
    if (!interrupt_.requested())
      call([&](stw_error* error) { return stw_trainer_run(trainer_, data_, &options, error); },
           STW_CANCELLED);
    interrupt_.cancels(nullptr);
    metrics_.check();
    if (has_lost_events_)
      throw Failure(exit_failed, fmt::format("{}: cannot write: {}", events_->path(), std::strerror(errno)));
    if (lost_batches_ == diverged_batches)
      throw Failure(exit_failed,
                    fmt::format("the last {} batches changed nothing, because their loss or gradients are "
                                "not finite: the run has diverged; give a smaller --lr, or a longer --warmup",
                                lost_batches_));
  } catch (const Failure& failure) {
    interrupt_.cancels(nullptr);
    rescue(failure);
  }
  return progress().batches == batches;
}

// With labels or numbers, the whole held-out part is evaluated text by text, which gives metrics in addition
// to the loss.
Evaluation TrainingRun::evaluation_of(uint64_t batches) {
  const stw_dataset_info info = query<stw_dataset_info>(stw_dataset_query, held_out_.dataset);
  Evaluation evaluation;
  if (held_out_.labelled && batches * global_batch_ >= info.evaluation_samples) {
    const Answered answered = answer_documents(trainer_, *held_out_.labelled, info.training_tokens,
                                               held_out_.task, held_out_.labels);
    evaluation.loss = answered.loss;
    evaluation.accuracy = answered.accuracy;
    evaluation.figures = answered.figures;
    evaluation.has_target = answered.count > 0;
  } else {
    call([&](stw_error* error) {
      const EvaluationLine line(trainer_, "evaluation", false);
      return stw_trainer_evaluate(trainer_, held_out_.dataset, batches, &evaluation.loss, error);
    });
    if (has_accuracy()) evaluation.accuracy = progress().evaluation_accuracy;
    evaluation.has_target = progress().evaluation_targets > 0;
    if (held_out_.rewards && batches * global_batch_ >= info.evaluation_samples &&
        std::isfinite(evaluation.loss)) {
      const Rewards rewards = held_out_.rewards();
      evaluation.figures = {{"reward_margin", rewards.margin()},
                            {"reward_chosen", rewards.chosen},
                            {"reward_rejected", rewards.rejected}};
    }
  }
  // removes the sign of NaN
  if (std::isnan(evaluation.loss)) evaluation.loss = std::numeric_limits<double>::quiet_NaN();
  if (learned_ == Learned::numbers) evaluation.rmse = std::sqrt(evaluation.loss);
  return evaluation;
}

void TrainingRun::evaluate(bool is_last) {
  const uint64_t all =
      (query<stw_dataset_info>(stw_dataset_query, held_out_.dataset).evaluation_samples + global_batch_ - 1) /
      global_batch_;
  // Evaluations that are compared use the same data.
  const bool takes_all = learned_ != Learned::tokens && settings_.evaluates_all && (is_last || compares()),
             needs_all = compares() && metric_row(settings_.metric).needs_answers;
  const uint64_t count = takes_all || needs_all ? all : settings_.evaluation_batches;
  Evaluation evaluation;
  interrupt_.cancels(trainer_);
  try {
    try {
      evaluation = evaluation_of(count);
    } catch (const Failure& failure) {
      if (failure.status == STW_CANCELLED) return interrupt_.cancels(nullptr);
      if (failure.status != STW_NON_FINITE) throw;
      evaluation.loss = std::numeric_limits<double>::quiet_NaN();
    }
    interrupt_.cancels(nullptr);
    has_evaluated_ = true;
    if (!evaluation.has_target) {
      metrics_.no_evaluation(progress().step);
      metrics_.check();
      return line_.say(fmt::format("step {}: no evaluation: nothing is learned of the held-out part",
                                   grouped(progress().batches)));
    }
    evaluation_loss_ = evaluation.loss;
    metrics_.evaluation(progress().step, evaluation);
    metrics_.check();
    if (events_) write_events(evaluation);
  } catch (const Failure& failure) { rescue(failure); }
  const BestEvaluation now = compares() ? best() : BestEvaluation();
  const bool is_best = now.best && now.after == 0;
  line_.say(fmt::format("step {}: evaluation loss {:.4f} ({}){}", grouped(progress().batches),
                        evaluation.loss, quality_of(evaluation), is_best ? ", the best so far" : ""));
  if (is_best && settings_.keeps_best) keep_best();
}

void TrainingRun::write_events(const Evaluation& evaluation) {
  const uint64_t step = progress().step;
  events_->add(step, "eval/loss", evaluation.loss);
  for (const auto& [name, value] :
       {std::pair{"eval/accuracy", evaluation.accuracy}, {"eval/rmse", evaluation.rmse}})
    if (value) events_->add(step, name, *value);
  for (const auto& [name, value] : evaluation.figures) events_->add(step, "eval/" + name, value);
  if (!events_->write())
    throw Failure(exit_failed, fmt::format("{}: cannot write: {}", events_->path(), std::strerror(errno)));
}

BestEvaluation TrainingRun::best() const {
  return best_evaluation(read_text(folder_.metrics()), metric_row(settings_.metric), best_from_);
}

void TrainingRun::keep_best() {
  if (saved_batches_ != progress().batches) save();
  if (!folder_.keep_best())
    long_call([&](stw_error* error) {
      return stw_trainer_save(trainer_, folder_.best_checkpoint().c_str(), error);
    });
}

// The run may have ended after its metrics named a best evaluation and before the checkpoint of that
// evaluation was kept. If the trainer was restored to that step, keeps its checkpoint now. Otherwise its
// weights are lost, and only evaluations from the resumed step on can be the best one.
void TrainingRun::find_best() {
  const BestEvaluation of_run = best();
  if (!settings_.keeps_best || !of_run.best) return;
  const auto header =
      is_there(folder_.best_checkpoint()) ? checkpoint_header(folder_.best_checkpoint()) : std::nullopt;
  if (header && json_integer(*header, "", "step") == of_run.best->step) return;
  if (of_run.best->step == start_.step) return keep_best();
  best_from_ = start_.step;
  line_.say(
      fmt::format("the weights of the best evaluation so far, at step {}, were not kept; that evaluation "
                  "does not count",
                  grouped(of_run.best->step)));
}

void TrainingRun::save() {
  long_call(
      [&](stw_error* error) { return stw_trainer_save(trainer_, folder_.checkpoint().c_str(), error); });
  saved_ = Clock::now();
  saved_batches_ = progress().batches;
  if (settings_.keep > 0 && !folder_.keep_checkpoint(saved_batches_, settings_.keep))
    long_call([&](stw_error* error) {
      return stw_trainer_save(trainer_, folder_.kept_checkpoint(saved_batches_).c_str(), error);
    });
  interrupt_.saved();
  folder_.forget_replaced();
}

bool TrainingRun::run() {
  const bool evaluates =
      query<stw_dataset_info>(stw_dataset_query, held_out_.dataset).evaluation_tokens > 0 &&
      settings_.evaluation_batches > 0;
  uint64_t batches = start_.batches;
  if (start_.batches > 0) find_best();
  // the run ended before this evaluation
  if (evaluates && evaluation_due(batches) && !is_evaluated(start_.step)) evaluate();
  bool ends_early = has_lost_patience();
  while (batches < settings_.steps && !interrupt_.requested() && !ends_early) {
    if (check_.due(batches))
      check_.run([&] { return train_until(batches + 1, false); }, [&] { return train_until(batches + 1); });
    else train_until(next_event(batches));
    batches = progress().batches;
    if (evaluates && evaluation_due(batches) && !interrupt_.requested()) evaluate();
    if (save_due(batches) && saved_batches_ != batches) save();
    ends_early = has_lost_patience();
  }
  if (!ends_early) evaluation_loss_.reset();
  has_evaluated_ = false;
  if (check_.checked() > 0)
    line_.say(fmt::format("{} steps were made twice, with the same bytes", grouped(check_.checked())));
  line_.finish();
  save();  // before anything that may fail or be killed
  if (evaluates && batches == settings_.steps && !interrupt_.requested()) evaluate(true);
  return ends_early || (batches == settings_.steps && (has_evaluated_ || !evaluates));
}

}  // namespace command
