// `stowage calibrate`: measures a device with the step of a plan, and writes a profile for planning.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/units.h"
#include "base/work_line.h"
#include "commands/commands.h"
#include "flags/flags.h"
#include "plans/profile.h"

namespace command {
namespace {

// Throws if --out cannot be written. Called before the measurement, so that its result is not lost.
void check_out(const std::string& out) {
  const size_t slash = out.rfind('/');
  if (is_folder(out))
    throw Failure(exit_failed, fmt::format("--out {}: this is a folder, expected a file", out));
  if (slash != std::string::npos && slash > 0 && !is_folder(out.substr(0, slash)))
    throw Failure(exit_failed, fmt::format("--out {}: there is no folder {}", out, out.substr(0, slash)));
}

std::string milliseconds(double seconds) { return fmt::format("{:.2f} ms", seconds * 1e3); }

std::string choices(const stw_plan_info& plan) {
  return fmt::format("micro-batch {}, {} loss chunk{}, {}", plan.micro_batch, plan.loss_chunks,
                     plan.loss_chunks == 1 ? "" : "s", human_bytes(plan.arena));
}

struct CalibrateCommand {
  ModelFlags model;
  PlanFlags plan;
  std::string out;

  void run() const {
    check_out(out);
    const DeviceChoice choice = choose_device(plan.device);
    const Model opened = open_model(model);
    require_head(model, query(opened));
    stw_plan_options options = plan_options(model, query(opened), plan, choice);
    options.keep = STW_KEEP_ALL;  // relaxations are not shown
    const Device device = open_device(choice, options.threads);
    const Plan made = require_plan(create_plan(opened, model.source, options));
    require_free(choice, query(made));
    const std::string text = measure(device, opened, made);
    write_text(out, text);
    options.profile = text.data();
    options.profile_size = text.size();
    const stw_plan_info before = query(made),
                        now = query(require_plan(create_plan(opened, model.source, options)));
    print_profile(text);
    fmt::print("\n  a step of {}    {} x {} tokens, {}\n", model.source, before.global_batch, before.sequence,
               choices(before));
    fmt::print("  predicted before  {}\n", milliseconds(before.step_seconds));
    fmt::print("  measured          {}\n",
               milliseconds(static_cast<double>(read_profile(text).step_nanoseconds) * 1e-9));
    const bool same = choices(before) == choices(now);
    fmt::print("  predicted now     {}{}\n", milliseconds(now.step_seconds),
               same ? "" : " with " + choices(now));
    if (now.reserve != before.reserve)
      fmt::print("  outside the arena {}; assumed before: {}\n", human_bytes(now.reserve),
                 human_bytes(before.reserve));
    fmt::print("\nwrote {}: plan and train with --device {}\n", out, out);
  }

  static std::string measure(const Device& device, const Model& opened, const Plan& made) {
    stw_trainer* created = nullptr;
    auto options = sized<stw_trainer_options>();
    options.watch = work_watch();
    long_call([&](stw_error* error) {
      return stw_trainer_create(&created, device.get(), opened.get(), made.get(), &options, error);
    });
    const Trainer trainer(created);
    std::string text(STW_PROFILE_BYTES, '\0');
    size_t size = 0;
    long_call([&](stw_error* error) {
      return stw_trainer_calibrate(trainer.get(), text.data(), text.size(), &size, error);
    });
    text.resize(size);
    return text;
  }
};

}  // namespace

void add_calibrate(CLI::App& application) {
  auto self = std::make_shared<CalibrateCommand>();
  CLI::App& command =
      *application.add_subcommand("calibrate", "Measure this device, and write a profile for planning.");
  add_model_flags(command, self->model);
  add_adapter_flags(command, self->model);
  add_request_flags(command, self->plan);
  add_numerics_flags(command, self->plan);
  command.add_option("--out", self->out, "The file to write, such as here.json.")
      ->required()
      ->type_name("FILE");
  command.footer(
      "Times every op of a step of this model. So choose a model and sizes like those that you will\n"
      "plan, and run nothing else on the machine during the measurement.");
  command.callback([self] { self->run(); });
}

}  // namespace command
