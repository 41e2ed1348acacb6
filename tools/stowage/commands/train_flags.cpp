// The command line of `stowage train`.
#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "commands/commands.h"
#include "flags/number_checks.h"
#include "flags/optimizers.h"
#include "run/best.h"
#include "run/resume.h"
#include "run/train.h"

namespace command {
namespace {

// Flags for the length of a run, its folder and its checkpoints.
void add_run_flags(CLI::App& command, TrainFlags& flags) {
  auto* steps = command
                    .add_option("--steps", flags.steps,
                                "Global batches to train on. This or --epochs is required, unless --resume.")
                    ->check(positive())
                    ->type_name("N");
  command
      .add_option("--epochs", flags.epochs,
                  "Instead of --steps, how often to go over the data: over its examples, or as many tokens "
                  "as a text has.")
      ->check(above_zero(1e6))
      ->excludes(steps)
      ->type_name("E");
  auto* out = command
                  .add_option("--out", flags.out,
                              "The folder to write into, which is created. Default: that of --resume.")
                  ->type_name("FOLDER");
  command
      .add_option("--resume", flags.resume,
                  "Continue the run in this folder, with all options that it was given. An option given here "
                  "replaces the\n"
                  "old one, and --no-NAME takes --NAME back.")
      ->type_name("FOLDER");
  command
      .add_flag("--overwrite", flags.overwrite,
                "Replace the run or the files that are in --out already. The old ones lie in replaced-run "
                "there until this\n"
                "run has saved.")
      ->needs(out);
  command
      .add_option("--profile", flags.profile,
                  "Before the run, time every op of a step, and write these times and those that the plan "
                  "expects, for chrome://tracing or Perfetto.")
      ->type_name("FILE.json");
  command
      .add_option("--show-examples", flags.shown,
                  "Instead of a run: show the first N examples of --data as a run learns them, each in "
                  "pieces of text with their\n"
                  "tokens and whether they are learned. Needs neither --steps nor --out.")
      ->check(positive())
      ->type_name("N");
  command
      .add_option("--save-every", flags.run.save_every,
                  "Save after every N batches; 0: at the end. Default: every 10 minutes.")
      ->check(whole_number(0))
      ->type_name("N");
}

// Flags for evaluations and for the decisions that follow from them.
void add_evaluation_flags(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--eval-every", flags.run.evaluate_every,
                  "Evaluate after every N batches; 0: only after the last. Default: 250.")
      ->check(whole_number(0))
      ->type_name("N");
  command
      .add_option("--eval-data", flags.evaluation_files,
                  "Files like those of --data to evaluate on; all of --data is then trained on. Default: a "
                  "tenth of --data is held out:\n"
                  "the last tenth of a text or tokens, or a tenth of the examples that a fixed seed draws.")
      ->check(not_empty())
      ->expected(1, -1)
      ->type_name("FILE...");
  add_tail_flag(command, flags.data);
  command.get_option("--eval-tail")->excludes(command.get_option("--eval-data"));
  command
      .add_option("--eval-batches", flags.run.evaluation_batches,
                  "Batches of an evaluation; 0: no evaluation, and all of --data is trained on. Default: 20; "
                  "the last evaluation of a classifier takes all.")
      ->check(whole_number(0))
      ->type_name("N");
  command.add_flag("--keep-best", flags.run.keeps_best,
                   "Write the weights of the best evaluation, which are kept in checkpoints/best.stw, not "
                   "those of the last step.");
  command
      .add_option("--patience", flags.run.patience,
                  "End the run after N evaluations in a row that are no better than the best one.")
      ->check(positive())
      ->type_name("N");
  command
      .add_option("--metric", flags.run.metric,
                  "Which evaluation is the best one, by the names of metrics.jsonl: the one with the "
                  "smallest loss, rmse, mse or mae, or with\n"
                  "the largest of the others. Default: loss.")
      ->check(CLI::IsMember(metric_names()))
      ->type_name("NAME");
}

// Flags for older checkpoints, TensorBoard, the check of determinism and the seed.
void add_record_flags(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--keep", flags.run.keep,
                  "Also keep the last N checkpoints in the folder checkpoints, each named by its batches. "
                  "Default: only the last one is kept.")
      ->check(positive())
      ->type_name("N");
  command
      .add_option("--tensorboard", flags.run.event_folder,
                  "A folder for TensorBoard, to write losses, rates and metrics into.")
      ->check(not_empty())
      ->type_name("FOLDER");
  command
      .add_option(
          "--deterministic-check", flags.run.check_every,
          "Make every N-th step twice, from the same checkpoint, and compare all bytes. Default: none.")
      ->check(positive())
      ->type_name("N");
  add_seed(command, flags.model.seed,
           "The seed of random weights, training windows and dropout. Default: 1337.");
}

std::string default_text(OptimizerSetting setting) { return "Default: " + defaults_of(setting) + "."; }

