#include "flags/flags.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "flags/number_checks.h"
#include "flags/optimizers.h"

namespace command {
namespace {

constexpr const char* precisions[] = {"fp32", "bf16", "fp16"};  // STW_PRECISION_*, from 1

template <size_t n>
std::vector<std::string> known(const char* const (&names)[n]) {
  return {names, names + n};
}

template <size_t n>
uint32_t number_of(const char* const (&names)[n], const std::string& name) {
  return static_cast<uint32_t>(std::find(names, names + n, name) - names);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  if (parts.empty()) parts.emplace_back();
  return parts;
}

[[noreturn]] void wrong_group(const std::string& text, const std::string& what) {
  throw CLI::ValidationError(
      "--group " + text,
      what + "; expected PATTERN:SETTING,… with lr=FACTOR, decay=RATE, states=32|8, frozen or trained");
}

void add_group(PlanFlags& flags, const std::string& pattern, stw_parameter_group group) {
  flags.patterns.push_back(std::make_shared<const std::string>(pattern));
  group.pattern = flags.patterns.back()->c_str();
  flags.groups.push_back(group);
}

// Adds the group of a text such as "blocks.0-1:lr=0.1,decay=0".
void add_group(PlanFlags& flags, const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    wrong_group(text, "it has no setting");
  auto group = sized<stw_parameter_group>();
  for (const std::string& setting : split(text.substr(colon + 1), ',')) {
    const size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals),
                      number = equals == std::string::npos ? "" : setting.substr(equals + 1);
    double value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool is_number =
        !number.empty() && read.ec == std::errc() && read.ptr == number.data() + number.size();
    const uint32_t before = group.set_mask;
    if ((name == "frozen" || name == "trained") && equals == std::string::npos) {
      group.set_mask |= STW_SET_GROUP_FROZEN;
      group.frozen = name == "frozen";
    } else if (name == "lr" && is_number) {
      group.set_mask |= STW_SET_GROUP_RATE;
      group.learning_rate = value;
    } else if (name == "decay" && is_number) {
      group.set_mask |= STW_SET_GROUP_DECAY;
      group.weight_decay = value;
    } else if (name == "states" && (number == "32" || number == "8")) {
      group.set_mask |= STW_SET_GROUP_STATES;
      group.state_bits = number == "32" ? 32 : 8;
    } else {
      wrong_group(text, "\"" + setting + "\" is not a setting");
    }
    if (group.set_mask == before) wrong_group(text, "\"" + setting + "\" is given twice");
  }
  if (group.frozen && group.set_mask != STW_SET_GROUP_FROZEN)
    wrong_group(text, "frozen parameters have no other setting");
  add_group(flags, text.substr(0, colon), group);
}

void add_group_flags(CLI::App& command, PlanFlags& flags) {
  command
      .add_option_function<std::vector<std::string>>(
          "--freeze",
          [&flags](const std::vector<std::string>& texts) {
            auto frozen = sized<stw_parameter_group>();
            frozen.set_mask = STW_SET_GROUP_FROZEN;
            frozen.frozen = 1;
            for (const std::string& text : texts)
              for (const std::string& pattern : split(text, ',')) add_group(flags, pattern, frozen);
          },
          "Parameters to leave as they are: embeddings, blocks.0-1, norms, biases, matrices, head, or names "
          "with * and ?.")
      ->allow_extra_args(false)
      ->type_name("PATTERN,...");
  command
      .add_option_function<std::vector<std::string>>(
          "--group",
          [&flags](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) add_group(flags, text);
          },
          "PATTERN:SETTING,... with lr=FACTOR, decay=RATE, states=32|8, frozen, trained. May be given "
          "several times,\n"
          "and follows every --freeze: the last setting of a parameter holds.")
      ->allow_extra_args(false)
      ->type_name("GROUP");
}

}  // namespace

bool has_documents(std::string_view plan_json) {
  const size_t inputs = plan_json.find("\"inputs\":");
  return inputs != std::string_view::npos &&
         plan_json.substr(inputs, plan_json.find(']', inputs) - inputs).find("\"positions\"") !=
             std::string_view::npos;
}

std::string preference_of(std::string_view plan_json) {
  return json_string(plan_json, "numerics", "preference").value_or("none");
}
bool has_reference(const std::string& preference) { return preference == "dpo" || preference == "ipo"; }

