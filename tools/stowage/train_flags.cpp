// The command line of `stowage train`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "commands.h"
#include "train.h"

namespace command {
namespace {

std::string quoted(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./=+,:@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The command line without what says how this run began.
std::string command_again(const std::vector<std::string>& words) {
  std::string out;
  for (size_t index = 0; index < words.size(); ++index) {
    const std::string& word = words[index];
    if (word == "--overwrite" || word.starts_with("--resume=")) continue;
    if (word == "--resume") {
      ++index;
      continue;
    }
    out += (index ? " " : "") + quoted(word);
  }
  return out;
}

void add_run_flags(CLI::App& command, TrainFlags& flags) {
  command.add_option("--steps", flags.run.steps, "Global batches to train on.")
      ->required()
      ->check(positive())
      ->type_name("N");
  auto* out =
      command.add_option("--out", flags.out, "The folder to write into; it is created. Default: that of --resume.")
          ->type_name("DIR");
  command
      .add_option("--resume", flags.resume, "Continue the run in this folder, with its --batch, --seq and --seed.")
      ->type_name("DIR");
  command.add_flag("--overwrite", flags.overwrite, "Replace a run that is in --out already.")->needs(out);
  command
      .add_option("--save-every", flags.run.save_every,
                  "Save after every N batches; 0: at the end. Default: every 10 minutes.")
      ->type_name("N");
  command
      .add_option("--eval-every", flags.run.evaluate_every,
                  "Evaluate after every N batches; 0: only after the last. Default: 250.")
      ->type_name("N");
  command.add_option("--eval-batches", flags.run.evaluation_batches, "Batches of an evaluation; 0: none. Default: 20.")
      ->type_name("N");
  add_seed(command, flags.model.seed, "Of random weights, training windows and dropout. Default: 1337.");
}

void add_optimizer_flags(CLI::App& command, TrainFlags& flags) {
  const CLI::Range below_one(0.0, 0.999999);
  command.add_option("--lr", flags.run.learning_rate, "Largest learning rate. Default: 3e-4.")
      ->check(CLI::PositiveNumber)
      ->type_name("RATE");
  command.add_option("--min-lr", flags.run.min_rate, "Learning rate at the end. Default: a tenth of the largest.")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RATE");
  command
      .add_option("--warmup", flags.run.warmup, "Steps of linear warm-up. Default: a tenth of the steps, at most 100.")
      ->type_name("N");
  command.add_option("--schedule", flags.schedule, "How the rate falls after the warm-up. Default: cosine.")
      ->check(CLI::IsMember({"cosine", "linear", "constant"}))
      ->type_name("cosine|linear|constant");
  command.add_option("--beta1", flags.beta1, "Default: 0.9.")->check(below_one)->type_name("B");
  command.add_option("--beta2", flags.beta2, "Default: 0.95.")->check(below_one)->type_name("B");
  command.add_option("--weight-decay", flags.weight_decay, "None on 1-D tensors. Default: 0.1.")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RATE");
}

}  // namespace

void add_train(CLI::App& application, const std::vector<std::string>& words) {
  auto flags = std::make_shared<TrainFlags>();
  flags->again = command_again(words);
  CLI::App& command = *application.add_subcommand("train", "Train a model on a file, and write it into a folder.");
  add_model_flags(command, flags->model);
  add_data_flags(command, flags->data);
  add_run_flags(command, *flags);
  add_optimizer_flags(command, *flags);
  add_request_flags(command, flags->plan);
  add_numerics_flags(command, flags->plan);
  auto* plan =
      command.add_option("--plan", flags->plan_file, "A plan that `stowage plan --json` wrote, instead of making one.")
          ->type_name("FILE");
  for (const char* decided : {"--vram", "--batch", "--seq", "--precision", "--optimizer", "--states", "--micro-batch",
                              "--recompute", "--host-memory", "--reserve"})
    plan->excludes(command.get_option(decided));
  command.footer(presets_text());
  const auto* seed = command.get_option("--seed");
  command.callback([flags, seed] {
    flags->seed_given = seed->count() > 0;
    train(*flags);
  });
}

}  // namespace command
