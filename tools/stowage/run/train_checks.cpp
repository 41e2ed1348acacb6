#include "run/train_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "flags/number_checks.h"
#include "flags/optimizers.h"
#include "run/best.h"
#include "run/run_folder.h"

namespace command {
namespace {

// Empty if the rate is the default of an unknown optimizer.
std::optional<double> largest_rate_of(const RunFlags& run, const std::string& optimizer) {
  if (run.learning_rate > 0) return run.learning_rate;
  const OptimizerRow* const row = find_optimizer(optimizer);
  return row ? row->learning_rate : std::nullopt;
}

void check_scaled_rate(const RunFlags& run, const std::string& optimizer, uint64_t batch) {
  const std::optional<double> rate = largest_rate_of(run, optimizer);
  const double scale =
      run.base_batch ? std::sqrt(static_cast<double>(batch) / static_cast<double>(run.base_batch)) : 1;
  if (rate && *rate * scale > largest_rate)
    throw Failure(
        exit_usage,
        fmt::format(
            "--lr-batch {}: scales the learning rate {} to {:.10g} for batches of {}; expected at most {}",
            run.base_batch, *rate, *rate * scale, grouped(batch), largest_rate));
}

void check_optimizer(const TrainerFlags& flags, const std::string& optimizer) {
  const OptimizerRow* const row = find_optimizer(optimizer);
  const struct {
    const char* flag;
    bool given;
    OptimizerSetting setting;
  } settings[] = {{"--beta1", flags.beta1.has_value(), &OptimizerRow::beta1},
                  {"--beta2", flags.beta2.has_value(), &OptimizerRow::beta2},
                  {"--momentum", flags.momentum.has_value(), &OptimizerRow::momentum},
                  {"--nesterov", flags.nesterov, &OptimizerRow::nesterov}};
  for (const auto& [flag, given, setting] : settings)
    if (row && given && !(row->*setting))
      throw Failure(exit_usage, fmt::format("{}: is for --optimizer {}, not for {}", flag,
                                            optimizers_with(setting), optimizer));
  if (flags.nesterov && flags.momentum == 0.0f)
    throw Failure(exit_usage, "--nesterov: needs a --momentum above 0");
}

void check_loss_scale(const TrainerFlags& flags) {
  int exponent = 0;
  if (flags.loss_scale &&
      (std::frexp(*flags.loss_scale, &exponent) != 0.5 || *flags.loss_scale < 1 || *flags.loss_scale > 1e30))
    throw Failure(exit_usage,
                  fmt::format("--loss-scale {}: expected a power of two from 1 to 1e30", *flags.loss_scale));
}

void check_fused_update(const TrainRun& run) {
  const std::string name =
      run.plan_file.empty() ? "--fused-update" : fmt::format("--plan {}: has a fused update", run.plan_file);
  if (run.trainer.outlier_limit > 0)
    throw Failure(
        exit_usage,
        name + ": the norm of the gradients is not known before the update; leave out --skip-outliers");
  if (run.plan.clip.value_or(0) > 0)
    throw Failure(exit_usage,
                  name + ": the norm of the gradients is not known before the update; leave out --clip");
}

void check_preference(const TrainRun& run, const std::string& json) {
  const std::string preference = preference_of(json);
  if (run.data.has_pairs && preference == "none")
    throw Failure(exit_usage,
                  fmt::format("--plan {}: was made without --preference, and {} has pairs of answers",
                              run.plan_file, run.data.path));
  if (!run.data.has_pairs && preference != "none")
    throw Failure(exit_usage, fmt::format("--plan {}: is for --preference {}, and {} has no pairs of answers",
                                          run.plan_file, preference, run.data.path));
  require_pairs(run.trainer.preference, run.data);
  if (run.trainer.preference.margin && preference != "simpo")
    throw Failure(exit_usage, fmt::format("--margin: is for --preference simpo, not for {}", preference));
  if (preference != "none" && run.trainer.z_loss != 0)
    throw Failure(
        exit_usage,
        "--z-loss: is for the losses of single tokens, but a preference compares pairs; leave it out");
  if (run.trainer.label_smoothing != 0 && (preference == "ipo" || preference == "orpo"))
    throw Failure(exit_usage, fmt::format("--label-smoothing: is for --preference dpo and simpo, not for {}",
                                          preference));
  if (preference != "none" && run.trainer.label_smoothing >= 0.5f)
    throw Failure(exit_usage, "--label-smoothing: expected a share of pairs of less than 0.5");
}

}  // namespace

void check_min_rate(const RunFlags& run, const std::string& optimizer) {
  const std::optional<double> rate = largest_rate_of(run, optimizer);
  if (run.min_rate && rate && *run.min_rate > *rate)
    throw Failure(
        exit_usage,
        fmt::format("--min-lr {}: expected at most {} {}", *run.min_rate,
                    run.learning_rate == 0 ? fmt::format("{}'s default learning rate,", optimizer) : "--lr",
                    *rate));
}

void check_schedule(const RunSettings& run) {
  const bool decays = run.schedule == "wsd";
  if (run.decay_steps && !decays) throw Failure(exit_usage, "--decay-steps: is for --schedule wsd");
  if (run.min_rate && run.schedule == "constant")
    throw Failure(exit_usage, "--min-lr: --schedule constant has one learning rate; leave one of them out");
  const uint64_t warmup = warmup_steps(run), decay = run.decay_steps ? run.decay_steps : run.steps / 5;
  if (warmup > run.steps)
    throw Failure(exit_usage, fmt::format("--warmup {}: longer than --steps {}", warmup, run.steps));
  if (decays && decay > run.steps - warmup)
    throw Failure(exit_usage, fmt::format("--warmup {} and --decay-steps {}: together longer than --steps {}",
                                          warmup, decay, run.steps));
}

void check_settings(const TrainRun& run, const stw_plan_info& plan, const std::string& json) {
  const TrainerFlags& flags = run.trainer;
  const uint32_t task = run.about.task;
  const std::string optimizer = json_string(json, "numerics", "optimizer").value_or("");
  const bool is_fp16 = plan.precision == STW_PRECISION_FP16;
  check_optimizer(flags, optimizer);
  if (flags.non_finite == "stop" && is_fp16)
    throw Failure(exit_usage,
                  "--non-finite stop: fp16 finds its loss scale by steps that are not finite; skip them, or "
                  "train in bf16");
  if (flags.loss_scale && !is_fp16) throw Failure(exit_usage, "--loss-scale: is for --precision fp16");
  check_min_rate(run.loop, optimizer);
  check_scaled_rate(run.loop, optimizer, plan.global_batch);
  check_loss_scale(flags);
  // also with a given plan
  if (json_bool(json, "numerics", "fused_update").value_or(false)) check_fused_update(run);
  if (flags.outlier_limit > 0 && flags.outlier_limit <= 1)
    throw Failure(exit_usage, fmt::format("--skip-outliers {}: expected more than 1 standard deviation",
                                          flags.outlier_limit));
  if (run.plan.document_end && !has_documents(json))
    throw Failure(exit_usage, fmt::format("--document-end: --plan {} was made without it", run.plan_file));
  check_preference(run, json);
  for (const auto& [flag, value] :
       {std::pair{"--label-smoothing", flags.label_smoothing}, {"--z-loss", flags.z_loss}}) {
    if (value != 0 && task == STW_TASK_SPANS)
      throw Failure(exit_usage, fmt::format("{} {}: is not supported for --task spans", flag, value));
    if (value != 0 && (task == STW_TASK_LABELS || task == STW_TASK_NUMBER))
      throw Failure(exit_usage, fmt::format("{}: is for losses over a softmax, and {} has none", flag,
                                            task == STW_TASK_LABELS ? "the task labels" : "the task number"));
  }
  if (run.plan.examples && !has_documents(json))
    throw Failure(
        exit_usage,
        fmt::format("--data {}: examples are documents, but --plan {} was made without documents; make it "
                    "with `stowage plan --document-end TOKEN`, where TOKEN is the model's end of text",
                    run.data.path, run.plan_file));
}

void check_metric(const TrainRun& run) {
  const std::vector<std::string> names = metrics_of_task(run.about.task, run.labels, run.data.has_pairs);
  if (std::find(names.begin(), names.end(), run.loop.metric) == names.end())
    throw Failure(exit_usage, fmt::format("--metric {}: evaluations of this model have {}", run.loop.metric,
                                          fmt::join(names, ", ")));
}

void check_labels_of_run(const std::string& resume, const std::string& data, const Model& model) {
  if (resume.empty()) return;
  const std::string path = RunFolder(resume).labels();
  const auto of_run = read_text_if_there(path);
  if (!of_run) return;
  const uint32_t task = query(model).task;
  const auto [names, task_of_run] = labels_in(*of_run, path);
  if (task_of_run != labels_in(labels_json(names, task), path).task)
    throw Failure(
        exit_failed,
        fmt::format("--data {}: the run in {} learns the task {}; another task would change the trained bits",
                    data, resume, task_of_run.empty() ? "label" : task_of_run));
  if (names != labels_of(model))
    throw Failure(exit_failed,
                  fmt::format("--data {}: its labels are not those of the run, which {} has", data, path));
}

void require_a_step(const stw_progress& before, const stw_progress& now, bool is_fp16) {
  if (now.step == before.step && now.skipped > before.skipped)
    throw Failure(
        exit_failed,
        fmt::format("no step was applied: all {} batches were skipped, the last one because {}{}",
                    grouped(now.skipped - before.skipped), skip_reason(now.skip_reason),
                    is_fp16 ? fmt::format("; the loss scale has come to {:g}", now.loss_scale) : ""));
}

void require_finite(const TrainingRun& run, bool is_fp16) {
  if (run.evaluation_loss() && !std::isfinite(*run.evaluation_loss()))
    throw Failure(exit_failed,
                  "the evaluation loss is not finite: the run has diverged, and its model is of no use; give "
                  "a smaller --lr, or a longer --warmup");
  if (constexpr uint64_t many = 10; !is_fp16 && run.lost_batches() >= many)
    throw Failure(exit_failed,
                  fmt::format("the last {} batches were skipped, because their loss or gradients are not "
                              "finite: the run has diverged; give a smaller --lr, or a longer --warmup",
                              grouped(run.lost_batches())));
}

}  // namespace command
