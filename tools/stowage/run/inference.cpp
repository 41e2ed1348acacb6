#include "run/inference.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/work_line.h"
#include "run/run_folder.h"

namespace command {

void take_defaults_of_run(const ModelFlags& model, PlanFlags& flags) {
  const auto plan = read_text_if_there(run_of(model) + "/plan.json");
  if (!plan || json_string(*plan, "", "format") != "stowage-plan") return;
  const auto number = [&](const char* key) -> std::optional<uint64_t> {
    const auto value = json_number(*plan, "request", key);
    if (!value || *value < 1) return std::nullopt;
    return static_cast<uint64_t>(*value);
  };
  if (!flags.batch) flags.batch = number("global_batch");
  if (!flags.sequence) flags.sequence = number("sequence");
  if (flags.precision.empty()) flags.precision = json_string(*plan, "numerics", "precision").value_or("");
}

void warn_of_documents(const ModelFlags& model, const PlanFlags& flags) {
  const auto plan = read_text_if_there(run_of(model) + "/plan.json");
  if (plan && !flags.keeps_documents() && has_documents(*plan) &&
      !is_there(RunFolder(run_of(model)).labels()))
    complain("stowage: warning: {} was trained on documents; give its --document-end for the loss of its run",
             run_of(model));
}

Inference open_inference(const ModelFlags& model_flags, const PlanFlags& flags,
                         const PreferenceFlags& preference) {
  Inference opened;
  const DeviceChoice choice = choose_device(flags.device);
  opened.model = open_model(model_flags);
  require_weights(model_flags, query(opened.model));
  stw_plan_options options = plan_options(model_flags, query(opened.model), flags, choice);
  options.keep = STW_KEEP_ALL;  // relaxations are for training
  // Nothing is trained here, but every plan trains something. Training the norms alone needs the least
  // memory.
  stw_parameter_group groups[2] = {sized<stw_parameter_group>(), sized<stw_parameter_group>()};
  for (stw_parameter_group& group : groups) group.set_mask = STW_SET_GROUP_FROZEN;
  groups[0].pattern = "*";
  groups[0].frozen = 1;
  groups[1].pattern = "norms";
  if (query(opened.model).adapter_rank == 0) {  // else everything except the adapters is frozen already
    options.groups = groups;
    options.group_count = 2;
  }
  PlanAnswer answer = create_plan(opened.model, model_flags.source, options);
  const stw_plan_info info = query(answer.plan);
  if (!flags.memory_bytes && info.minimum_bytes) {
    options.memory_bytes = info.minimum_bytes;
    answer = create_plan(opened.model, model_flags.source, options);
  }
  opened.plan = require_plan(std::move(answer));
  require_free(choice, model_flags.source, query(opened.plan).peak);
  if (!query(opened.model).has_weights)
    complain("stowage: warning: {} has no weights: they are drawn from the seed {}", model_flags.source,
             model_flags.seed);
  opened.device = open_device(choice, options.threads);
  auto trainer_options = sized<stw_trainer_options>();
  set_preference(trainer_options, preference);
  stw_trainer* trainer = nullptr;
  trainer_options.watch = work_watch();
  long_call([&](stw_error* error) {
    return stw_trainer_create(&trainer, opened.device.get(), opened.model.get(), opened.plan.get(),
                              &trainer_options, error);
  });
  opened.trainer = Trainer(trainer);
  return opened;
}

}  // namespace command