uint32_t precision_of(const std::string& name) {
  return name.empty() ? uint32_t{STW_PRECISION_DEFAULT} : number_of(precisions, name) + 1;
}
const char* precision_name(uint32_t precision) {
  return precisions[precision == STW_PRECISION_DEFAULT ? 0 : precision - 1];
}

CLI::Option* add_bytes(CLI::App& command, const std::string& names, std::optional<uint64_t>& out,
                       const std::string& description) {
  const CLI::Validator bytes(
      [](std::string& text) {
        const auto count = parse_bytes(text);
        if (!count) return "expected bytes such as 8GiB, 8GB or 8589934592, found \"" + text + "\"";
        text = std::to_string(*count);
        return std::string();
      },
      "", "");
  return command.add_option(names, out, description)->transform(bytes)->type_name("BYTES");
}

CLI::Option* add_seed(CLI::App& command, uint64_t& seed, const std::string& description) {
  return command.add_option("--seed", seed, description)
      ->check(positive())
      ->type_name("N")
      ->capture_default_str();
}

const std::string& run_of(const ModelFlags& flags) {
  return is_there(flags.adapter + "/settings.json") ? flags.adapter : flags.source;
}

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("--model", flags.source,
                  "A folder with config.json, a config.json, or a preset such as nano.")
      ->required()
      ->type_name("MODEL");
  command
      .add_option("--weights", flags.weights,
                  "A .safetensors file or a folder with some, instead of the model's own.")
      ->type_name("PATH");
  command
      .add_option(
          "--adapter", flags.adapter,
          "A folder of low-rank adapters for this model (adapter_config.json), as `train` or PEFT leaves it.")
      ->check(not_empty())
      ->type_name("FOLDER");
  command.add_option("--dropout", flags.dropout, "Replaces all dropout rates of the config; 0: none.")
      ->check(number_in(0, 0.99))
      ->type_name("RATE");
}

CLI::Option* add_from_scratch_flag(CLI::App& command, ModelFlags& flags) {
  CLI::Option* const flag = command.add_flag("--from-scratch", flags.from_scratch,
                                             "Take random weights for --model, a config.json or its folder. "
                                             "Presets have random weights in any case.");
  for (const char* weights : {"--weights", "--adapter"}) flag->excludes(command.get_option(weights));
  return flag;
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& value) {
        return value.empty() ? std::string("expected text, found nothing") : std::string();
      },
      "");
}

void add_adapter_flags(CLI::App& command, ModelFlags& flags) {
  CLI::Option* rank = command
                          .add_option("--lora", flags.adapter_rank,
                                      "Train only low-rank adapters of this rank for the matrices below the "
                                      "head, and the head if it is new or gives labels.")
                          ->check(whole_number(1, 4096))
                          ->type_name("RANK");
  command
      .add_option("--lora-alpha", flags.adapter_alpha,
                  "Scale adapters by this over their rank. Default: twice the rank.")
      ->check(number_in(1e-6, 1e6))
      ->needs(rank)
      ->type_name("X");
  command
      .add_option("--lora-targets", flags.adapter_targets,
                  "Which matrices get adapters: last parts of modules' names, such as q_proj,v_proj. "
                  "Default: all-linear.")
      ->check(not_empty())
      ->needs(rank)
      ->type_name("NAME,...");
  command.add_option("--lora-dropout", flags.adapter_dropout, "Dropout of the adapters' inputs.")
      ->check(number_in(0, 0.99))
      ->needs(rank)
      ->type_name("RATE");
  command
      .add_flag("--rslora", flags.adapter_stabilised,
                "Scale adapters by alpha over the square root of the rank.")
      ->needs(rank);
  for (const char* name : {"--lora", "--lora-alpha", "--lora-targets", "--lora-dropout", "--rslora"})
    command.get_option(name)->excludes(command.get_option("--adapter"));
}

void add_labels_flag(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("--labels", flags.label_count,
                  "A classifier with this many labels, in place of a language model. Default: as the model's "
                  "config says.")
      ->check(whole_number(1, 1048576))
      ->type_name("N");
  add_task_flag(command, flags);
  add_new_head_flag(command, flags);
  command.get_option("--new-head")->needs(command.get_option("--labels"));
}

void add_new_head_flag(CLI::App& command, ModelFlags& flags) {
  command.add_flag("--new-head", flags.new_head,
                   "Draws a new head for the labels, whatever labels the model has.");
}

