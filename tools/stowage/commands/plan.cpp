// `stowage plan`: the place of every buffer in memory, before anything is allocated.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/work_line.h"
#include "commands/commands.h"
#include "flags/flags.h"
#include "flags/number_checks.h"
#include "plans/largest_model.h"
#include "plans/plan_answers.h"
#include "plans/plan_comparison.h"

namespace command {
namespace {

std::string picture(const Plan& plan, uint32_t kind) {
  // Enough room for a plan of a thousand blocks. Asking for the size first would draw the picture twice.
  std::string text(size_t{1} << 24, 0);
  size_t size = 0;
  long_call([&](stw_error* error) {
    const stw_status status =
        stw_plan_picture_watched(plan.get(), kind, text.data(), text.size(), &size, work_watch(), error);
    if (status == STW_OK || size <= text.size()) return status;
    text.resize(size);
    return stw_plan_picture_watched(plan.get(), kind, text.data(), text.size(), &size, work_watch(), error);
  });
  text.resize(size - 1);  // without the zero byte
  return text;
}

struct PlanCommand {
  ModelFlags model;
  PlanFlags plan;
  bool json = false, frontier = false;
  std::string most;
  std::vector<std::string> compared;
  std::string html, svg, csv;

  void run() const {
    if (most == "model") {
      for (const auto& [given, flag] : {std::pair{&model.source, "--model"},
                                        {&model.weights, "--weights"},
                                        {&model.adapter, "--adapter"}})
        if (!given->empty())
          throw Failure(
              exit_usage,
              fmt::format("{}: --max model tries the presets, not files; leave one of the two out", flag));
      auto any = sized<stw_model_info>();
      any.positions = any.vocabulary = UINT64_MAX;
      const DeviceChoice where = choose_device(plan.device);
      return print_largest_model(model, plan_options(model, any, plan, where), plan.sequence.has_value(),
                                 json);
    }
    if (model.source.empty()) throw Failure(exit_usage, "--model is required");
    if (most == "seq" && plan.sequence)
      throw Failure(exit_usage, "--seq: --max seq searches for it; leave one of the two out");
    const DeviceChoice device = choose_device(plan.device);
    const Model opened = open_model(model);
    const stw_plan_options options = plan_options(model, query(opened), plan, device);
    if (device.total_bytes && options.memory_bytes > device.total_bytes)
      complain(
          "stowage: warning: --vram is {}, but the device {} has only {}: this plan can be made, but a "
          "run of it does not fit {}",
          human_bytes(options.memory_bytes), device.name, human_bytes(device.total_bytes),
          device.present ? "here" : "there");
    if (most == "seq") return print_longest_sequence(opened, options, json);
    if ((!html.empty() && (html == svg || html == csv)) || (!svg.empty() && svg == csv))
      throw Failure(exit_usage, "--html, --svg and --csv write one file each; give each its own name");
    const PlanAnswer answer = create_plan(opened, model.source, options);
    for (const auto& [file, kind] :
         {std::pair{html, STW_PICTURE_HTML}, {svg, STW_PICTURE_SVG}, {csv, STW_PICTURE_CSV}})
      if (!file.empty()) write_text(file, picture(answer.plan, kind));
    if (frontier && json) {
      print_frontier(answer.plan, true);
    } else {
      print_plan(answer.plan);
    }
    if (!answer.shortfall.empty()) throw Failure(exit_does_not_fit, answer.shortfall);
  }

  // Plan files do not contain their model. `flag`: a flag about the model, if one was given.
  void compare(const std::string& flag) const {
    if (model.source.empty() && !flag.empty())
      throw Failure(exit_usage,
                    fmt::format("{}: this describes a model; give --model, the model of both plans", flag));
    if (!model.source.empty()) {
      const Model opened = open_model(model);
      for (const std::string& path : compared) load_plan(opened, path);
    }
    compare_plans(compared[0], compared[1]);
  }

  void print_plan(const Plan& answer) const {
    const std::string text = json ? stw_plan_json(answer.get()) : stw_plan_report(answer.get());
    fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
    if (frontier) print_frontier(answer, false);
  }
};

}  // namespace

void add_plan(CLI::App& application) {
  auto self = std::make_shared<PlanCommand>();
  CLI::App& command = *application.add_subcommand(
      "plan", "Plan a run: the place of every buffer in memory. Allocates nothing.");
  add_model_flags(command, self->model);
  add_adapter_flags(command, self->model);
  add_labels_flag(command, self->model);
  command.get_option("--model")->required(false);
  const std::vector<CLI::Option*> of_model = command.get_options();
  add_request_flags(command, self->plan);
  add_numerics_flags(command, self->plan);
  command.add_flag("--json", self->json, "Print the plan as JSON, and nothing else, to standard output.");
  command.add_flag("--frontier", self->frontier,
                   "Also list the plans that other budgets would get\nwith the same format of states. With "
                   "--json, print only this list.");
  auto* most =
      command
          .add_option("--max", self->most,
                      "Find the longest sequence, or the largest preset, that fits, instead of a plan.")
          ->check(CLI::IsMember({"seq", "model"}))
          ->type_name("seq|model");
  auto* compared = command
                       .add_option("--compare", self->compared,
                                   "Compare two plans that --json wrote, instead of making one. With "
                                   "--model: check that both are unedited plans of that model.")
                       ->expected(2)
                       ->type_name("FILE FILE");
  command
      .add_option("--html", self->html,
                  "Write a page that shows the place, the lifetime and the purpose of every buffer.")
      ->check(not_empty())
      ->type_name("FILE");
  command.add_option("--svg", self->svg, "Write only the picture of the arena from that page.")
      ->check(not_empty())
      ->type_name("FILE");
  command
      .add_option("--csv", self->csv,
                  "Write the buffers at the peak, for tools that assign offsets: id,lower,upper,size,...")
      ->check(not_empty())
      ->type_name("FILE");
  for (const char* name : {"--html", "--svg", "--csv", "--frontier"})
    most->excludes(command.get_option(name));
  // --compare takes two finished plans. Of the other flags, it allows only those about the model.
  for (CLI::Option* option : command.get_options())
    if (option != compared && std::find(of_model.begin(), of_model.end(), option) == of_model.end())
      compared->excludes(option);
  command.footer(presets_text());
  command.callback([self, of_model] {
    if (self->compared.empty()) return self->run();
    const auto given = std::find_if(of_model.begin(), of_model.end(),
                                    [](const CLI::Option* option) { return option->count() > 0; });
    self->compare(given == of_model.end() ? "" : (*given)->get_name());
  });
}

}  // namespace command
