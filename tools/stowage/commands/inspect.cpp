// `stowage inspect`: describes a file or folder and its content.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/kept_options.h"
#include "base/prompt.h"
#include "base/units.h"
#include "commands/commands.h"
#include "flags/flags.h"
#include "plans/profile.h"
#include "run/checkpoint_header.h"
#include "run/metrics.h"
#include "run/run_folder.h"
#include "run/weights_file.h"

namespace command {
namespace {

void show(const char* name, const std::string& value) { fmt::print("{:<14}{}\n", name, value); }

bool is_model(const std::string& folder) {
  return is_there(folder + "/config.json") || is_there(folder + "/adapter_config.json");
}

void show_number(const std::string& text, const char* name, const char* scope, const char* key) {
  if (const auto value = json_number(text, scope, key)) show(name, grouped(static_cast<uint64_t>(*value)));
}

void show_model(const std::string& source, const std::string& name) {
  ModelFlags flags;
  flags.source = source;
  const Model model = open_model(flags);
  const stw_model_info info = query(model);
  show("model", fmt::format("{} ({})", name, info.architecture));
  show("layers", info.file_layers > info.layers
                     ? fmt::format("{}; the weights have {}, the others are left out", grouped(info.layers),
                                   grouped(info.file_layers))
                     : grouped(info.layers));
  show("width", grouped(info.width));
  show("vocabulary", grouped(info.vocabulary));
  show("positions", grouped(info.positions));
  show("parameters",
       info.trainable == info.parameters
           ? grouped(info.parameters)
           : fmt::format("{}, {} of them trainable", grouped(info.parameters), grouped(info.trainable)));
  if (info.task == STW_TASK_LABELS || info.task == STW_TASK_NUMBER)
    show("task", info.task == STW_TASK_LABELS ? "labels" : "number");
  if (const std::vector<std::string> labels = labels_of(model); !labels.empty()) {
    constexpr size_t most_shown = 8;
    const std::vector<std::string> first(
        labels.begin(), labels.begin() + static_cast<ptrdiff_t>(std::min(labels.size(), most_shown)));
    show("labels", fmt::format("{}: {}{}", grouped(labels.size()), fmt::join(first, ", "),
                               labels.size() > most_shown ? ", ..." : ""));
  }
  if (info.task == STW_TASK_SPANS) show("task", "spans: answers in contexts");
  if (info.task == STW_TASK_MASKED_LANGUAGE_MODEL) show("task", "hidden tokens: a masked language model");
  if (info.adapter_rank) show("adapters", fmt::format("of rank {}", info.adapter_rank));
  show("weights", info.has_codes     ? "read from files, matrices in 4 bits"
                  : info.has_weights ? "read from files"
                                     : "none, drawn from a seed when training begins");
  const size_t count = stw_model_tensor_count(model.get());
  fmt::print("\n{} tensors\n", grouped(count));
  for (size_t index = 0; index < count; ++index) {
    auto tensor = sized<stw_tensor_info>();
    call([&](stw_error*) { return stw_model_tensor_at(model.get(), index, &tensor); });
    std::string shape;
    for (uint32_t axis = 0; axis < tensor.ndim; ++axis)
      shape += fmt::format("{}{}", axis ? " x " : "", tensor.shape[axis]);
    fmt::print("  {:<52} {:>18} {:>15}\n", tensor.name, shape, grouped(tensor.elements));
  }
}

// Prints only the config.json, for programs.
void show_config(const std::string& source) {
  ModelFlags flags;
  flags.source = source;
  fmt::print("{}", stw_model_config(open_model(flags).get()));
}

void show_history(const MetricHistory& history) {
  const auto last = [](const char* name, const std::vector<MetricPoint>& points, const std::string& more) {
    if (!points.empty())
      show(name, fmt::format("{:.4f} at step {:.0f}{}", points.back().value, points.back().step, more));
  };
  last("training loss", history.losses, "");
  if (!history.accuracies.empty())
    last("evaluation", history.evaluations,
         fmt::format(", accuracy {:.4f}", history.accuracies.back().value));
  else if (!history.errors.empty())
    last("evaluation", history.evaluations, fmt::format(", RMSE {:.4g}", history.errors.back().value));
  else if (!history.evaluations.empty())
    last("evaluation", history.evaluations,
         fmt::format(", perplexity {:.4g}", std::exp(history.evaluations.back().value)));
}

std::string folder_of(const std::string& path) {
  return path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/'));
}

void show_checkpoint(const std::string& path, const std::string& header) {
  show("checkpoint", fmt::format("{}, {}", path, exact_bytes(file_bytes(path))));
  if (const auto name = json_string(header, "identity", "architecture")) show("architecture", *name);
  if (const auto name = json_string(header, "identity", "precision")) {
    std::string text = *name;
    const auto master = json_string(header, "identity", "master").value_or("none");
    if (master != "none") text += fmt::format(", master {}", master);
    if (json_string(header, "identity", "gradients").value_or("fp32") != "fp32")
      text += ", gradients in bf16";
    if (json_bool(header, "identity", "fused_update").value_or(false)) text += ", fused update";
    if (json_string(header, "identity", "attention").value_or("own") != "own") text += ", cuDNN's attention";
    if (const auto codes = json_string(header, "identity", "quantize").value_or("none"); codes != "none")
      text += fmt::format(", {} below adapters", codes);
    if (const auto codes = json_string(header, "identity", "quantize_embeddings").value_or("none");
        codes != "none")
      text += fmt::format(", {} embeddings", codes);
    show("precision", text);
  }
  if (const auto preference = json_string(header, "identity", "preference").value_or("none");
      preference != "none")
    show("preference", preference);
  if (const auto optimizer = json_string(header, "identity", "optimizer"))
    show("optimizer", fmt::format("{} with {:.0f}-bit states", *optimizer,
                                  json_number(header, "identity", "state_bits").value_or(32)));
  if (const auto scale = json_number(header, "carried", "loss_scale"); scale && *scale != 1)
    show("loss scale", fmt::format("{:.0f}", *scale));
  show_number(header, "steps", "", "step");
  show_number(header, "skipped", "", "skipped");
  const bool has_pairs = json_string(header, "identity", "preference").value_or("none") != "none",
             has_labels = is_there(RunFolder(folder_of(path)).labels());
  const bool are_of_words =
      read_text_if_there(RunFolder(folder_of(path)).config()).value_or("").find("ForTokenClassification\"") !=
      std::string::npos;
  show_number(header,
              has_pairs    ? "pairs"
              : has_labels ? are_of_words ? "words" : "texts"
                           : "tokens",
              "", "tokens");
  call([&](stw_error* error) { return stw_checkpoint_verify(path.c_str(), error); });
  show("checksums", "all right");
}

void show_plan_summary(const std::string& text) {
  if (const auto name = json_string(text, "", "fingerprint")) show("plan", *name);
  show_number(text, "batch", "request", "global_batch");
  show_number(text, "sequence", "request", "sequence");
  show_number(text, "micro-batch", "numerics", "micro_batch");
  if (const auto bytes = json_number(text, "bytes", "peak"))
    show("memory", exact_bytes(static_cast<uint64_t>(*bytes)));
}

void show_plan(const std::string& path, const std::string& text, ModelFlags flags) {
  const std::string folder = folder_of(path);
  if (flags.source.empty() && is_model(folder)) flags.source = folder;
  if (flags.source.empty()) {
    show_plan_summary(text);
    fmt::print(
        "\nThe plan was not checked. Give its model with --model to check it and to see the whole report.\n");
    return;
  }
  const Model model = open_model(flags);
  stw_plan* plan = nullptr;
  try {
    call(
        [&](stw_error* error) { return stw_plan_load(&plan, model.get(), text.data(), text.size(), error); });
  } catch (const Failure& failure) {
    throw Failure(failure.exit_code, fmt::format("{}: {}", path, failure.what()));
  }
  fmt::print("{}", stw_plan_report(Plan(plan).get()));
}

void show_weights(const std::string& path) {
  const std::vector<StoredTensor> tensors = read_weights_head(path);
  uint64_t parameters = 0;
  std::map<std::string, size_t> formats;
  for (const StoredTensor& tensor : tensors) {
    parameters += tensor.elements;
    formats[printable(tensor.format)] += 1;
  }
  std::vector<std::string> names;
  for (const auto& [format, count] : formats)
    names.push_back(formats.size() == 1 ? format : fmt::format("{} x {}", count, format));
  show("weights", fmt::format("{}, {}", path, exact_bytes(file_bytes(path))));
  show("parameters", grouped(parameters));
  show("formats", fmt::format("{}", fmt::join(names, ", ")));
  fmt::print("\n{} tensors\n", grouped(tensors.size()));
  for (const StoredTensor& tensor : tensors)
    fmt::print("  {:<52} {:>18} {:>15} {:>6}\n", printable(tensor.name),
               fmt::format("{}", fmt::join(tensor.shape, " x ")), grouped(tensor.elements),
               printable(tensor.format));
}

void show_settings(const std::string& path, const std::string& text) {
  show("settings", fmt::format("{}; the run was started with", path));
  for (const std::string& option : options_in(text, path)) fmt::print("  {}\n", option);
}

// Describes the run in a folder. Returns whether there is one.
bool show_run(const RunFolder& folder) {
  const auto metrics = read_text_if_there(folder.metrics());
  const auto header = checkpoint_header(folder.checkpoint());
  if (!metrics && !header) return false;
  show("run", folder.path());
  if (header) show_checkpoint(folder.checkpoint(), *header);
  if (metrics) show_history(read_metrics(*metrics));
  if (const auto plan = read_text_if_there(folder.plan())) show_plan_summary(*plan);
  return true;
}

void inspect_folder(const std::string& path) {
  const bool run = show_run(RunFolder(path)), model = is_model(path);
  if (!run && !model)
    throw Failure(
        exit_failed,
        fmt::format("{}: expected a model or a run, found neither config.json nor metrics.jsonl", path));
  if (run && model) fmt::print("\n");
  if (model) show_model(path, path);
}

// `flag`: a flag that only plans need, if one was given.
void inspect(const std::string& path, const ModelFlags& model, const std::string& flag) {
  const bool is_file = is_there(path) && !is_folder(path);
  // The content of a pipe can be read only once, and is read as text.
  const auto header = is_file && may_be_read_again(path) ? checkpoint_header(path) : std::nullopt;
  const bool is_text =
      is_file && !header && !path.ends_with(".stw") && !path.ends_with(".safetensors") &&
      (path.ends_with(".jsonl") || may_be_json(path));  // files of tokens may be large and are not read
  const std::string text = is_text ? read_text(path) : "",
                    format = json_string(text, "", "format").value_or("");
  if (format == "stowage-plan") return show_plan(path, text, model);
  if (!flag.empty())
    throw Failure(exit_usage, fmt::format("{}: this flag is for plans, and {} is not a plan", flag, path));
  if (!is_there(path)) return show_model(path, path);  // a preset, else the library reports the problem
  if (is_folder(path)) return inspect_folder(path);
  if (header) return show_checkpoint(path, *header);
  if (path.ends_with(".stw"))
    throw Failure(exit_failed, fmt::format("{}: expected a checkpoint, but its header is damaged", path));
  if (path.ends_with(".safetensors")) return show_weights(path);
  if (!is_text)
    throw Failure(
        exit_failed,
        fmt::format(
            "{}: expected a model's config.json, a checkpoint, weights, a plan, a profile, settings.json or "
            "metrics.jsonl, found none of them",
            path));
  if (format == "stowage-profile") {
    require_profile(path, text);
    return print_profile(text);
  }
  if (format == "stowage-settings") return show_settings(path, text);
  if (path.ends_with(".jsonl")) {
    const MetricHistory history = read_metrics(text);
    if (history.losses.empty() && history.evaluations.empty())
      throw Failure(exit_failed, fmt::format("{}: expected the metrics of a run, found none", path));
    return show_history(history);
  }
  show_model(path, path);
}

}  // namespace

void add_inspect(CLI::App& application) {
  struct Flags {
    std::string path;
    bool config = false;
    ModelFlags model;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *application.add_subcommand("inspect", "Describe a file or folder and its content.");
  command
      .add_option("PATH", flags->path,
                  "A model, a run, a checkpoint, a plan, a profile, settings.json, metrics.jsonl, or a "
                  "preset's name.")
      ->required()
      ->type_name("");
  command.add_flag("--config", flags->config,
                   "Print the config.json of a model or preset, as JSON, and nothing else.");
  add_model_flags(command, flags->model);
  add_adapter_flags(command, flags->model);
  add_labels_flag(command, flags->model);
  command.get_option("--model")
      ->description("The model of a plan, with the same flags about the model as for `plan`.")
      ->required(false);
  command.callback([flags, &command] {
    const std::vector<CLI::Option*> options = command.get_options();
    const auto given = std::find_if(options.begin(), options.end(), [&](const CLI::Option* option) {
      return option->count() > 0 && option != command.get_option("PATH") &&
             option != command.get_option("--config");
    });
    const std::string flag = given == options.end() ? "" : (*given)->get_name();
    if (flags->config && !flag.empty())
      throw Failure(exit_usage, fmt::format("{}: this flag is for plans, and --config is for models", flag));
    if (flags->config) return show_config(flags->path);
    inspect(flags->path, flags->model, flag);
  });
}

}  // namespace command
