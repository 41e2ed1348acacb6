// `stowage train`: everything that can be wrong is found before the first step, then the run, then what it
// leaves.
#include "run/train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
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
#include "evaluation/reference.h"
#include "plans/memory_in_use.h"
#include "run/loss_curve.h"
#include "run/model_card.h"
#include "run/resume.h"
#include "run/run_settings.h"
#include "run/show_examples.h"
#include "run/train_checks.h"
#include "run/train_report.h"

namespace command {
namespace {

Plan make_plan(TrainFlags& flags, const Model& model, const DeviceChoice& device) {
  if (flags.plan_file.empty()) {
    const stw_plan_options options = plan_options(flags.model, query(model), flags.plan, device);
    flags.plan.threads = options.threads;
    return require_plan(create_plan(model, flags.model.source, options));
  }
  if (!device.profile.empty())
    throw Failure(exit_usage, fmt::format("--device {}: the plan has its own profile; leave one of them out",
                                          flags.plan.device));
  Plan plan = load_plan(model, flags.plan_file);
  const stw_plan_info info = query(plan);
  if (!info.fits)
    throw Failure(exit_does_not_fit,
                  fmt::format("{}: this plan does not fit in its budget of {}: the smallest that works is {}",
                              flags.plan_file, human_bytes(info.budget), exact_bytes(info.minimum_bytes)));
  check_plan_of_run(flags, info);
  // Scratch memory was planned for a number of threads.
  if (!flags.plan.threads)
    flags.plan.threads = static_cast<uint32_t>(
        json_number(stw_plan_json(plan.get()), "request", "threads").value_or(device.threads));
  return plan;
}

Trainer make_trainer(const TrainFlags& flags, stw_device* device, const Model& model, const Plan& plan) {
  auto options = sized<stw_trainer_options>();
  options.seed = flags.model.seed;
  options.set_mask |= STW_SET_TRAINER_SEED;
  options.watch = work_watch();
  const auto set = [&](const std::optional<float>& value, float& field, uint32_t bit) {
    if (!value) return;
    field = *value;
    options.set_mask |= bit;
  };
  set(flags.plan.clip, options.clip_norm, STW_SET_CLIP_NORM);
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
    return stw_trainer_create(&trainer, device, model.get(), plan.get(), &options, error);
  });
  return Trainer(trainer);
}

uint32_t schedule_of(const std::string& name) {
  if (name == "linear") return STW_SCHEDULE_LINEAR;
  if (name == "constant") return STW_SCHEDULE_CONSTANT;
  if (name == "wsd") return STW_SCHEDULE_WSD;
  return name == "inverse-root" ? STW_SCHEDULE_INVERSE_ROOT : STW_SCHEDULE_COSINE;
}

// That the run neither replaces another one nor removes what it reads. From then on nobody else writes there.
std::unique_ptr<FolderLock> take_folder(const TrainFlags& flags, const RunFolder& out) {
  const bool same = !flags.resume.empty() && is_same(flags.resume, out.path());
  if (same && flags.overwrite)
    throw Failure(exit_usage,
                  fmt::format("--overwrite: --resume {} continues the run in that folder; leave it out, or "
                              "give another --out",
                              flags.resume));
  if (!same) {
    if (is_same(flags.model.source, out.path()))
      throw Failure(
          exit_failed,
          fmt::format("--out {}: this is the model's own folder, which would be replaced", flags.out));
    std::vector<std::pair<const char*, const std::string*>> read{{"--model", &flags.model.source},
                                                                 {"--weights", &flags.model.weights},
                                                                 {"--adapter", &flags.model.adapter},
                                                                 {"--plan", &flags.plan_file},
                                                                 {"--resume", &flags.resume}};
    for (const DataFile& file : flags.data.source.files()) read.emplace_back("--data", &file.path);
    for (const std::string& file : flags.evaluation_files) read.emplace_back("--eval-data", &file);
    for (const auto& [flag, path] : read)
      if (flags.overwrite ? out.holds(*path) : path != &flags.plan_file && out.writes(*path))
        throw Failure(exit_failed,
                      fmt::format("{} {}: lies in --out {}, which would be replaced; give another --out",
                                  flag, *path, flags.out));
  }
  out.make_writable();
  out.undo_set_aside();
  auto lock = std::make_unique<FolderLock>(out.path());
  if (!same && !flags.overwrite) out.refuse_to_replace();
  out.remove_stale();
  return lock;
}

