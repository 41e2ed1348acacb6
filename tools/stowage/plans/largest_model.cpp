#include "plans/largest_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "base/work_line.h"

namespace command {
namespace {

// A lower bound, in half bytes, for the device and host memory of a parameter. Its weight takes two bytes in
// any number format, or the bytes of its quantized codes. Its gradient counts too, except with adapters, with
// groups (which may freeze the parameter), with host memory and with fused updates.
uint64_t least_half_bytes(const stw_plan_options& options, bool has_adapters) {
  if (has_adapters) {
    if (options.quantize == STW_QUANTIZE_NF4) return 1;
    return options.quantize == STW_QUANTIZE_INT8 || options.quantize_embeddings == STW_QUANTIZE_INT8 ? 2 : 4;
  }
  if (options.group_count || options.host_bytes || options.fused_update) return 4;
  return options.gradients == STW_GRADIENTS_BF16 ? 8 : 12;
}

}  // namespace

void print_largest_model(const ModelFlags& adapters, stw_plan_options options, bool sequence_given,
                         bool json) {
  struct Preset {
    const char* name;
    Model model;
    stw_model_info info;
  };
  std::vector<Preset> presets;
  std::string refusal;  // message for the last preset that the options do not suit, such as another task's
  size_t refused = 0, tried = 0;
  for (size_t index = 0; const char* name = stw_model_preset_at(index); ++index) {
    ModelFlags flags = adapters;
    flags.source = name;
    flags.weights = flags.adapter = "";
    if (adapters.label_count == 0 && adapters.task.empty()) {  // encoders are trained with labels
      ModelFlags alone;
      alone.source = name;
      if (query(open_model(alone)).generates == 0) continue;
    }
    try {
      Model model = open_model(flags);
      const stw_model_info info = query(model);
      presets.push_back({name, std::move(model), info});
    } catch (const Failure& failure) {
      refusal = failure.what();
      ++tried, ++refused;
    }
  }
  std::stable_sort(presets.begin(), presets.end(),
                   [](const Preset& a, const Preset& b) { return a.info.parameters > b.info.parameters; });
  const uint64_t sequence = options.sequence;
  options.keep = STW_KEEP_ALL;  // advice is not shown
  for (const Preset& preset : presets) {
    if (sequence_given && sequence > preset.info.positions) continue;
    const uint64_t least = least_half_bytes(options, preset.info.adapter_rank > 0);
    if (options.memory_bytes &&
        preset.info.parameters > options.memory_bytes / least * 2 + options.host_bytes / least * 2)
      continue;
    options.sequence = std::min(sequence, preset.info.positions);
    stw_plan* made = nullptr;
    auto error = sized<stw_error>();
    const stw_status status = stw_plan_create(&made, preset.model.get(), &options, &error);
    end_work_line();
    const Plan plan(made);
    tried += 1;
    if (status == STW_OVER_BUDGET) continue;
    // Some options suit other models: a group's pattern, texts of encoders, cuDNN's attention.
    if (status == STW_BAD_ARGUMENT || status == STW_UNSUPPORTED_SHAPE) {
      refusal = error.message;
      refused += 1;
      continue;
    }
    if (status != STW_OK) throw Failure(exit_failed, error.message);
    const stw_plan_info info = query(plan);
    if (json)
      fmt::print(
          "{{\"largest_model\":{},\"parameters\":{},\"sequence\":{},\"peak_bytes\":{},\"tokens_per_second\":{"
          "}}}\n",
          json_quoted(preset.name), preset.info.parameters, options.sequence, info.peak,
          info.tokens_per_second);
    else
      fmt::print("largest preset that fits: {}, {} parameters, with sequences of {}: peak {}, {} tokens/s\n",
                 preset.name, grouped(preset.info.parameters), grouped(options.sequence),
                 human_bytes(info.peak), grouped(static_cast<uint64_t>(info.tokens_per_second + 0.5)));
    return;
  }
  if (refused > 0 && refused == tried) throw Failure(exit_failed, refusal);
  if (json) fmt::print("{{\"largest_model\":null}}\n");
  throw Failure(exit_does_not_fit, "no preset fits");
}

}  // namespace command
