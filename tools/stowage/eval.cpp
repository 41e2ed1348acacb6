// `stowage eval`: the loss of a model on the held-out part of a file, or on all of it.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "commands.h"
#include "data.h"
#include "files.h"
#include "inference.h"
#include "number_checks.h"
#include "units.h"

namespace command {
namespace {

constexpr uint64_t default_batches = 20;

struct EvalCommand {
  ModelFlags model;
  PlanFlags plan;
  DataFlags data;
  std::optional<uint64_t> batches;
  bool json = false, all = false;

  void run() {
    take_defaults_of_run(model, plan);
    find_examples(plan, data, model);
    warn_of_documents(model, plan);
    if (!plan.batch) plan.batch = 8;
    const Inference opened = open();
    const stw_plan_info info = query(opened.plan);
    const stw_model_info about = query(opened.model);
    const auto tokenization = Tokenization::of_file(data.tokenizer, data.path, run_of(model), about.vocabulary);
    const std::optional<double> held_out = all ? std::optional(1.0) : std::nullopt;
    const OpenData tokens = open_data(data, data.path, {tokenization, model, opened.model, info.sequence, plan.document_end, held_out, true, "evaluate on --all of it"});
    const uint64_t there = query(tokens.dataset).evaluation_samples;
    const uint64_t wanted = batches.value_or(all && there ? (there + info.global_batch - 1) / info.global_batch : default_batches);
    double loss = 0;
    call([&](stw_error* error) { return stw_trainer_evaluate(opened.trainer.get(), tokens.dataset.get(), wanted, &loss, error); });
    const uint64_t samples = there ? std::min(there, wanted * info.global_batch) : wanted * info.global_batch, count = samples * info.sequence;
    const double perplexity = std::exp(loss);
    const bool is_classifier = about.labels > 0;
    const double accuracy = query(opened.trainer).evaluation_accuracy;
    if (json) {
      // JSON has no way to write what is not finite.
      const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; };
      fmt::print("{{\"model\":{},\"data\":{},\"eval_loss\":{},\"{}\":{},\"tokens\":{}}}\n", json_quoted(model.source), json_quoted(data.path), number(loss),
                 is_classifier ? "accuracy" : "perplexity", number(is_classifier ? accuracy : perplexity), count);
    } else if (is_classifier) {
      const std::string over = all && samples == there ? fmt::format("the {} texts", grouped(tokens.counts.examples)) : fmt::format("the texts in {} samples", grouped(samples));
      fmt::print("evaluation loss {:.4f}, accuracy {:.4f}, over {} of {}\n", loss, accuracy, over, data.path);
    } else {
      const std::string over = tokens.counts.examples ? fmt::format("what is learned in {} samples", grouped(samples)) : grouped(count) + " tokens";
      fmt::print("evaluation loss {:.4f}, perplexity {:.4g}, over {} of {}\n", loss, perplexity, over, data.path);
    }
  }

  // That it does not fit is an answer too.
  Inference open() const {
    try {
      return open_inference(model, plan);
    } catch (const Failure& failure) {
      if (json && failure.exit_code == exit_does_not_fit)
        fmt::print("{{\"model\":{},\"data\":{},\"fits\":false,\"minimum_vram_bytes\":{}}}\n", json_quoted(model.source),
                   json_quoted(data.path), failure.bytes_needed ? fmt::format("{}", failure.bytes_needed) : "null");
      throw;
    }
  }
};

}  // namespace

void add_eval(CLI::App& application) {
  auto self = std::make_shared<EvalCommand>();
  CLI::App& command = *application.add_subcommand("eval", "Say the loss of a model on the held-out part of a file, and of a classifier its accuracy.");
  command.footer(
      "For a folder that `stowage train` wrote, --batch and --seq default to those of the run, whose precision\n"
      "it computes in, so that the loss is the one of its last evaluation.");
  add_model_flags(command, self->model);
  add_data_flags(command, self->data);
  add_request_flags(command, self->plan);
  command.get_option("--vram")->description("Bounds the peak of the memory. Default: the smallest that works.");
  command.get_option("--batch")->description("Samples of a batch. Default: that of the run, else 8.");
  command.get_option("--seq")->description("Tokens of a sample. Default: that of the run, else all positions, at most 1024. nano: 64.");
  add_threads_flag(command, self->plan);
  add_document_flag(command, self->plan);
  add_quantize_flags(command, self->plan);
  command.add_option("--eval-batches", self->batches, "Batches to evaluate. Default: 20, with --all and examples all of them.")
      ->check(positive())
      ->type_name("N");
  command.add_flag("--all", self->all, "Evaluate on all of the file, not on the last tenth alone, which training holds out.");
  command.add_flag("--json", self->json, "Print one JSON object, and nothing else, to standard output.");
  command.callback([self] { self->run(); });
}

}  // namespace command