void make_room(const RunFolder& out) {
  out.set_aside();
  if (const std::string aside = out.replaced().path(); is_folder(aside))
    tell("replacing   what is kept in {} until this run has saved\n", aside);
}

// Continues where the checkpoint stands: the trainer. Answers the lines of metrics that belong to it.
std::string restore(const TrainFlags& flags, const Trainer& trainer, const RunFolder& out) {
  const RunFolder from(flags.resume);
  long_call(
      [&](stw_error* error) { return stw_trainer_restore(trainer.get(), from.checkpoint().c_str(), error); });
  const stw_progress now = query(trainer);
  if (now.batches > flags.run.steps)
    throw Failure(exit_failed, fmt::format("{} stands at {} batches, past --steps {}", from.checkpoint(),
                                           grouped(now.batches), grouped(flags.run.steps)));
  const std::string metrics = read_text_if_there(from.metrics()).value_or("");
  if (!is_same(from.path(), out.path())) make_room(out);
  tell("continuing  from {} at step {}\n", from.checkpoint(), grouped(now.step));
  return Metrics::kept(metrics, now.step, now.batches, now.batches < flags.run.steps);
}

// What can be said before any file is read.
void check_flags(const TrainFlags& flags) {
  if (!flags.run.steps && !flags.epochs)
    throw Failure(exit_usage, "--steps is required: the number of global batches to train on; or --epochs");
  if (flags.out.empty()) throw Failure(exit_usage, "--out is required: the folder to write into");
  const bool compares = flags.run.keeps_best || flags.run.patience;
  if (compares && flags.run.evaluation_batches == 0)
    throw Failure(exit_usage,
                  fmt::format("{}: with --eval-batches 0 there are no evaluations; leave one of them out",
                              flags.run.keeps_best ? "--keep-best" : "--patience"));
  if (!compares && flags.run.metric != "loss")
    throw Failure(exit_usage,
                  fmt::format("--metric {}: is for --keep-best and --patience", flags.run.metric));
  if (flags.data.holds_out_tail && flags.run.evaluation_batches == 0)
    throw Failure(exit_usage,
                  "--eval-tail: with --eval-batches 0 nothing is held out; leave one of them out");
  check_min_rate(flags.run);
  if (flags.run.steps) check_schedule(flags);
}

// Of evaluations that come too late for what is to be decided by them.
void warn_of_few_evaluations(const RunSettings& run) {
  if (!run.keeps_best && !run.patience) return;
  const uint64_t before_last = run.evaluate_every ? (run.steps - 1) / run.evaluate_every
                                                  : 0;  // the one after the last step comes in any case
  const std::string how_often =
      run.evaluate_every ? fmt::format("--eval-every {}", run.evaluate_every) : "--eval-every 0";
  if (run.keeps_best && before_last == 0)
    complain(
        "stowage: warning: --keep-best: the run has {} steps and {}, so that it is evaluated after its last "
        "step alone, whose weights are written; give a smaller --eval-every",
        grouped(run.steps), how_often);
  if (run.patience && before_last <= *run.patience)
    complain(
        "stowage: warning: --patience {}: the run has {} steps and {}, which makes {} evaluation{} before "
        "the last one; it takes {} to end a run: give a smaller --eval-every",
        *run.patience, grouped(run.steps), how_often, grouped(before_last), before_last == 1 ? "" : "s",
        grouped(*run.patience + 1));
}

// Of examples of which a batch holds so many that there are few steps.
void warn_of_short_epochs(const TrainFlags& flags, const OpenData& data, const stw_plan_info& plan) {
  constexpr double few_steps = 10;
  constexpr uint64_t many_examples = 20;
  const double steps =
      static_cast<double>(samples_of_epoch(data, plan.sequence)) / static_cast<double>(plan.global_batch);
  if (data.counts.examples < many_examples || steps >= few_steps || !flags.resume.empty()) return;
  complain(
      "stowage: warning: --data {}: an epoch is {:.2g} step{}: a batch of {} sample{} of {} tokens holds "
      "{:.3g} of the {} {}; for more steps give a smaller --batch (or --batch-examples), or a shorter --seq",
      flags.data.path, steps, steps == 1 ? "" : "s", grouped(plan.global_batch),
      plan.global_batch == 1 ? "" : "s", grouped(plan.sequence),
      std::min(static_cast<double>(plan.global_batch) * examples_of_sample(data),
               static_cast<double>(data.counts.examples)),
      grouped(data.counts.examples), flags.data.has_pairs ? "pairs" : "examples");
}