namespace {

constexpr std::pair<const char*, uint32_t> tasks[] = {
    {"label", STW_TASK_LABEL},   {"labels", STW_TASK_LABELS},
    {"number", STW_TASK_NUMBER}, {"tokens", STW_TASK_TOKEN_LABEL},
    {"spans", STW_TASK_SPANS},   {"masked", STW_TASK_MASKED_LANGUAGE_MODEL}};

}  // namespace

void add_task_flag(CLI::App& command, ModelFlags& flags) {
  std::vector<std::string> words;
  for (const auto& [word, number] : tasks) words.emplace_back(word);
  command
      .add_option("--task", flags.task,
                  "What the model learns: one label of a text, any number of labels, a number, a label of "
                  "each token, answers in\ncontexts, or masked tokens. "
                  "Default: as its config says, or the data.")
      ->check(CLI::IsMember(words))
      ->type_name("label|labels|number|tokens|spans|masked");
}

std::string name_of_task(uint32_t number) {
  const auto* const found = std::find_if(std::begin(tasks), std::end(tasks),
                                         [&](const auto& task) { return number == task.second; });
  return found == std::end(tasks) ? std::string() : found->first;
}

uint32_t task_number(const std::string& word) {
  const auto* const found =
      std::find_if(std::begin(tasks), std::end(tasks), [&](const auto& task) { return word == task.first; });
  return found == std::end(tasks) ? static_cast<uint32_t>(STW_TASK_AUTOMATIC) : found->second;
}

void add_threads_flag(CLI::App& command, PlanFlags& flags) {
  command.add_option("--threads", flags.threads, "Threads that compute. Default: one for each processor.")
      ->check(whole_number(1, 1024))
      ->type_name("N");
}

void add_request_flags(CLI::App& command, PlanFlags& flags) {
  add_bytes(command, "--vram,--memory", flags.memory_bytes,
            "Bounds the peak of the memory. Default: the free memory of the device (CPU: 80 % of it).");
  command
      .add_option("--batch", flags.batch, "Samples of one optimizer step, however it is cut up. nano: 12.")
      ->check(whole_number(1, INT32_MAX))
      ->type_name("N");
  command
      .add_option("--seq", flags.sequence,
                  "Tokens of a sample. Default: all positions, at most 1024. nano: 64.")
      ->check(positive())
      ->type_name("N");
  command
      .add_option("--texts", flags.texts,
                  "Most texts of a sample, for encoders that label texts: the last rows of the model are\n"
                  "computed for so many. 0: any number. Default: an eighth of --seq.")
      ->check(whole_number(0, INT32_MAX))
      ->type_name("N");
  command
      .add_option("--device", flags.device,
                  "cpu, cuda, a file of `calibrate`, or for `plan` a profile such as rtx4090.")
      ->type_name("NAME");
}

void add_document_flag(CLI::App& command, PlanFlags& flags) {
  command
      .add_option("--document-end", flags.document_end,
                  "The token that ends a document: attention stays inside of documents. Default: one text.")
      ->check(whole_number(0, any_uint32))
      ->type_name("ID");
}

void add_quantize_flags(CLI::App& command, PlanFlags& flags) {
  command
      .add_option(
          "--quantize", flags.quantize,
          "With adapters: the blocks' matrices below them take 4.5 (nf4) or 8.5 (int8) bits an element.\n"
          "auto: as in the run if the model is a run's folder; else nf4 if the model's files have it.")
      ->check(CLI::IsMember({"auto", "none", "nf4", "int8"}))
      ->type_name("auto|none|nf4|int8");
  command
      .add_option("--quantize-embeddings", flags.quantize_embeddings,
                  "With adapters: the table of tokens and the head take 8.5 bits an element.\n"
                  "auto: as in the run if the model is a run's folder; else none.")
      ->check(CLI::IsMember({"auto", "none", "int8"}))
      ->type_name("auto|none|int8");
}

void add_preference_flag(CLI::App& command, PlanFlags& flags) {
  command
      .add_option("--preference", flags.preference,
                  "The loss of pairs of answers, a chosen and a rejected one. dpo, ipo: against the model "
                  "with which\ntraining begins; simpo, orpo: without it. auto: dpo if the data has pairs.")
      ->check(CLI::IsMember({"auto", "dpo", "ipo", "simpo", "orpo"}))
      ->type_name("auto|dpo|ipo|simpo|orpo");
}