void add_optimizer_flags(CLI::App& command, TrainFlags& flags) {
  const CLI::Validator below_one = number_in(0, 0.999999);
  command
      .add_option("--lr", flags.run.learning_rate,
                  "Largest learning rate. " + default_text(&OptimizerRow::learning_rate))
      ->check(above_zero(largest_rate))
      ->type_name("RATE");
  command
      .add_option("--min-lr", flags.run.min_rate, "The rate after the last step. Default: a tenth of --lr.")
      ->check(not_negative(largest_rate))
      ->type_name("RATE");
  command
      .add_option("--warmup", flags.run.warmup,
                  "Steps of linear warm-up. Default: a tenth of the steps, at most 100.")
      ->check(whole_number(0))
      ->type_name("N");
  command
      .add_option("--schedule", flags.run.schedule,
                  "How the learning rate falls after the warm-up. Default: cosine.")
      ->check(CLI::IsMember({"cosine", "linear", "constant", "wsd", "inverse-root"}))
      ->type_name("cosine|linear|constant|wsd|inverse-root");
  command
      .add_option("--decay-steps", flags.run.decay_steps,
                  "wsd: steps of descent at the end. Default: a fifth of the steps.")
      ->check(positive())
      ->type_name("N");
  command
      .add_option("--lr-batch", flags.run.base_batch,
                  "--lr and --min-lr are for batches of N, and scaled by the root of --batch / N.")
      ->check(positive())
      ->type_name("N");
  command
      .add_option(
          "--beta1", flags.trainer.beta1,
          optimizers_with(&OptimizerRow::beta1) + ": the first beta. " + default_text(&OptimizerRow::beta1))
      ->check(below_one)
      ->type_name("B");
  command
      .add_option(
          "--beta2", flags.trainer.beta2,
          optimizers_with(&OptimizerRow::beta2) + ": the second beta. " + default_text(&OptimizerRow::beta2))
      ->check(below_one)
      ->type_name("B");
  auto* momentum = command.add_option(
      "--momentum", flags.trainer.momentum,
      optimizers_with(&OptimizerRow::momentum) + ": the momentum. " + default_text(&OptimizerRow::momentum));
  momentum->check(below_one)->type_name("B");
  command.add_flag("--nesterov", flags.trainer.nesterov,
                   optimizers_with(&OptimizerRow::nesterov) + ": use Nesterov momentum.");
  command
      .add_option("--weight-decay", flags.trainer.weight_decay,
                  "The decay of all tensors but 1-D ones. " + default_text(&OptimizerRow::weight_decay))
      ->check(not_negative(largest_rate))
      ->type_name("RATE");
}

void add_loss_flags(CLI::App& command, TrainFlags& flags) {
  command
      .add_option("--label-smoothing", flags.trainer.label_smoothing,
                  "The share of the target's probability that all tokens get. For pairs of answers: the "
                  "share of pairs\n"
                  "in which the two answers are assumed to be swapped. Default: 0.")
      ->check(number_in(0, 0.99))
      ->type_name("SHARE");
  add_preference_flags(command, flags.trainer.preference);
  command
      .add_option(
          "--z-loss", flags.trainer.z_loss,
          "The factor of the square of log sum exp of the logits, which is added to the loss. Default: 0.")
      ->check(not_negative())
      ->type_name("FACTOR");
  command
      .add_option("--skip-outliers", flags.trainer.outlier_limit,
                  "Skip steps whose loss or gradient norm lies more standard deviations than this above its "
                  "running mean.\n"
                  "Default: none.")
      ->check(above_zero())
      ->type_name("DEVIATIONS");
  command
      .add_option("--non-finite", flags.trainer.non_finite,
                  "What happens at a loss or gradient that is not finite. Default: skip.")
      ->check(CLI::IsMember({"skip", "stop"}))
      ->type_name("skip|stop");
  command
      .add_option("--loss-scale", flags.trainer.loss_scale,
                  "fp16: the loss scale of the first step, a power of two. Default: 65536.")
      ->check(above_zero())
      ->type_name("SCALE");
}

}  // namespace

void add_train(CLI::App& application, const std::string& program) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App& command =
      *application.add_subcommand("train", "Train a model on a file, and write it into a folder.");
  add_model_flags(command, flags->model);
  add_adapter_flags(command, flags->model);
  add_from_scratch_flag(command, flags->model)->excludes(command.get_option("--lora"));
  add_task_flag(command, flags->model);
  add_new_head_flag(command, flags->model);
  add_data_flags(command, flags->data);
  add_label_names_flag(command, flags->data);
  add_run_flags(command, *flags);
  add_evaluation_flags(command, *flags);
  add_record_flags(command, *flags);
  add_optimizer_flags(command, *flags);
  add_loss_flags(command, *flags);
  add_request_flags(command, flags->plan);
  add_numerics_flags(command, flags->plan);
  auto* plan = command
                   .add_option("--plan", flags->plan_file,
                               "A plan that `stowage plan --json` wrote, instead of making one.")
                   ->type_name("FILE");
  auto* const in_examples = command
                                .add_option("--batch-examples", flags->batch_examples,
                                            "Instead of --batch: as many samples as hold N examples on "
                                            "average. A sample holds several short ones.")
                                ->check(positive())
                                ->excludes(command.get_option("--batch"))
                                ->type_name("N");
  plan->excludes(in_examples);
  for (const char* decided : {"--vram", "--batch", "--seq", "--micro-batch", "--recompute", "--host-memory",
                              "--reserve", "--preference", "--exact"})
    plan->excludes(command.get_option(decided));
  for (const std::string& name : options_with_resume_rule())
    command.get_option("--" + name);  // throws if the table names no option of this command
  for (const std::string& decided : options_of_numerics()) plan->excludes(command.get_option("--" + decided));
  command.footer(
      "Ctrl-C, SIGTERM and SIGHUP stop the step and save the last complete one (exit codes 130, 143, 129); "
      "Ctrl-C or SIGTERM once more ends at once.\n"
      "A run continues if its output can no longer be written; its exit code is then 1.\n\n" +
      presets_text());
  flags->program = program;
  command.callback([flags, &command] {
    flags->seed_given = command.get_option("--seed")->count() > 0;
    flags->run.evaluates_all = command.get_option("--eval-batches")->count() == 0;
    train(*flags, command);
  });
}

}  // namespace command
