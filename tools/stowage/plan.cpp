// `stowage plan`: what lies where in memory, before anything is allocated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "commands.h"
#include "files.h"
#include "flags.h"
#include "units.h"

namespace command {
namespace {

std::string picture(const Plan& plan, uint32_t kind) {
  size_t size = 0;
  call([&](stw_error* error) { return stw_plan_picture(plan.get(), kind, nullptr, 0, &size, error); });
  std::string text(size, 0);
  call([&](stw_error* error) { return stw_plan_picture(plan.get(), kind, text.data(), size, nullptr, error); });
  text.pop_back();  // the zero byte
  return text;
}

struct PlanCommand {
  ModelFlags model;
  PlanFlags plan;
  bool json = false;
  std::string html, svg, csv;

  void run() const {
    const DeviceChoice device = choose_device(plan.device);
    const Model opened = open_model(model);
    const stw_plan_options options = plan_options(model, query(opened), plan, device);
    if (device.total_bytes && options.memory_bytes > device.total_bytes)
      fmt::print(stderr,
                 "stowage: warning: --vram is {}, but the device {} has only {}: this can be planned, not trained\n",
                 human_bytes(options.memory_bytes), device.name, human_bytes(device.total_bytes));
    const PlanAnswer answer = create_plan(opened, model.source, options, plan.host_bytes);
    for (const auto& [file, kind] : {std::pair{html, STW_PICTURE_HTML}, {svg, STW_PICTURE_SVG}, {csv, STW_PICTURE_CSV}})
      if (!file.empty()) write_text(file, picture(answer.plan, kind));
    const std::string text = json ? stw_plan_json(answer.plan.get()) : stw_plan_report(answer.plan.get());
    fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
    if (!answer.shortfall.empty()) throw Failure(exit_does_not_fit, answer.shortfall);
  }
};

}  // namespace

void add_plan(CLI::App& application) {
  auto self = std::make_shared<PlanCommand>();
  CLI::App& command = *application.add_subcommand("plan", "Say what lies where in memory; allocates nothing.");
  add_model_flags(command, self->model);
  add_request_flags(command, self->plan);
  add_numerics_flags(command, self->plan);
  command.add_flag("--json", self->json, "Print the plan as JSON, and nothing else, to standard output.");
  command.add_option("--html", self->html, "Write a page that shows what lies where, when and why.")->type_name("FILE");
  command.add_option("--svg", self->svg, "Write its picture of the arena alone.")->type_name("FILE");
  command.add_option("--csv", self->csv, "Write the buffers at the peak, for tools that pack: id,lower,upper,size,...")
      ->type_name("FILE");
  command.footer(presets_text());
  command.callback([self] { self->run(); });
}

}  // namespace command