void add_preference_flags(CLI::App& command, PreferenceFlags& flags) {
  command
      .add_option("--beta", flags.beta,
                  "For pairs of answers: how much their difference counts. For ipo, a larger value asks for "
                  "a smaller difference. For orpo: the weight of the odds ratio. Default: 0.1; for simpo 2.")
      ->check(above_zero(largest_rate))
      ->type_name("B");
  command
      .add_option("--margin", flags.margin,
                  "For simpo: the margin by which the chosen answer should win. Default: half of --beta.")
      ->check(not_negative(largest_rate))
      ->type_name("M");
  command
      .add_option(
          "--answer-share", flags.answer_share,
          "For pairs of answers: the weight of the chosen answer's mean loss per token, which is added. "
          "Default: 0.")
      ->check(not_negative(largest_rate))
      ->type_name("A");
}

void set_preference(stw_trainer_options& options, const PreferenceFlags& flags) {
  options.beta = flags.beta.value_or(0);
  options.answer_share = flags.answer_share.value_or(0);
  if (!flags.margin) return;
  options.margin = *flags.margin;
  options.set_mask |= STW_SET_MARGIN;
}

static void add_micro_batch_flag(CLI::App& command, PlanFlags& flags) {
  command
      .add_option(
          "--micro-batch", flags.micro_batch,
          "Samples of a micro-batch, which pass at once. auto: chosen by the planner. Changes no bit.")
      ->transform(CLI::Validator(
          [](std::string& text) {
            if (text != "auto") return whole_number(1, any_uint32)(text);
            text = "0";
            return std::string();
          },
          ""))
      ->type_name("auto|N");
}

void add_numerics_flags(CLI::App& command, PlanFlags& flags) {
  command
      .add_option("--precision", flags.precision,
                  "The number format of the computation. Default: fp32 on the CPU, bf16 elsewhere.")
      ->check(CLI::IsMember(known(precisions)))
      ->type_name("fp32|bf16|fp16");
  command
      .add_option("--optimizer", flags.optimizer,
                  "The rule that updates parameters. muon updates only the matrices of blocks, and adamw the "
                  "rest. Default: adamw.")
      ->check(CLI::IsMember(optimizer_names()))
      ->type_name(CLI::detail::join(optimizer_names(), "|"));
  command
      .add_option("--kernels", flags.kernels,
                  "The kernels on a GPU. portable: the CPU's bits; tensor: 16-bit products on tensor cores, "
                  "with other bits;\n"
                  "cublaslt: products by NVIDIA's library; wgmma: as tensor, with instructions of an H100 or "
                  "H200;\n"
                  "cublaslt-wgmma: as cublaslt, with wgmma where the library has no kernel. Default: auto.")
      ->check(CLI::IsMember({"auto", "portable", "tensor", "cublaslt", "wgmma", "cublaslt-wgmma"}))
      ->type_name("auto|portable|tensor|cublaslt|wgmma|cublaslt-wgmma");
  command
      .add_option("--attention", flags.attention,
                  "The kernels of attention on a GPU in 16 bits. cudnn: NVIDIA's library, which takes "
                  "scratch memory for scores. Default: own.")
      ->check(CLI::IsMember({"own", "cudnn"}))
      ->type_name("own|cudnn");
  add_quantize_flags(command, flags);
  add_preference_flag(command, flags);
  command
      .add_option("--master", flags.master,
                  "bf16: how much of a weight's fp32 value is kept: 4, 3 or 2 bytes. Default: exact.")
      ->check(CLI::IsMember({"exact", "split8", "stochastic"}))
      ->type_name("exact|split8|stochastic");
  command
      .add_option(
          "--gradients", flags.gradients,
          "The format in which gradients of the blocks' matrices are summed: 4 or 2 bytes. Default: fp32.")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->type_name("fp32|bf16");
  command.add_flag("--fused-update", flags.fused_update,
                   "Update blocks inside the backward pass, which then keeps no gradients of them: one "
                   "micro-step, no clipping,\n"
                   "no fp16.");
  add_group_flags(command, flags);
  add_document_flag(command, flags);
  command
      .add_option("--states", flags.states,
                  "Bits of the optimizer's states. auto: 32, unless plans with them do not fit or are more "
                  "than 10 % slower.")
      ->check(CLI::IsMember({"auto", "32", "8"}))
      ->type_name("auto|32|8");
  add_micro_batch_flag(command, flags);
  command
      .add_option("--recompute", flags.recompute,
                  "How much the backward pass computes again to save memory. Changes no bit.")
      ->check(CLI::IsMember({"auto", "none", "full"}))
      ->type_name("auto|none|full");
  command
      .add_option("--clip", flags.clip,
                  "Largest norm of the gradient; 0: no clipping. Default: 1, with --fused-update 0.")
      ->check(not_negative())
      ->type_name("NORM");
  auto* exact = command.add_flag("--exact", flags.exact, "Micro-batches change no bit (the default).");
  command
      .add_flag("--fast", flags.fast,
                "Give up --exact where it costs speed: on a GPU, with cublaslt or cublaslt-wgmma kernels.")
      ->excludes(exact);
  add_bytes(command, "--host-memory", flags.host_bytes, "Host memory for offloaded buffers. Default: none.");
  add_bytes(
      command, "--reserve", flags.reserve_bytes,
      "Memory left for allocations outside the arena. Default: as the device's profile says; CPU: none.");
  add_threads_flag(command, flags);
}

