// Makes a plan from flags: chooses the device, fills in flags that were not given, and says why a plan does
// not fit.
#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/messages.h"
#include "base/units.h"
#include "base/work_line.h"
#include "flags/flags.h"
#include "flags/optimizers.h"
#include "plans/profile.h"

namespace command {
namespace {

constexpr uint64_t default_sequence_limit = 1024;

bool find_device(uint32_t backend, stw_device_info& info) {
  for (size_t index = 0;; ++index) {
    info = sized<stw_device_info>();
    if (stw_device_at(index, &info, nullptr) != STW_OK) return false;
    if (backend == STW_BACKEND_AUTO || info.backend == backend) return true;
  }
}

uint32_t recompute_of(const std::string& name) {
  return name == "none" ? STW_RECOMPUTE_NONE : name == "full" ? STW_RECOMPUTE_FULL : STW_RECOMPUTE_AUTO;
}

uint32_t states_of(const std::string& name) {
  return name == "32" ? STW_STATES_32 : name == "8" ? STW_STATES_8 : STW_STATES_AUTO;
}

uint32_t kernels_of(const std::string& name) {
  return name == "portable"         ? STW_KERNELS_PORTABLE
         : name == "tensor"         ? STW_KERNELS_TENSOR
         : name == "cublaslt"       ? STW_KERNELS_CUBLASLT
         : name == "wgmma"          ? STW_KERNELS_WGMMA
         : name == "cublaslt-wgmma" ? STW_KERNELS_CUBLASLT_WGMMA
                                    : STW_KERNELS_AUTO;
}

// The format of the weights under a run's adapters. It stays the one with which the adapters were
// trained.
std::string quantize_of_run(const ModelFlags& model, const char* field) {
  const auto plan = read_text_if_there(run_of(model) + "/plan.json");
  if (!plan || json_string(*plan, "", "format") != "stowage-plan") return "auto";
  return json_string(*plan, "numerics", field).value_or("auto");
}

uint32_t quantize_of(const std::string& name) {
  return name == "none"   ? STW_QUANTIZE_NONE
         : name == "nf4"  ? STW_QUANTIZE_NF4
         : name == "int8" ? STW_QUANTIZE_INT8
                          : STW_QUANTIZE_AUTO;
}

uint32_t preference_number(const std::string& name) {
  return name == "dpo"     ? STW_PREFERENCE_DPO
         : name == "ipo"   ? STW_PREFERENCE_IPO
         : name == "simpo" ? STW_PREFERENCE_SIMPO
         : name == "orpo"  ? STW_PREFERENCE_ORPO
                           : STW_PREFERENCE_NONE;
}

// Warns if the plan's settings differ from those of the profile's measurement. The figures are then the best
// available, but were not measured for this plan.
void warn_where_not_measured(const stw_plan_options& options) {
  const stw_profile_info info = read_profile({options.profile, options.profile_size});
  if (info.threads == 0) return;  // figures of a card, which no calibration measured
  if (!info.is_cuda && info.threads != options.threads)
    complain("stowage: warning: the profile was measured with {} thread{}, the plan is for {}", info.threads,
             info.threads == 1 ? "" : "s", options.threads);
  const uint32_t usual = info.is_cuda ? STW_PRECISION_BF16 : STW_PRECISION_FP32;
  if (info.precision != (options.precision == STW_PRECISION_DEFAULT ? usual : options.precision))
    complain("stowage: warning: the profile was measured in {}, the plan is for another precision",
             precision_name(info.precision));
  const uint32_t fastest = options.mode == STW_MODE_FAST             ? STW_KERNELS_CUBLASLT
                           : options.precision == STW_PRECISION_FP32 ? STW_KERNELS_PORTABLE
                                                                     : STW_KERNELS_TENSOR;
  if (info.is_cuda && info.kernels != (options.kernels == STW_KERNELS_AUTO ? fastest : options.kernels))
    complain("stowage: warning: the profile was measured with other kernels than the plan has");
}

uint64_t memory_of_profile(const std::string& name) {
  auto info = sized<stw_profile_info>();
  for (size_t i = 0; stw_profile_at(i, &info) == STW_OK; ++i, info = sized<stw_profile_info>())
    if (name == info.name) return info.memory;
  return 0;
}

}  // namespace

DeviceChoice choose_device(const std::string& name) {
  if (is_profile_file(name)) {
    std::string text = read_profile_file(name);
    DeviceChoice choice = choose_device(read_profile(text).name);
    choice.profile = std::move(text);
    return choice;
  }
  const uint32_t backend = name == "cuda"  ? STW_BACKEND_CUDA
                           : name == "cpu" ? STW_BACKEND_CPU
                                           : STW_BACKEND_AUTO;
  DeviceChoice choice;
  stw_device_info info;
  if (backend == STW_BACKEND_AUTO && !name.empty() &&
      !(find_device(STW_BACKEND_CUDA, info) && name == info.profile)) {
    choice.name = name;
    choice.total_bytes = memory_of_profile(name);
    return choice;
  }
  // By default: the first CUDA device, or without one the first device that the library lists (the CPU).
  const bool found = backend == STW_BACKEND_AUTO
                         ? find_device(STW_BACKEND_CUDA, info) || find_device(STW_BACKEND_AUTO, info)
                         : find_device(backend, info);
  if (!found)
    throw Failure(exit_failed,
                  fmt::format("--device {}: this machine has no such device ({}); see `stowage devices`",
                              name.empty() ? "auto" : name, stw_build_info()));
  if (info.backend == STW_BACKEND_CUDA) ask_memory_free(0, info);
  choice.name = info.profile;
  choice.backend = info.backend;
  choice.present = true;
  choice.total_bytes = info.memory_total;
  choice.free_bytes =
      info.memory_free + info.memory_reserved;  // a plan's reserve includes the context that this query opens
  choice.threads = info.threads;
  return choice;
}

void ask_memory_free(int32_t ordinal, stw_device_info& info) {
  auto options = sized<stw_device_options>();
  options.backend = STW_BACKEND_CUDA;
  options.ordinal = ordinal;
  stw_device* device = nullptr;
  if (stw_device_open(&device, &options, nullptr) == STW_OK) stw_device_query(Device(device).get(), &info);
}

Device open_device(const DeviceChoice& choice, uint32_t threads) {
  if (!choice.present)
    throw Failure(exit_usage, fmt::format("--device {}: this profile is for planning only; use cpu or cuda",
                                          choice.name));
  auto options = sized<stw_device_options>();
  options.backend = choice.backend;
  options.threads = threads;
  options.log = [](void*, int32_t level, const char* component, const char* message) {
    if (level <= STW_LOG_WARNING)
      complain("stowage: {}: {}: {}", level == STW_LOG_ERROR ? "error" : "warning", component, message);
  };
  stw_device* device = nullptr;
  call([&](stw_error* error) { return stw_device_open(&device, &options, error); });
  return Device(device);
}

void require_free(const DeviceChoice& choice, const std::string& what, uint64_t bytes) {
  if (!choice.free_bytes || bytes <= choice.free_bytes) return;
  std::string text = fmt::format("{} takes {}, but only {} are free on the device {}: {} are missing", what,
                                 exact_bytes(bytes), human_bytes(choice.free_bytes), choice.name,
                                 human_bytes(bytes - choice.free_bytes));
  const Device device = open_device(choice, 0);
  constexpr size_t most_named = 5;
  auto holder = sized<stw_memory_holder>();
  for (size_t i = 0; i < most_named && stw_device_holder_at(device.get(), i, &holder) == STW_OK; ++i)
    text += fmt::format("{} process {} ({}) holds {}", i == 0 ? ";" : ",", holder.process,
                        *holder.name ? holder.name : "?", human_bytes(holder.bytes));
  throw Failure(exit_does_not_fit, text);
}

void require_free(const DeviceChoice& choice, const stw_plan_info& plan) {
  const bool shares = choice.backend == STW_BACKEND_CPU && plan.host > 0;
  require_free(choice,
               shares ? fmt::format("the plan, including {} that it offloads to the same memory,",
                                    human_bytes(plan.host))
                      : "the plan",
               plan.peak + (shares ? plan.host : 0));
}

void check_sequence(const std::optional<uint64_t>& sequence, uint64_t positions) {
  if (sequence > positions)
    throw Failure(exit_usage, fmt::format("--seq {}: the model has {} positions", grouped(*sequence),
                                          grouped(positions)));
}

uint64_t default_texts(uint64_t sequence) { return (sequence + 7) / 8; }

uint64_t texts_of(const stw_model_info& model, const PlanFlags& flags, uint64_t sequence) {
  const bool has_texts =
      model.labels > 0 && !model.generates &&
      (model.task == STW_TASK_LABEL || model.task == STW_TASK_LABELS || model.task == STW_TASK_NUMBER);
  return flags.texts.value_or(has_texts ? default_texts(sequence) : 0);
}

uint64_t sequence_of(const ModelFlags& model_flags, const stw_model_info& model, const PlanFlags& flags) {
  const bool nano = model_flags.source == "nano" && is_preset(model_flags.source);
  check_sequence(flags.sequence, model.positions);
  return flags.sequence.value_or(std::min<uint64_t>(nano ? 64 : default_sequence_limit, model.positions));
}

stw_plan_options plan_options(const ModelFlags& model_flags, const stw_model_info& model,
                              const PlanFlags& flags, const DeviceChoice& device) {
  const bool nano = model_flags.source == "nano" && is_preset(model_flags.source);
  if (!flags.batch && !nano)
    throw Failure(exit_usage, "--batch is required: the number of samples of one optimizer step");
  if (flags.fused_update && flags.clip.value_or(0) > 0)
    throw Failure(exit_usage,
                  "--fused-update: the norm of the gradients is not known before the update, so they cannot "
                  "be clipped; use --clip 0, or leave one of the two out");
  const uint64_t sequence = sequence_of(model_flags, model, flags);
  if (flags.document_end >= model.vocabulary)
    throw Failure(exit_usage,
                  fmt::format("--document-end {}: this is outside the model's vocabulary of {}{}",
                              *flags.document_end, grouped(model.vocabulary),
                              flags.examples ? "; if it is not given, it is the model's eos_token_id" : ""));
  auto options = sized<stw_plan_options>();
  options.memory_bytes =
      flags.memory_bytes.value_or(device.backend == STW_BACKEND_CPU ? device.free_bytes / 100 * 80 : 0);
  if (flags.memory_bytes && *flags.memory_bytes == 0)
    throw Failure(exit_usage, "--vram: expected more than 0 bytes");
  options.global_batch = flags.batch.value_or(12);
  options.sequence = sequence;
  options.device = device.name.c_str();
  // With a budget, the plan depends only on the request. It is then the same at any time and on any machine.
  options.device_memory = flags.memory_bytes ? 0 : device.free_bytes;
  if (flags.reserve_bytes) {
    options.set_mask |= STW_SET_RESERVE;
    options.reserve_bytes = *flags.reserve_bytes;
  }
  options.host_bytes = flags.host_bytes.value_or(0);
  options.threads = flags.threads ? flags.threads : device.threads;
  options.precision = precision_of(flags.precision);
  options.optimizer = optimizer_of(flags.optimizer);
  options.state_bits = states_of(flags.states);
  options.micro_batch = flags.micro_batch;
  options.recompute = recompute_of(flags.recompute);
  options.mode = flags.fast ? STW_MODE_FAST : STW_MODE_EXACT;
  options.master = flags.master == "split8"       ? STW_MASTER_SPLIT8
                   : flags.master == "stochastic" ? STW_MASTER_STOCHASTIC
                                                  : STW_MASTER_EXACT;
  options.gradients = flags.gradients == "bf16" ? STW_GRADIENTS_BF16 : STW_GRADIENTS_FP32;
  options.fused_update = flags.fused_update;
  options.kernels = kernels_of(flags.kernels);
  options.attention = flags.attention == "cudnn" ? STW_ATTENTION_CUDNN : STW_ATTENTION_OWN;
  const bool is_of_run = model.adapter_rank > 0 && model_flags.adapter_rank == 0;
  const auto quantize = [&](const std::string& given, const char* field) {
    return quantize_of(is_of_run && given == "auto" ? quantize_of_run(model_flags, field) : given);
  };
  options.quantize = quantize(flags.quantize, "quantize");
  options.quantize_embeddings = quantize(flags.quantize_embeddings, "quantize_embeddings");
  options.preference = preference_number(flags.preference);
  if (flags.keeps_documents() || model.labels > 0) options.inputs |= STW_INPUT_POSITIONS;
  options.texts = texts_of(model, flags, sequence);
  if (flags.clip.value_or(0) > 0) options.keep |= STW_KEEP_CLIPPING;
  options.watch = work_watch();
  options.groups = flags.groups.data();
  options.group_count = flags.groups.size();
  if (!device.profile.empty()) {
    options.profile = device.profile.data();
    options.profile_size = device.profile.size();
    warn_where_not_measured(options);
  }
  return options;
}

namespace {

// A line for each setting that would help, and if there is none, a line that says why.
std::vector<std::string> advice_of(const Plan& plan) {
  std::vector<std::string> lines;
  auto info = sized<stw_relaxation_info>();
  for (size_t i = 0; stw_plan_relaxation_at(plan.get(), i, &info) == STW_OK; ++i) {
    if (info.fits)
      lines.push_back(fmt::format("instead     {}: {:.0f} tokens/s, peak {}; {}", info.flags,
                                  info.tokens_per_second, human_bytes(info.peak),
                                  info.changes_numerics ? info.effect : "the same result"));
    info = sized<stw_relaxation_info>();
  }
  if (const auto shortage = json_string(stw_plan_json(plan.get()), "", "shortage"))
    lines.push_back("shortage    " + *shortage);
  return lines;
}

}  // namespace

PlanAnswer create_plan(const Model& model, const std::string& model_name, const stw_plan_options& options) {
  PlanAnswer answer;
  stw_plan* plan = nullptr;
  const stw_status status =
      long_call([&](stw_error* error) { return stw_plan_create(&plan, model.get(), &options, error); },
                STW_OVER_BUDGET);
  answer.plan = Plan(plan);
  const stw_plan_info info = query(answer.plan);
  if (status == STW_OVER_BUDGET) {
    const uint64_t budget = options.memory_bytes ? options.memory_bytes : info.budget;
    const bool close = human_bytes(budget) == human_bytes(info.minimum_bytes);
    answer.shortfall =
        fmt::format("{} does not fit in {}: the smallest budget that works is {}", model_name,
                    close ? exact_bytes(budget) : human_bytes(budget), exact_bytes(info.minimum_bytes));
    answer.advice = advice_of(answer.plan);
  }
  return answer;
}

Plan require_plan(PlanAnswer answer) {
  if (!answer.shortfall.empty()) {
    Failure failure(exit_does_not_fit, answer.shortfall);
    failure.bytes_needed = query(answer.plan).minimum_bytes;
    throw failure;
  }
  return std::move(answer.plan);
}

Plan load_plan(const Model& model, const std::string& path) {
  const std::string json = read_text(path);
  stw_plan* plan = nullptr;
  try {
    call(
        [&](stw_error* error) { return stw_plan_load(&plan, model.get(), json.data(), json.size(), error); });
  } catch (const Failure& failure) {
    throw Failure(failure.exit_code, fmt::format("{}: {}", path, failure.what()));
  }
  return Plan(plan);
}

}  // namespace command
