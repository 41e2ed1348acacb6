// `stowage train`: everything that can be wrong is found before the first step, then the run, then what it leaves.
#include "train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "files.h"
#include "folder_lock.h"
#include "loss_curve.h"
#include "memory_in_use.h"
#include "messages.h"
#include "number_checks.h"
#include "pairs.h"
#include "reference.h"
#include "resume.h"
#include "run_settings.h"
#include "units.h"

namespace command {
namespace {

Plan make_plan(TrainFlags& flags, const Model& model, const DeviceChoice& device) {
  if (flags.plan_file.empty()) {
    const stw_plan_options options = plan_options(flags.model, query(model), flags.plan, device);
    flags.plan.threads = options.threads;
    return require_plan(create_plan(model, flags.model.source, options));
  }
  if (!device.profile.empty())
    throw Failure(exit_usage, fmt::format("--device {}: the plan has its own profile; leave one of both out", flags.plan.device));
  Plan plan = load_plan(model, flags.plan_file);
  const stw_plan_info info = query(plan);
  if (!info.fits)
    throw Failure(exit_does_not_fit,
                  fmt::format("{}: this plan does not fit in its budget of {}: the smallest that works is {}",
                              flags.plan_file, human_bytes(info.budget), exact_bytes(info.minimum_bytes)));
  check_plan_of_run(flags, info);
  // Scratch memory was planned for a number of threads.
  if (!flags.plan.threads)
    flags.plan.threads = static_cast<uint32_t>(json_number(stw_plan_json(plan.get()), "request", "threads").value_or(device.threads));
  return plan;
}

Trainer make_trainer(const TrainFlags& flags, stw_device* device, const Model& model, const Plan& plan) {
  auto options = sized<stw_trainer_options>();
  options.seed = flags.model.seed;
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
  call(
      [&](stw_error* error) { return stw_trainer_create(&trainer, device, model.get(), plan.get(), &options, error); });
  return Trainer(trainer);
}

uint32_t schedule_of(const std::string& name) {
  if (name == "linear") return STW_SCHEDULE_LINEAR;
  if (name == "constant") return STW_SCHEDULE_CONSTANT;
  if (name == "wsd") return STW_SCHEDULE_WSD;
  return name == "inverse-root" ? STW_SCHEDULE_INVERSE_ROOT : STW_SCHEDULE_COSINE;
}

// The defaults of warm-up and decay count too.
void check_schedule(const TrainFlags& flags) {
  const RunSettings& run = flags.run;
  const bool decays = flags.schedule == "wsd";
  if (run.decay_steps && !decays) throw Failure(exit_usage, "--decay-steps: is for --schedule wsd");
  if (run.min_rate && flags.schedule == "constant") throw Failure(exit_usage, "--min-lr: --schedule constant has one learning rate; leave one of them out");
  const uint64_t warmup = warmup_steps(run), decay = run.decay_steps ? run.decay_steps : run.steps / 5;
  if (warmup > run.steps) throw Failure(exit_usage, fmt::format("--warmup {}: longer than --steps {}", warmup, run.steps));
  if (decays && decay > run.steps - warmup)
    throw Failure(exit_usage, fmt::format("--warmup {} and --decay-steps {}: together longer than --steps {}", warmup, decay, run.steps));
}

// Samples that go over the data once: all examples, or as many tokens as there are.
uint64_t samples_of_epoch(const OpenData& data, uint64_t sequence) {
  const stw_dataset_info info = query(data.dataset);
  return info.training_samples ? info.training_samples : std::max<uint64_t>(1, info.training_tokens / sequence);
}

// The library's, where --lr is not given.
double default_rate(const std::string& optimizer) {
  if (optimizer == "lion") return 1e-4;
  return optimizer == "sgd" || optimizer == "adafactor" ? 1e-2 : 3e-4;
}

void check_rates(const RunSettings& run, const std::string& optimizer, uint64_t batch) {
  const bool is_default = run.learning_rate == 0;
  const double rate = is_default ? default_rate(optimizer) : run.learning_rate;
  if (run.min_rate && *run.min_rate > rate)
    throw Failure(exit_usage, fmt::format("--min-lr {}: expected at most {} {}", *run.min_rate,
                                          is_default ? fmt::format("{}'s default learning rate,", optimizer) : "--lr", rate));
  const double scale = run.base_batch ? std::sqrt(static_cast<double>(batch) / static_cast<double>(run.base_batch)) : 1;
  if (rate * scale > largest_rate)
    throw Failure(exit_usage, fmt::format("--lr-batch {}: scales the learning rate {} to {:.10g} for batches of {}; expected at most {}",
                                          run.base_batch, rate, rate * scale, grouped(batch), largest_rate));
}

// That the optimizer and the precision of the plan, wherever they come from, know what was set for them. Nothing was
// created or replaced so far.
void check_settings(const TrainFlags& flags, const stw_plan_info& plan, const std::string& json) {
  const std::string optimizer = json_string(json, "numerics", "optimizer").value_or("");
  const bool is_fp16 = plan.precision == STW_PRECISION_FP16;
  const struct { const char* flag; bool given; std::vector<std::string_view> optimizers; } settings[] = {
      {"--beta1", flags.beta1.has_value(), {"adamw", "muon", "lion"}}, {"--beta2", flags.beta2.has_value(), {"adamw", "muon", "lion"}},
      {"--momentum", flags.momentum.has_value(), {"sgd", "muon"}}, {"--nesterov", flags.nesterov, {"sgd"}}};
  for (const auto& [flag, given, optimizers] : settings)
    if (given && std::find(optimizers.begin(), optimizers.end(), optimizer) == optimizers.end())
      throw Failure(exit_usage, fmt::format("{}: is for --optimizer {}, not for {}", flag, fmt::join(optimizers, ", "), optimizer));
  if (flags.nesterov && flags.momentum == 0.0f) throw Failure(exit_usage, "--nesterov: needs a --momentum above 0");
  if (flags.non_finite == "stop" && is_fp16)
    throw Failure(exit_usage, "--non-finite stop: fp16 finds its loss scale by steps that are not finite; skip them, or train in bf16");
  if (flags.loss_scale && !is_fp16) throw Failure(exit_usage, "--loss-scale: is for --precision fp16");
  check_rates(flags.run, optimizer, plan.global_batch);
  int exponent = 0;
  if (flags.loss_scale && (std::frexp(*flags.loss_scale, &exponent) != 0.5 || *flags.loss_scale < 1 || *flags.loss_scale > 1e30))
    throw Failure(exit_usage, fmt::format("--loss-scale {}: expected a power of two from 1 to 1e30", *flags.loss_scale));
  if (json_bool(json, "numerics", "fused_update").value_or(false)) {   // a plan that was given may have it, too
    const std::string name = flags.plan_file.empty() ? "--fused-update" : fmt::format("--plan {}: has a fused update", flags.plan_file);
    if (flags.outlier_limit > 0) throw Failure(exit_usage, name + ": the norm of the gradients is not known before the update; leave out --skip-outliers");
    if (flags.plan.clip.value_or(0) > 0) throw Failure(exit_usage, name + ": the norm of the gradients is not known before the update; leave out --clip");
  }
  if (flags.outlier_limit > 0 && flags.outlier_limit <= 1)
    throw Failure(exit_usage, fmt::format("--skip-outliers {}: expected more than 1 standard deviation", flags.outlier_limit));
  if (flags.plan.document_end && !has_documents(json))
    throw Failure(exit_usage, fmt::format("--document-end: --plan {} was made without it", flags.plan_file));
  if (flags.data.has_pairs != (preference_of(json) != "none"))
    throw Failure(exit_usage, fmt::format("--plan {}: {}", flags.plan_file, flags.data.has_pairs ? fmt::format("was made without --preference, and {} has pairs of answers", flags.data.path)
                                                                                                   : fmt::format("is for --preference {}, and {} has no pairs of answers", preference_of(json), flags.data.path)));
  require_pairs(flags.preference, flags.data);
  const std::string preference = preference_of(json);
  if (flags.preference.margin && preference != "simpo") throw Failure(exit_usage, fmt::format("--margin: is for --preference simpo, not for {}", preference));
  if (preference != "none" && flags.z_loss != 0) throw Failure(exit_usage, "--z-loss: is of tokens by themselves, and a preference of pairs; leave it out");
  if (flags.label_smoothing != 0 && (preference == "ipo" || preference == "orpo")) throw Failure(exit_usage, fmt::format("--label-smoothing: is for --preference dpo and simpo, not for {}", preference));
  if (preference != "none" && flags.label_smoothing >= 0.5f) throw Failure(exit_usage, "--label-smoothing: expected less than half of the pairs the wrong way round");
  if (flags.plan.examples && !has_documents(json))
    throw Failure(exit_usage, fmt::format("--data {}: examples are documents, which --plan {} does not know of; make it with plan --document-end TOKEN, of the model's end of text", flags.data.path, flags.plan_file));
}

// Checkpoints know how many labels there are, but not what they are called.
void check_labels_of_run(const TrainFlags& flags, const Model& model) {
  if (flags.resume.empty()) return;
  const std::string path = RunFolder(flags.resume).labels();
  const auto of_run = read_text_if_there(path);
  if (of_run && labels_in(*of_run, path) != labels_of(model))
    throw Failure(exit_failed, fmt::format("--data {}: its labels are not those of the run, which {} has", flags.data.path, path));
}

// That the run neither replaces another one nor removes what it reads. From then on nobody else writes there.
std::unique_ptr<FolderLock> take_folder(const TrainFlags& flags, const RunFolder& out) {
  const bool same = !flags.resume.empty() && is_same(flags.resume, out.path());
  if (same && flags.overwrite)
    throw Failure(exit_usage, fmt::format("--overwrite: --resume {} continues the run in that folder; leave it out, or "
                                          "give another --out",
                                          flags.resume));
  if (!same) {
    if (is_same(flags.model.source, out.path()))
      throw Failure(exit_failed,
                    fmt::format("--out {}: this is the model's own folder, which would be replaced", flags.out));
    for (const auto& [flag, path] : {std::pair{"--model", &flags.model.source}, {"--weights", &flags.model.weights}, {"--adapter", &flags.model.adapter},
                                     {"--data", &flags.data.path}, {"--eval-data", &flags.evaluation}, {"--plan", &flags.plan_file},
                                     {"--resume", &flags.resume}})
      if (flags.overwrite ? out.holds(*path) : path != &flags.plan_file && out.writes(*path))
        throw Failure(exit_failed, fmt::format("{} {}: lies in --out {}, which would be replaced; give another --out",
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
  call([&](stw_error* error) { return stw_trainer_restore(trainer.get(), from.checkpoint().c_str(), error); });
  const stw_progress now = query(trainer);
  if (now.batches > flags.run.steps)
    throw Failure(exit_failed, fmt::format("{} stands at {} batches, past --steps {}", from.checkpoint(),
                                           grouped(now.batches), grouped(flags.run.steps)));
  const std::string metrics = read_text_if_there(from.metrics()).value_or("");
  if (!is_same(from.path(), out.path())) make_room(out);
  tell("continuing  from {} at step {}\n", from.checkpoint(), grouped(now.step));
  return Metrics::kept(metrics, now.step, now.batches, now.batches < flags.run.steps);
}

void tell_beginning(const TrainFlags& flags, const Model& model, const OpenData& data, const OpenData& apart, const stw_plan_info& plan,
                    const std::string& json) {
  const stw_model_info about = query(model);
  const stw_dataset_info tokens = query(data.dataset);
  tell(
      "model       {}: {}, {} layers, {} parameters, {}\n", flags.model.source, about.architecture, about.layers,
      grouped(about.parameters),
      (about.has_codes ? "weights read from files, in 4 bits" : about.has_weights ? "weights read from files" : fmt::format("random weights from seed {}", flags.model.seed)) +
          (about.has_weights && !flags.model.labels.empty() ? fmt::format(", and a new head for {} labels", grouped(about.labels)) : ""));
  if (about.adapter_rank) {
    const std::string codes = json_string(json, "numerics", "quantize").value_or("none");
    const std::string embeddings = json_string(json, "numerics", "quantize_embeddings").value_or("none");
    tell("adapters    rank {}, {} parameters of the {} are trained{}{}\n", about.adapter_rank, grouped(about.trainable), grouped(about.parameters), about.labels ? ", with those of the head" : "",
         (codes == "none" ? "" : fmt::format("; the matrices below them are {}", codes)) + (embeddings == "none" ? "" : fmt::format("; embeddings{} are {}", about.labels ? "" : " and head", embeddings)));
  }
  tell("data        {}: {} tokens to train on, {} held out{}\n", flags.data.path, grouped(tokens.training_tokens),
       grouped(apart.dataset ? query(apart.dataset).evaluation_tokens : tokens.evaluation_tokens), apart.dataset ? " in " + flags.evaluation : "");
  if (about.labels > 0)
    tell("examples    {}, each with one of {} labels{}\n", grouped(data.counts.examples), grouped(about.labels),
         !data.counts.longer ? "" : fmt::format("; {} longer than a sample, which cuts them", grouped(data.counts.longer)));
  else if (flags.data.has_pairs)
    tell("pairs       {} of chosen and rejected answers, for {}; {} tokens are learned{}\n", grouped(data.counts.examples), preference_of(json), grouped(data.counts.learned),
         left_out(data.counts));
  else if (data.counts.examples)
    tell("examples    {}, of which {} tokens are learned{}\n", grouped(data.counts.examples), grouped(data.counts.learned),
         !data.counts.longer ? "" : fmt::format("; {} longer than a sample, which cuts them{}", grouped(data.counts.longer),
                                         data.counts.unlearned ? fmt::format(", {} before what is learned", grouped(data.counts.unlearned)) : ""));
  tell("steps       {}, which go {:.3g} times over the data\n", grouped(flags.run.steps),
       static_cast<double>(flags.run.steps) * static_cast<double>(plan.global_batch) / static_cast<double>(samples_of_epoch(data, plan.sequence)));
  tell("plan        batch {} x {} tokens in micro-batches of {}, {}, {} with {}-bit states, {}\n",
             grouped(plan.global_batch), grouped(plan.sequence), grouped(plan.micro_batch),
             precision_name(plan.precision), json_string(json, "numerics", "optimizer").value_or(""), plan.state_bits,
             flags.plan.threads ? fmt::format("{} thread{}", flags.plan.threads, flags.plan.threads == 1 ? "" : "s")
                                : fmt::format("{} kernels{}{}", json_string(json, "numerics", "kernels").value_or(""),
                                              json_string(json, "numerics", "attention") == "cudnn" ? ", cuDNN's attention" : "",
                                              json_bool(json, "numerics", "exact").value_or(true) ? "" : ", fast"));
  tell("memory      {} of {}; the smallest budget is {}\n", exact_bytes(plan.peak), human_bytes(plan.budget),
             human_bytes(plan.minimum_bytes));
}

void tell_memory(uint64_t planned, uint64_t before, uint64_t after) {
  if (!after) return;
  const uint64_t measured = after > before ? after - before : 0;
  tell("memory      planned {}, measured {} ({:+.1f} %)\n", human_bytes(planned), human_bytes(measured),
             100 * (static_cast<double>(measured) / static_cast<double>(planned) - 1));
}

void tell_interrupted(const TrainFlags& flags, const stw_progress& now) {
  tell("stopped after {} of {} batches and saved; continue with\n  {}\n", grouped(now.batches), grouped(flags.run.steps), flags.again);
}

// A run that changed nothing did not do what it was asked for, though nothing broke.
void require_a_step(const stw_progress& before, const stw_progress& now, bool is_fp16) {
  if (now.step == before.step && now.skipped > before.skipped)
    throw Failure(exit_failed, fmt::format("no step was applied: all {} batches were skipped, the last one because {}{}",
                                           grouped(now.skipped - before.skipped), skip_reason(now.skip_reason),
                                           is_fp16 ? fmt::format("; the loss scale has come to {:g}", now.loss_scale) : ""));
}

// Nor did one whose model says nothing any more.
void require_finite(const TrainingRun& run, bool is_fp16) {
  if (run.evaluation_loss() && !std::isfinite(*run.evaluation_loss()))
    throw Failure(exit_failed, "the evaluation loss is not finite: the run has diverged, and its model is of no use; give a smaller --lr, or a longer --warmup");
  if (constexpr uint64_t many = 10; !is_fp16 && run.lost_batches() >= many)
    throw Failure(exit_failed, fmt::format("the last {} batches were skipped, for their loss or gradients are not finite: the run has diverged; give a smaller --lr, or a longer --warmup",
                                           grouped(run.lost_batches())));
}

void tell_end(const RunFolder& out, const stw_progress& now, Learned learned, const std::vector<std::string>& copied) {
  if (now.skipped) tell("skipped     {} batches without an update\n", grouped(now.skipped));
  tell("trained     {} steps on {} {}\n", grouped(now.step), grouped(now.tokens), name_of(learned));
  std::vector<std::string> names;
  for (const std::string& file : out.files())
    if (is_there(file)) names.push_back(file.substr(out.path().size() + 1));
  names.insert(names.end(), copied.begin(), copied.end());
  tell("wrote       {}: {}\n", out.path(), fmt::join(names, ", "));
}

}  // namespace

void train(TrainFlags flags) {
  outlive_failed_writes();
  if (!flags.run.steps && !flags.epochs) throw Failure(exit_usage, "--steps is required: the number of global batches to train on; or --epochs");
  if (flags.out.empty()) flags.out = flags.resume;
  if (flags.out.empty()) throw Failure(exit_usage, "--out is required: the folder to write into");
  if (flags.run.min_rate && flags.run.learning_rate > 0 && *flags.run.min_rate > flags.run.learning_rate)
    throw Failure(exit_usage, "--min-lr: expected at most --lr");
  if (flags.run.steps) check_schedule(flags);
  flags.run.schedule = schedule_of(flags.schedule);
  keep_numbers_of_run(flags);
  const RunFolder out(flags.out);
  const DeviceChoice choice = choose_device(flags.plan.device);
  take_labels(flags.model, flags.data);
  const Model model = open_model(flags.model);
  check_labels_of_run(flags, model);
  const stw_model_info about = query(model);
  if (about.adapter_rank && !about.has_weights)
    throw Failure(exit_usage, fmt::format("--lora: {} has no weights, and adapters of random ones are of no use; give --model a folder that has", flags.model.source));
  const Plan plan = make_plan(flags, model, choice);
  const stw_plan_info info = query(plan);
  check_numerics_of_run(flags, stw_plan_json(plan.get()));
  check_settings(flags, info, stw_plan_json(plan.get()));
  const auto tokenization = Tokenization::of_file(flags.data.tokenizer, flags.data.path, run_of(flags.model), about.vocabulary);
  const bool evaluates = flags.run.evaluation_batches > 0, apart = evaluates && !flags.evaluation.empty();
  DataRequest request{tokenization, flags.model, model, info.sequence, flags.plan.document_end, {}, evaluates && !apart};
  if (!flags.evaluation.empty()) request.held_out = 0;
  OpenData data = open_data(flags.data, flags.data.path, request);
  request.held_out = 1, request.evaluates = true;
  OpenData held_out = apart ? open_data(flags.data, flags.evaluation, request) : OpenData{};
  if (flags.epochs) {
    const auto samples = static_cast<double>(samples_of_epoch(data, info.sequence));
    flags.run.steps = static_cast<uint64_t>(std::ceil(*flags.epochs * samples / static_cast<double>(info.global_batch)));
    check_schedule(flags);
  }
  const Device device = open_device(choice, flags.plan.threads);
  require_free(choice, info);
  const MadeFolder made(out.path());
  const auto lock = take_folder(flags, out);
  tell_beginning(flags, model, data, held_out, info, stw_plan_json(plan.get()));

  const uint64_t before = memory_in_use(device.get());
  const std::string chat_template = flags.data.chat_template.empty() ? "" : read_text(flags.data.chat_template);   // before its folder may be moved away
  const bool drops_template = !flags.resume.empty() && chat_template.empty() && setting_of_run(flags.resume, "chat-template");
  const Trainer trainer = make_trainer(flags, device.get(), model, plan);
  if (!flags.profile.empty())
    call([&](stw_error* error) { return stw_trainer_timeline(trainer.get(), flags.profile.c_str(), error); });
  References references;
  if (has_reference(preference_of(stw_plan_json(plan.get())))) {   // the trainer's model is still the one that training begins with
    const RunFolder from(flags.resume);
    const auto of_run = [&](const std::string& file) { return flags.resume.empty() ? std::string() : file; };
    references.open(data, of_run(from.reference()), out.reference(), trainer);
    if (apart) references.open(held_out, of_run(from.evaluation_reference()), out.evaluation_reference(), trainer);
  }
  check_run(flags.run, trainer.get(), data.dataset.get());
  std::string metrics;   // of the run that goes on
  if (!flags.resume.empty())
    metrics = restore(flags, trainer, out);
  else
    make_room(out);
  write_text(out.plan(), stw_plan_json(plan.get()));   // the first file: by it a run is known that never saved
  if (!flags.resume.empty()) write_text(out.metrics(), metrics);
  references.keep();
  write_text(out.settings(), flags.settings);
  if (const std::vector<std::string> labels = labels_of(model); !labels.empty()) write_text(out.labels(), labels_json(labels));
  if (!chat_template.empty()) write_text(out.chat_template(), chat_template);
  else if (drops_template) std::remove(out.chat_template().c_str());   // taken back: the model's own holds
  const std::vector<std::string> copied = copy_tokenizer_files(tokenization, run_of(flags.model), out.path());
  std::fflush(stdout);
  const stw_progress begin = query(trainer);

  const Learned learned = about.labels > 0 ? Learned::texts : flags.data.has_pairs ? Learned::pairs : Learned::tokens;
  TrainingRun run(flags.run, out, trainer.get(), data.dataset.get(), apart ? held_out.dataset.get() : data.dataset.get(), learned, info);
  const bool complete = run.run();
  const uint64_t after = memory_in_use(device.get());
  call([&](stw_error* error) { return stw_trainer_export_model(trainer.get(), out.path().c_str(), error); });
  write_text(out.loss_curve(),
             loss_curve_svg(read_metrics(read_text(out.metrics())), flags.model.source + " on " + flags.data.path));
  tell_memory(info.arena, before, after);
  if (complete)
    tell_end(out, query(trainer), learned, copied);
  else
    tell_interrupted(flags, query(trainer));
  if (!complete) return;
  const bool is_fp16 = info.precision == STW_PRECISION_FP16;
  require_a_step(begin, query(trainer), is_fp16);
  require_finite(run, is_fp16);
}

}  // namespace command