// What a run trains on, and evaluates on.
struct RunData {
  OpenData training;
  OpenData apart;  // to evaluate on; empty: what `training` holds out
  const OpenData& held_out() const { return apart.dataset ? apart : training; }
};

RunData open_run_data(const TrainFlags& flags, const Model& model, const Tokenization& tokenization,
                      uint64_t sequence) {
  const bool evaluates = flags.run.evaluation_batches > 0, apart = evaluates && !flags.evaluation.empty();
  DataRequest request{tokenization, flags.model, model, sequence, flags.plan.document_end};
  request.evaluates = evaluates && !apart;
  if (!evaluates || apart) request.held_out = 0;
  RunData data;
  data.training = open_data(flags.data, flags.data.source, request);
  request.held_out = 1, request.evaluates = true;
  if (apart)
    data.apart = open_data(flags.data, DataSource(flags.evaluation_files, reading_of(flags.data)), request);
  return data;
}

Tokenization tokenization_of(const TrainFlags& flags, const Model& model) {
  return Tokenization::of_file(flags.data.tokenizer, flags.data.path, flags.data.source.has_tokens(),
                               run_of(flags.model), query(model).vocabulary);
}

// A batch in samples that hold so many examples, as nearly as whole samples do on average. A run that goes on
// has its batch.
void take_batch_of_examples(TrainFlags& flags, const Model& model) {
  if (!flags.batch_examples || flags.plan.batch) return;
  if (!flags.plan.examples)
    throw Failure(exit_usage, fmt::format("--batch-examples {}: is for files of examples, and --data {} is "
                                          "one text; give --batch, in samples",
                                          *flags.batch_examples, flags.data.path));
  const RunData data = open_run_data(flags, model, tokenization_of(flags, model),
                                     sequence_of(flags.model, query(model), flags.plan));
  flags.plan.batch =
      std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(static_cast<double>(*flags.batch_examples) /
                                                               examples_of_sample(data.training))));
}

void show(TrainFlags& flags) {
  keep_numbers_of_run(flags);
  take_labels(flags.model, flags.data);
  const Model model = open_model(flags.model);
  check_labels_of_run(flags, model);
  const uint64_t sequence = flags.plan_file.empty() ? sequence_of(flags.model, query(model), flags.plan)
                                                    : query(load_plan(model, flags.plan_file)).sequence;
  const Tokenization tokenization = tokenization_of(flags, model);
  show_examples(flags.shown, flags.data,
                {tokenization, flags.model, model, sequence, flags.plan.document_end});
}

uint64_t content_of(const OpenData& data) { return query(data.dataset).content_hash; }

// Other data may be named for a run that goes on. That the same file gives others may be a mistake, and
// nothing else would tell.
void warn_of_other_data(const TrainFlags& flags, const OpenData& data) {
  if (flags.resume.empty()) return;
  const auto of_run = data_of_run(flags.resume);
  const std::vector<std::string> files = settings_of_run(flags.resume, "data");
  const bool are_the_same =
      std::equal(files.begin(), files.end(), flags.data.files.begin(), flags.data.files.end(),
                 [](const std::string& a, const std::string& b) { return a == b || is_same(a, b); });
  if (of_run && *of_run != content_of(data) && are_the_same)
    complain(
        "stowage: warning: {}: gives other tokens than those that the run in {} was trained on, so its bits "
        "are not those of one that never stopped",
        flags.data.path, flags.resume);
}

// The trainer's model is still the one that training begins with.
void open_references(References& references, const TrainFlags& flags, RunData& data, const RunFolder& out,
                     const Trainer& trainer) {
  const RunFolder from(flags.resume);
  const auto of_run = [&](const std::string& file) { return flags.resume.empty() ? std::string() : file; };
  references.open(data.training, of_run(from.reference()), out.reference(), trainer);
  if (data.apart.dataset)
    references.open(data.apart, of_run(from.evaluation_reference()), out.evaluation_reference(), trainer);
}

// What conversations are written by, which --chat-template named. Read before its folder may be moved away.
struct ChatTemplateFile {
  std::string text;    // empty: none was named
  bool is_taken_back;  // the run that goes on had one
};

