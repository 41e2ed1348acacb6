// `stowage merge`: adds the adapters of a model to its weights, and writes the result as a model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/failure.h"
#include "base/files.h"
#include "base/folder_lock.h"
#include "base/json_value.h"
#include "base/units.h"
#include "base/work_line.h"
#include "commands/commands.h"
#include "data/tokenization.h"
#include "flags/flags.h"
#include "run/model_card.h"
#include "run/run_folder.h"

namespace command {
namespace {

struct MergeCommand {
  ModelFlags model;
  std::string out;

  void run() const {
    const Model opened = open_model(model);
    const stw_model_info info = query(opened);
    if (!info.adapter_rank)
      throw Failure(
          exit_usage,
          fmt::format("{}: has no adapters to merge; give a folder of them with --adapter", model.source));
    const RunFolder folder(out);
    const MadeFolder made(folder.path());
    folder.make_writable();
    const FolderLock lock(folder.path());
    // True after a merge that was killed before it renamed config.json, its last file. A folder with a
    // checkpoint is a run.
    const bool is_half =
        !is_there(folder.config()) && !is_there(folder.checkpoint()) && folder.has_stale(folder.config());
    for (const std::string& file : {folder.weights(), folder.config()})
      if (is_there(file) && !is_half)
        throw Failure(exit_failed, fmt::format("{} exists already: give another --out", file));
    if (is_half) std::remove(folder.weights().c_str());
    folder.remove_stale();
    // These are written before the model, so that a folder with a config.json is complete.
    std::vector<std::string> names = copy_tokenizer_files(
        Tokenization::of_model("ids", run_of(model), info.vocabulary), run_of(model), folder.path());
    if (const bool is_new = !is_there(folder.card()); is_new || is_card_of_run(folder.card())) {
      write_text(folder.card(), card(info));
      if (is_new) names.push_back("README.md");
    }
    try {
      long_call([&](stw_error* error) {
        return stw_model_export_watched(opened.get(), folder.path().c_str(), work_watch(), error);
      });
    } catch (const Failure&) {
      for (const std::string& name : names) std::remove((folder.path() + "/" + name).c_str());
      throw;
    }
    names.insert(names.begin(), "config.json");
    if (is_card_of_run(folder.card()) && names.back() != "README.md") names.push_back("README.md");
    fmt::print("wrote       {}: model.safetensors ({}), {}\n", out, exact_bytes(file_bytes(folder.weights())),
               fmt::join(names, ", "));
  }

  std::string card(const stw_model_info& info) const {
    const std::string adapters = model.adapter.empty() ? model.source : model.adapter,
                      path = adapters + "/adapter_config.json";
    ModelCard made;
    made.folder = out, made.base = model.source, made.architecture = info.architecture, made.task = info.task,
    made.is_merged = true;
    if (model.adapter.empty())  // the adapters name their model
      if (const auto text = read_text_if_there(path)) {
        const Json config = read_json(*text, path);
        made.base = JsonView(config, path + ": ").at("base_model_name_or_path").text_or(model.source);
      }
    made.rows = {
        {"adapters", fmt::format("rank {}, of {}", info.adapter_rank,
                                 std::filesystem::path(adapters).lexically_normal().filename().string())}};
    return model_card(made);
  }
};

}  // namespace

void add_merge(CLI::App& application) {
  auto self = std::make_shared<MergeCommand>();
  CLI::App& command =
      *application.add_subcommand("merge", "Write a model with its adapters added to its weights.");
  add_model_flags(command, self->model);
  command.get_option("--model")->description(
      "A folder of adapters, which names its model; or a model, with --adapter.");
  command.add_option("--out", self->out, "The folder to write into.")
      ->required()
      ->check(not_empty())
      ->type_name("FOLDER");
  command.callback([self] { self->run(); });
}

}  // namespace command
