// `stowage train`: checks everything that can be wrong before the first step, makes the steps, and writes
// the results.
#include "run/train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/folder_lock.h"
#include "base/kept_options.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/work_line.h"
#include "data/hold_out.h"
#include "evaluation/reference.h"
#include "plans/memory_in_use.h"
#include "run/loss_curve.h"
#include "run/model_card.h"
#include "run/run_settings.h"
#include "run/show_examples.h"
#include "run/train_checks.h"
#include "run/train_report.h"
#include "run/train_run.h"

namespace command {
namespace {

Trainer make_trainer(const TrainRun& run, stw_device* device, const Plan& plan) {
  const TrainerFlags& flags = run.trainer;
  auto options = sized<stw_trainer_options>();
  options.seed = run.model.seed;
  options.set_mask |= STW_SET_TRAINER_SEED;
  options.watch = work_watch();
  const auto set = [&](const std::optional<float>& value, float& field, uint32_t bit) {
    if (!value) return;
    field = *value;
    options.set_mask |= bit;
  };
  set(run.plan.clip, options.clip_norm, STW_SET_CLIP_NORM);
  set(flags.beta1, options.beta1, STW_SET_BETA1);
  set(flags.beta2, options.beta2, STW_SET_BETA2);
  set(flags.weight_decay, options.weight_decay, STW_SET_WEIGHT_DECAY);
  set(flags.momentum, options.momentum, STW_SET_MOMENTUM);
  options.nesterov = flags.nesterov;
  options.label_smoothing = flags.label_smoothing;
  options.z_loss = flags.z_loss;
  options.outlier_limit = flags.outlier_limit;
  set_preference(options, flags.preference);
  options.loss_scale = flags.loss_scale.value_or(0);
  options.non_finite = flags.non_finite == "stop" ? STW_NON_FINITE_STOP : STW_NON_FINITE_SKIP;
  stw_trainer* trainer = nullptr;
  long_call([&](stw_error* error) {
    return stw_trainer_create(&trainer, device, run.opened.get(), plan.get(), &options, error);
  });
  return Trainer(trainer);
}

// A run in a new folder must not replace or remove the files that it reads.
void refuse_to_replace_files(const TrainRun& run, const RunFolder& out) {
  if (is_same(run.model.source, out.path()))
    throw Failure(exit_failed,
                  fmt::format("--out {}: this is the model's own folder, which would be replaced", run.out));
  std::vector<std::pair<const char*, const std::string*>> read{{"--model", &run.model.source},
                                                               {"--weights", &run.model.weights},
                                                               {"--adapter", &run.model.adapter},
                                                               {"--plan", &run.plan_file},
                                                               {"--resume", &run.resume}};
  for (const DataFile& file : run.data.source.files()) read.emplace_back("--data", &file.path);
  for (const std::string& file : run.evaluation_files) read.emplace_back("--eval-data", &file);
  for (const auto& [flag, path] : read)
    if (run.overwrite ? out.holds(*path) : path != &run.plan_file && out.writes(*path))
      throw Failure(exit_failed,
                    fmt::format("{} {}: lies in --out {}, which would be replaced; give another --out", flag,
                                *path, run.out));
}

// Makes the folder and locks it: until the lock ends, no other process writes there. Throws a Failure if the
// run would replace another one without --overwrite.
std::unique_ptr<FolderLock> take_folder(const TrainRun& run, const RunFolder& out) {
  const bool same = run.resumes() && is_same(run.resume, out.path());
  if (same && run.overwrite)
    throw Failure(
        exit_usage,
        fmt::format(
            "--overwrite: --resume {} continues the run in that folder; leave it out, or give another --out",
            run.resume));
  if (!same) refuse_to_replace_files(run, out);
  out.make_writable();
  out.undo_set_aside();
  auto lock = std::make_unique<FolderLock>(out.path());
  if (!same && !run.overwrite) out.refuse_to_replace();
  out.remove_stale();
  return lock;
}

void make_room(const RunFolder& out) {
  out.set_aside();
  if (const std::string aside = out.replaced().path(); is_folder(aside))
    tell("replacing   an earlier run, which is kept in {} until this run has saved\n", aside);
}

// Restores the trainer from the run's checkpoint. Returns the lines of metrics up to it.
std::string restore(const TrainRun& run, uint64_t steps, const Trainer& trainer, const RunFolder& out) {
  const RunFolder from(run.resume);
  long_call(
      [&](stw_error* error) { return stw_trainer_restore(trainer.get(), from.checkpoint().c_str(), error); });
  const stw_progress now = query(trainer);
  if (now.batches > steps)
    throw Failure(exit_failed, fmt::format("{} stands at {} batches, past --steps {}", from.checkpoint(),
                                           grouped(now.batches), grouped(steps)));
  const std::string metrics = read_text_if_there(from.metrics()).value_or("");
  if (!is_same(from.path(), out.path())) make_room(out);
  tell("continuing  from {} at step {}\n", from.checkpoint(), grouped(now.step));
  return Metrics::kept(metrics, now.step, now.batches, now.batches < steps);
}

// How a run gets so many evaluations before that of its last step.
std::string advice_for_evaluations(const RunSettings& run, uint64_t before_last) {
  before_last = std::clamp<uint64_t>(before_last, 1, UINT64_MAX - 1);
  const uint64_t longest = (run.steps - 1) / before_last;
  return longest > 0 ? fmt::format("give an --eval-every of at most {}", longest)
                     : fmt::format("give --steps {} or more, and --eval-every 1", before_last + 1);
}

// Warns if the run has too few evaluations for --keep-best or --patience to have an effect.
void warn_of_few_evaluations(const RunSettings& run) {
  if (!run.keeps_best && !run.patience) return;
  const uint64_t before_last = run.evaluate_every ? (run.steps - 1) / run.evaluate_every
                                                  : 0;  // the evaluation after the last step is always made
  const std::string how_often = fmt::format("--eval-every {}", run.evaluate_every);
  if (run.keeps_best && before_last == 0)
    complain(
        "stowage: warning: --keep-best: the run has {} steps and {}, so it is evaluated only after its last "
        "step, and the weights of that step are written; {}",
        grouped(run.steps), how_often, advice_for_evaluations(run, 1));
  if (run.patience && before_last <= *run.patience)
    complain(
        "stowage: warning: --patience {}: the run has {} steps and {}, which makes {} evaluation{} before "
        "the last one; it takes {} to end a run: {}",
        *run.patience, grouped(run.steps), how_often, grouped(before_last), before_last == 1 ? "" : "s",
        grouped(*run.patience + 1), advice_for_evaluations(run, *run.patience + 1));
}

// Warns if an epoch has few steps because a batch holds a large part of the examples.
void warn_of_short_epochs(const TrainRun& run, const OpenData& data, const stw_plan_info& plan) {
  constexpr double few_steps = 10;
  constexpr uint64_t many_examples = 20;
  const double steps =
      static_cast<double>(samples_of_epoch(data, plan.sequence)) / static_cast<double>(plan.global_batch);
  if (data.counts.examples < many_examples || steps >= few_steps || run.resumes()) return;
  // A shorter sample gives more steps if it still holds a whole example.
  const bool may_be_shorter = examples_of_sample(data) >= 1.5, is_one = plan.global_batch == 1;
  complain(
      "stowage: warning: --data {}: an epoch is {:.2g} step{}: a batch of {} sample{} of {} tokens holds "
      "{:.3g} of the {} {}; for more steps give {}{}{}",
      run.data.path, steps, steps == 1 ? "" : "s", grouped(plan.global_batch), is_one ? "" : "s",
      grouped(plan.sequence),
      std::min(static_cast<double>(plan.global_batch) * examples_of_sample(data),
               static_cast<double>(data.counts.examples)),
      grouped(data.counts.examples), run.data.has_pairs ? "pairs" : "examples",
      is_one ? "" : "a smaller --batch (or --batch-examples)", is_one || !may_be_shorter ? "" : ", or ",
      is_one || may_be_shorter ? "a shorter --seq" : "");
}

void warn_of_labels(const TrainRun& run, const OpenData& data) {
  if (data.labelled && !run.resumes() && run.about.task != STW_TASK_SPANS)
    warn_of_unlearned_labels(*data.labelled, query(data.dataset).training_tokens, run.labels, run.about.task,
                             run.data.path);
}

void show(const ShownExamples& shown) {
  const Tokenization tokenization = tokenization_of(shown.data, shown.model, shown.opened);
  show_examples(shown.count, shown.data,
                {tokenization, shown.model, shown.opened, shown.sequence, 0, shown.document_end});
}

uint64_t content_of(const OpenData& data) { return query(data.dataset).content_hash; }

// A resumed run may be given other data, by intention or by mistake.
void warn_of_other_data(const TrainRun& run, const OpenData& data) {
  if (!run.resumes()) return;
  const auto of_run = data_of_run(run.resume);
  if (!of_run || *of_run == content_of(data)) return;
  complain(
      "stowage: warning: {}: gives other tokens than the run in {} was trained on, so the result is not "
      "that of an uninterrupted run",
      run.data.path, run.resume);
  if (!run.evaluates() || !run.evaluation_files.empty()) return;
  const auto before = held_out_of_run(run.resume);
  const size_t held_out = before ? before->texts.size() : 0;
  if (data.held_out_again > 0)
    complain("stowage: warning: {}: has {} of the {} {} that the run held out; they are held out again",
             run.data.path, grouped(data.held_out_again), grouped(held_out),
             data.labelled && data.labelled->questions ? "questions" : "texts");
  else
    complain(
        "stowage: warning: {}: a tenth of it is held out now, and the run may have been trained on parts of "
        "that tenth",
        run.data.path);
}

// Call it while the trainer's model is still the one with which training begins.
void open_references(References& references, const TrainRun& run, RunData& data, const RunFolder& out,
                     const Trainer& trainer) {
  const RunFolder from(run.resume);
  const auto of_run = [&](const std::string& file) { return run.resumes() ? file : std::string(); };
  references.open(data.training, of_run(from.reference()), out.reference(), trainer);
  if (data.evaluation.dataset)
    references.open(data.evaluation, of_run(from.evaluation_reference()), out.evaluation_reference(),
                    trainer);
}

// The chat template that --chat-template names. It is read before its folder may be moved away.
struct ChatTemplateFile {
  std::string text;    // empty: none was named
  bool is_taken_back;  // the resumed run had one
};

ChatTemplateFile read_chat_template(const TrainRun& run) {
  const std::string text = run.data.chat_template.empty() ? "" : read_text(run.data.chat_template);
  return {text, run.resumes() && text.empty() && setting_of_run(run.resume, "chat-template")};
}

void write_chat_template(const ChatTemplateFile& chat_template, const RunFolder& out) {
  if (!chat_template.text.empty()) write_text(out.chat_template(), chat_template.text);
  else if (chat_template.is_taken_back) std::remove(out.chat_template().c_str());  // the model's own is used
}

// A run that is resumed in another folder copies the checkpoint of its best evaluation to it.
void take_best_along(const RunFolder& from, const RunFolder& out) {
  if (is_same(from.path(), out.path()) || !is_there(from.best_checkpoint())) return;
  std::error_code problem;
  std::filesystem::create_directories(out.checkpoints(), problem);
  std::filesystem::copy_file(from.best_checkpoint(), out.best_checkpoint(), problem);
  if (problem)
    throw Failure(exit_failed, fmt::format("{}: cannot copy {}: {}", out.best_checkpoint(),
                                           from.best_checkpoint(), problem.message()));
}

// Restores the trainer or makes room for a new run. Returns the lines of metrics that the run begins with.
std::string begin_run(const TrainRun& run, uint64_t steps, const RunData& data, const Trainer& trainer,
                      const RunFolder& out) {
  if (!run.resumes()) {
    make_room(out);
    return left_out_line(data.training.counts);
  }
  const std::string metrics = restore(run, steps, trainer, out);
  take_best_along(RunFolder(run.resume), out);
  return metrics;
}

// Writes the files that --resume reads, except for the plan, and the files that describe how the model is
// used: labels, chat template and tokenizer.
void write_settings(const TrainRun& run, const RunData& data, const ChatTemplateFile& chat_template,
                    const Tokenization& tokenization, const RunFolder& out) {
  const std::string labels = run.labels.empty() ? "" : labels_json(run.labels, run.about.task);
  std::vector<KeptFile> kept;
  if (!run.labels.empty()) kept.push_back({"labels.json", labels});
  if (!chat_template.text.empty()) kept.push_back({"chat_template.jinja", chat_template.text});
  const std::string held_out = held_out_file(data.training.held_out_texts);
  if (!held_out.empty()) kept.push_back({"held-out.txt", held_out});
  write_text(out.settings(), settings_json(run.options, content_of(data.training), kept));
  if (!run.labels.empty()) write_text(out.labels(), labels);
  if (held_out.empty()) std::remove(out.held_out().c_str());
  else write_text(out.held_out(), held_out);
  write_chat_template(chat_template, out);
  copy_tokenizer_files(tokenization, run_of(run.model), out.path());
}

HeldOut held_out_of(const TrainRun& run, const PlannedRun& planned, const RunData& data, const RunFolder& out,
                    stw_trainer* trainer) {
  const OpenData& from = data.held_out();
  HeldOut held_out{from.dataset.get(), from.labelled, run.about.task, run.labels, {}};
  if (const auto pairs = from.held_out_pairs) {
    const std::string reference = data.evaluation.dataset ? out.evaluation_reference() : out.reference();
    held_out.rewards = [pairs, trainer, reference, preference = preference_of(planned.json),
                        beta = run.trainer.preference.beta] {
      return rewards_in_run(trainer, {pairs->dataset.get(), pairs->answers, pairs->first_token}, reference,
                            preference, beta);
    };
  }
  return held_out;
}

// With --keep-best: the weights of the best evaluation, which are then exported.
void take_best(const TrainRun& run, const BestEvaluation& best, const Trainer& trainer,
               const RunFolder& out) {
  if (!run.loop.keeps_best) return;
  if (!best.best) {
    tell("best        no evaluation has the metric {}: the weights of the last step are written\n",
         run.loop.metric);
    return;
  }
  if (best.best->step != query(trainer).step)
    long_call([&](stw_error* error) {
      return stw_trainer_restore(trainer.get(), out.best_checkpoint().c_str(), error);
    });
  tell("best        step {}, with the {} {:.6g}: its weights are written\n", grouped(best.best->step),
       run.loop.metric, best.best->value);
}

// README.md describes the weights that are written: those of the best evaluation, or of the last one.
void write_card(const TrainRun& run, const PlannedRun& planned, const RunData& data, const RunFolder& out,
                const stw_progress& end, const BestEvaluation& best) {
  if (is_there(out.card()) && !is_card_of_run(out.card())) return;
  const stw_model_info& about = run.about;
  ModelCard card;
  card.folder = out.path(), card.base = run.model.source, card.architecture = about.architecture,
  card.task = about.task;
  card.has_adapters = about.adapter_rank > 0, card.has_pairs = run.data.has_pairs;
  card.data = run.evaluation.empty() ? run.data.path : run.evaluation;
  card.rows = rows_of_card(run, planned, data, end);
  const std::optional<uint64_t> step =
      run.loop.keeps_best && best.best ? std::optional(best.best->step) : std::nullopt;
  if (const auto evaluation = evaluation_at(read_text(out.metrics()), step))
    card.is_evaluated = true, card.evaluation = *evaluation;
  write_text(out.card(), model_card(card));
}

// Reports the end of the run. Throws a Failure if no step was applied or if the run has diverged.
void finish(const TrainRun& run, const RunSettings& settings, const PlannedRun& planned, const RunFolder& out,
            const TrainingRun& training, const stw_progress& begin, const stw_progress& end) {
  if (end.batches < settings.steps)
    tell(
        "ended early after {} of {} batches: {} evaluations in a row were no better; --resume with a larger "
        "--patience continues the run\n",
        grouped(end.batches), grouped(settings.steps), grouped(training.best().after));
  tell_end(out, end, run.learned);
  const bool is_fp16 = planned.info.precision == STW_PRECISION_FP16;
  require_a_step(begin, end, is_fp16);
  require_finite(training, is_fp16);
}

}  // namespace

void train(const TrainFlags& flags, const CLI::App& line) {
  outlive_failed_writes();
  if (flags.shown > 0) return show(resolve_shown(flags));
  const TrainRun run = resolve_run(flags, line);
  const PlannedRun planned = plan_run(run);
  const Tokenization tokenization = tokenization_of(run.data, run.model, run.opened);
  check_metric(run);
  RunData data = open_run_data(run, tokenization, planned.info);
  warn_of_other_data(run, data.training);
  const RunSettings settings = loop_settings(run, planned, data.training);
  warn_of_few_evaluations(settings);
  warn_of_short_epochs(run, data.training, planned.info);
  warn_of_labels(run, data.training);
  const Device device = open_device(run.device, planned.threads);
  require_free(run.device, planned.info);
  if (!run.resumes() && !settings.event_folder.empty()) require_no_events(settings.event_folder);
  const RunFolder out(run.out);
  const MadeFolder made(out.path());
  const auto lock = take_folder(run, out);
  tell_beginning(run, settings, planned, data);

  const uint64_t before = memory_in_use(device.get());
  const ChatTemplateFile chat_template = read_chat_template(run);
  const Trainer trainer = make_trainer(run, device.get(), planned.plan);
  if (!run.profile.empty())
    long_call(
        [&](stw_error* error) { return stw_trainer_timeline(trainer.get(), run.profile.c_str(), error); });
  References references;
  if (has_reference(preference_of(planned.json))) open_references(references, run, data, out, trainer);
  check_run(settings, trainer.get(), data.training.dataset.get());
  const std::string metrics = begin_run(run, settings.steps, data, trainer, out);
  const ScheduleChange change{run.schedule_change, run.resumes() ? last_rate(metrics) : std::nullopt};
  write_text(out.plan(), planned.json);  // the first file: it identifies a run that has not saved yet
  if (!metrics.empty() || run.resumes()) write_text(out.metrics(), metrics);
  references.keep();
  write_settings(run, data, chat_template, tokenization, out);
  std::fflush(stdout);

  const stw_progress begin = query(trainer);
  const HeldOut held_out = held_out_of(run, planned, data, out, trainer.get());
  TrainingRun training(settings, change, out, trainer.get(), data.training.dataset.get(), held_out,
                       run.learned, planned.info);
  const bool complete = training.run();
  const uint64_t after = memory_in_use(device.get());
  const stw_progress end = query(trainer);
  const BestEvaluation best = training.best();
  take_best(run, best, trainer, out);
  long_call(
      [&](stw_error* error) { return stw_trainer_export_model(trainer.get(), out.path().c_str(), error); });
  write_text(out.loss_curve(), loss_curve_svg(read_metrics(read_text(out.metrics())),
                                              run.model.source + " on " + run.data.path));
  tell_memory(planned.info.arena, before, after);
  write_card(run, planned, data, out, end, best);
  if (!complete) {
    tell_interrupted(run, settings.steps, end);
    throw Stopped{training.exit_code()};
  }
  finish(run, settings, planned, out, training, begin, end);
}

}  // namespace command