ChatTemplateFile read_chat_template(const TrainFlags& flags) {
  const std::string text = flags.data.chat_template.empty() ? "" : read_text(flags.data.chat_template);
  return {text, !flags.resume.empty() && text.empty() && setting_of_run(flags.resume, "chat-template")};
}

void write_chat_template(const ChatTemplateFile& chat_template, const RunFolder& out) {
  if (!chat_template.text.empty()) write_text(out.chat_template(), chat_template.text);
  else if (chat_template.is_taken_back) std::remove(out.chat_template().c_str());  // the model's own holds
}

// A run that goes on in another folder has the weights of its best evaluation there.
void take_best_along(const RunFolder& from, const RunFolder& out) {
  if (is_same(from.path(), out.path()) || !is_there(from.best_checkpoint())) return;
  std::error_code problem;
  std::filesystem::create_directories(out.checkpoints(), problem);
  std::filesystem::copy_file(from.best_checkpoint(), out.best_checkpoint(), problem);
  if (problem)
    throw Failure(exit_failed, fmt::format("{}: cannot copy {}: {}", out.best_checkpoint(),
                                           from.best_checkpoint(), problem.message()));
}

// README.md tells of the weights that are written: of the best evaluation, else of the last one.
void write_card(const TrainFlags& flags, const Model& model, const RunData& data, const stw_plan_info& plan,
                const std::string& json, const RunFolder& out, const stw_progress& end,
                const BestEvaluation& best) {
  if (is_there(out.card()) && !is_card_of_run(out.card())) return;
  const stw_model_info about = query(model);
  ModelCard card;
  card.folder = out.path(), card.base = flags.model.source, card.architecture = about.architecture,
  card.task = about.task;
  card.has_adapters = about.adapter_rank > 0, card.has_pairs = flags.data.has_pairs;
  card.data = flags.evaluation.empty() ? flags.data.path : flags.evaluation;
  card.rows = rows_of_card(flags, model, data.training, data.apart, plan, json, end);
  const std::optional<uint64_t> step =
      flags.run.keeps_best && best.best ? std::optional(best.best->step) : std::nullopt;
  if (const auto evaluation = evaluation_at(read_text(out.metrics()), step))
    card.is_evaluated = true, card.evaluation = *evaluation;
  write_text(out.card(), model_card(card));
}

}  // namespace