bool is_preset(const std::string& name) {
  if (is_there(name)) return false;  // the library looks for files first, too
  for (size_t i = 0; const char* preset = stw_model_preset_at(i); ++i)
    if (name == preset) return true;
  return false;
}

std::string presets_text() {
  std::string text = "Presets:";
  size_t column = text.size();
  for (size_t index = 0; const char* name = stw_model_preset_at(index); ++index) {
    const std::string word = (index ? ", " : " ") + std::string(name);
    if (column + word.size() > 78) {
      text += (index ? ",\n  " : "\n  ") + std::string(name);
      column = 2 + std::string_view(name).size();
      continue;
    }
    text += word;
    column += word.size();
  }
  return text;
}

Model open_model(const ModelFlags& flags) {
  auto options = sized<stw_model_options>();
  const std::string config = flags.source + "/config.json";
  options.source = flags.from_scratch && is_folder(flags.source) && is_there(config) ? config.c_str()
                                                                                     : flags.source.c_str();
  options.weights = flags.weights.empty() ? nullptr : flags.weights.c_str();
  options.seed = flags.seed;
  options.set_mask |= STW_SET_MODEL_SEED;
  if (flags.dropout) {
    options.set_mask |= STW_SET_DROPOUT;
    options.dropout = *flags.dropout;
  }
  if (!flags.adapter.empty()) options.adapter = flags.adapter.c_str();
  if (!flags.adapter_targets.empty()) options.adapter_targets = flags.adapter_targets.c_str();
  options.adapter_rank = flags.adapter_rank;
  options.adapter_alpha = flags.adapter_alpha.value_or(0);
  options.adapter_dropout = flags.adapter_dropout;
  options.adapter_flags = flags.adapter_stabilised ? STW_ADAPTER_RANK_STABILISED : 0;
  std::vector<const char*> labels;
  for (const std::string& name : flags.labels) labels.push_back(name.c_str());
  options.label_names = labels.empty() ? nullptr : labels.data();
  options.label_count = labels.empty() ? flags.label_count : labels.size();
  options.task = task_number(flags.task);
  options.new_head = flags.new_head && (options.label_count > 0 || options.task == STW_TASK_SPANS);
  stw_model* model = nullptr;
  call([&](stw_error* error) { return stw_model_create(&model, &options, error); });
  return Model(model);
}

void require_weights(const ModelFlags& flags, const stw_model_info& about) {
  if (about.has_weights || flags.from_scratch || is_preset(flags.source)) return;
  throw Failure(exit_failed,
                fmt::format("--model {}: there are no weights in its folder (model.safetensors); download "
                            "them, or name them with --weights, or give --from-scratch to take random ones",
                            flags.source));
}

void require_head(const ModelFlags& flags, const stw_model_info& about) {
  if (about.generates || about.labels > 0 || about.task == STW_TASK_MASKED_LANGUAGE_MODEL) return;
  throw Failure(exit_usage,
                fmt::format("{}: is an encoder without a head: `stowage train` gives it one, from "
                            "texts with labels or with hidden tokens",
                            flags.source));
}

std::vector<std::string> labels_of(const Model& model) {
  std::vector<std::string> names;
  for (size_t i = 0; const char* name = stw_model_label_at(model.get(), i); ++i) names.emplace_back(name);
  return names;
}

}  // namespace command