void train(TrainFlags flags) {
  outlive_failed_writes();
  if (flags.out.empty()) flags.out = flags.resume;
  if (flags.shown > 0) return show(flags);
  check_flags(flags);
  flags.run.schedule = schedule_of(flags.schedule);
  keep_numbers_of_run(flags);
  flags.run.schedule_change = fmt::format("{}", fmt::join(changed_schedule(flags), ", "));
  const RunFolder out(flags.out);
  const DeviceChoice choice = choose_device(flags.plan.device);
  take_labels(flags.model, flags.data);
  const Model model = open_model(flags.model);
  check_labels_of_run(flags, model);
  const stw_model_info about = query(model);
  if (about.adapter_rank == 0 && flags.resume.empty()) require_weights(flags.model, about);
  if (about.adapter_rank && !about.has_weights)
    throw Failure(exit_usage, fmt::format("--lora: {} has no weights, and adapters of random ones are of no "
                                          "use; give --model a folder that has",
                                          flags.model.source));
  take_batch_of_examples(flags, model);
  const Plan plan = make_plan(flags, model, choice);
  const stw_plan_info info = query(plan);
  const std::string json = stw_plan_json(plan.get());
  check_numerics_of_run(flags, json);
  check_fingerprint_of_run(flags, model, json);
  check_settings(flags, info, json, about.task);
  const Tokenization tokenization = tokenization_of(flags, model);
  check_metric(flags, about.task, labels_of(model));
  RunData data = open_run_data(flags, model, tokenization, info.sequence);
  warn_of_other_data(flags, data.training);
  if (flags.epochs) {
    const auto samples = static_cast<double>(samples_of_epoch(data.training, info.sequence));
    flags.run.steps =
        static_cast<uint64_t>(std::ceil(*flags.epochs * samples / static_cast<double>(info.global_batch)));
    check_schedule(flags);
  }
  warn_of_few_evaluations(flags.run);
  warn_of_short_epochs(flags, data.training, info);
  const Device device = open_device(choice, flags.plan.threads);
  require_free(choice, info);
  const MadeFolder made(out.path());
  const auto lock = take_folder(flags, out);
  tell_beginning(flags, model, data.training, data.apart, info, json);

  const uint64_t before = memory_in_use(device.get());
  const ChatTemplateFile chat_template = read_chat_template(flags);
  const Trainer trainer = make_trainer(flags, device.get(), model, plan);
  if (!flags.profile.empty())
    long_call(
        [&](stw_error* error) { return stw_trainer_timeline(trainer.get(), flags.profile.c_str(), error); });
  References references;
  if (has_reference(preference_of(json))) open_references(references, flags, data, out, trainer);
  check_run(flags.run, trainer.get(), data.training.dataset.get());
  std::string metrics;  // of the run that goes on
  if (!flags.resume.empty())
    metrics = restore(flags, trainer, out), flags.run.rate_before = last_rate(metrics);
  else make_room(out), metrics = left_out_line(data.training.counts);
  if (!flags.resume.empty()) take_best_along(RunFolder(flags.resume), out);
  write_text(out.plan(), json);  // the first file: by it a run is known that never saved
  if (!metrics.empty() || !flags.resume.empty()) write_text(out.metrics(), metrics);
  references.keep();
  const std::vector<std::string> labels = labels_of(model);
  const std::string labels_text = labels.empty() ? "" : labels_json(labels, about.task);
  std::vector<KeptFile> kept;
  if (!labels.empty()) kept.push_back({"labels.json", labels_text});
  if (!chat_template.text.empty()) kept.push_back({"chat_template.jinja", chat_template.text});
  write_text(out.settings(), settings_json(flags.options, content_of(data.training), kept));
  if (!labels.empty()) write_text(out.labels(), labels_text);
  write_chat_template(chat_template, out);
  copy_tokenizer_files(tokenization, run_of(flags.model), out.path());
  std::fflush(stdout);
  const stw_progress begin = query(trainer);

  const Learned learned = about.task == STW_TASK_TOKEN_LABEL ? Learned::words
                          : about.task == STW_TASK_NUMBER    ? Learned::numbers
                          : about.labels > 0                 ? Learned::texts
                          : flags.data.masks                 ? Learned::masked_tokens
                          : flags.data.has_pairs             ? Learned::pairs
                                                             : Learned::tokens;
  HeldOut held_out{data.held_out().dataset.get(), data.held_out().labelled, about.task, labels_of(model), {}};
  if (const auto pairs = data.held_out().held_out_pairs)
    held_out.rewards = [&, pairs] {
      return rewards_in_run(trainer.get(), {pairs->dataset.get(), pairs->answers, pairs->first_token},
                            data.apart.dataset ? out.evaluation_reference() : out.reference(),
                            preference_of(json), flags.preference.beta);
    };
  TrainingRun run(flags.run, out, trainer.get(), data.training.dataset.get(), held_out, learned, info);
  const bool complete = run.run();
  const uint64_t after = memory_in_use(device.get());
  const stw_progress end = query(trainer);
  const BestEvaluation best = run.best();
  if (flags.run.keeps_best && best.best) {
    if (best.best->step != end.step)
      long_call([&](stw_error* error) {
        return stw_trainer_restore(trainer.get(), out.best_checkpoint().c_str(), error);
      });
    tell("best        step {}, with the {} {:.6g}: its weights are written\n", grouped(best.best->step),
         flags.run.metric, best.best->value);
  } else if (flags.run.keeps_best) {
    tell("best        no evaluation has the metric {}: the weights of the last step are written\n",
         flags.run.metric);
  }
  long_call(
      [&](stw_error* error) { return stw_trainer_export_model(trainer.get(), out.path().c_str(), error); });
  write_text(out.loss_curve(), loss_curve_svg(read_metrics(read_text(out.metrics())),
                                              flags.model.source + " on " + flags.data.path));
  tell_memory(info.arena, before, after);
  write_card(flags, model, data, info, json, out, end, best);
  if (!complete) {
    tell_interrupted(flags, end);
    throw Stopped{run.exit_code()};
  }
  if (end.batches < flags.run.steps)
    tell(
        "ended early after {} of {} batches: {} evaluations in a row were no better; --resume with a larger "
        "--patience goes on\n",
        grouped(end.batches), grouped(flags.run.steps), grouped(best.after));
  tell_end(out, end, learned);
  const bool is_fp16 = info.precision == STW_PRECISION_FP16;
  require_a_step(begin, end, is_fp16);
  require_finite(run, is_fp16);
}

}  // namespace command
