// The flags that several subcommands share: those that choose the model, and all that affect memory or the
// trained bits.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/handles.h"

namespace CLI {  // not included: CLI11's headers take most of the time to compile
class App;
class Option;
class Validator;
}  // namespace CLI

namespace command {

struct ModelFlags {
  std::string source;
  std::string weights;           // empty: the weights of `source`, else random ones
  std::optional<float> dropout;  // replaces all dropout rates; unset: those of the config
  uint64_t seed = 1337;
  std::string adapter;        // a folder of low-rank adapters
  uint32_t adapter_rank = 0;  // rank of new adapters; 0: none
  std::optional<float> adapter_alpha;
  float adapter_dropout = 0;
  std::string adapter_targets;  // empty: all matrices of the blocks
  bool adapter_stabilised = false;
  uint64_t label_count = 0;         // of a classifier; 0: as the config says
  std::vector<std::string> labels;  // names of the labels; empty: the model's own
  bool new_head = false;            // a new head for these labels, whatever labels the model has
  bool from_scratch = false;        // use random weights, even if weights lie next to the config
  // value of --task; empty: the task of the config, or with labels one label for each text
  std::string task;
};

// Settings of the loss on preference pairs. Unset: the library's defaults.
struct PreferenceFlags {
  std::optional<float> beta, margin, answer_share;
};

// The folder whose run settings apply: that of the adapters if they come from a run, else the model's.
const std::string& run_of(const ModelFlags& flags);

struct PlanFlags {
  std::optional<uint64_t> memory_bytes, host_bytes, reserve_bytes;
  std::optional<uint64_t> batch, sequence;
  std::string device;  // empty: CUDA if available, else the CPU
  // empty: the default, or with --resume the value of the run
  std::string precision, optimizer, master, gradients, attention;
  std::string kernels = "auto", states = "auto", recompute = "auto";
  std::string quantize = "auto", quantize_embeddings = "auto";  // auto with a run's adapters: as in the run
  // auto: dpo if the data has pairs, or the preference of the run that the model comes from; else none
  std::string preference = "auto";
  std::vector<stw_parameter_group> groups;                   // those of --freeze first
  std::vector<std::shared_ptr<const std::string>> patterns;  // owns the patterns that `groups` point to
  // the token that ends a document; unset: documents are not separated
  std::optional<uint32_t> document_end;
  bool examples = false;          // the data is examples, each of which is a document
  uint32_t micro_batch = 0;       // 0: chosen by the planner
  std::optional<uint64_t> texts;  // the largest number of texts in a sample; unset: an eighth of its tokens
  uint32_t threads = 0;           // 0: one for each processor
  std::optional<float> clip;      // unset: 1, or no clipping with fused updates
  bool exact = false, fast = false, fused_update = false;
  bool keeps_documents() const { return document_end || examples; }
};

// Adds an option whose value is a byte count such as 8GiB.
CLI::Option* add_bytes(CLI::App& command, const std::string& names, std::optional<uint64_t>& out,
                       const std::string& description);
CLI::Validator not_empty();
CLI::Option* add_seed(CLI::App& command, uint64_t& seed, const std::string& description);

void add_model_flags(CLI::App& command, ModelFlags& flags);
// Adds --lora and its settings, which create new adapters.
void add_adapter_flags(CLI::App& command, ModelFlags& flags);
// Call this after add_model_flags.
CLI::Option* add_from_scratch_flag(CLI::App& command, ModelFlags& flags);
void add_labels_flag(CLI::App& command, ModelFlags& flags);
void add_task_flag(CLI::App& command, ModelFlags& flags);
void add_new_head_flag(CLI::App& command, ModelFlags& flags);
void add_threads_flag(CLI::App& command, PlanFlags& flags);
void add_quantize_flags(CLI::App& command, PlanFlags& flags);
void add_preference_flag(CLI::App& command, PlanFlags& flags);
// Adds --beta, --margin and --answer-share.
void add_preference_flags(CLI::App& command, PreferenceFlags& flags);
void set_preference(stw_trainer_options& options, const PreferenceFlags& flags);
void add_document_flag(CLI::App& command, PlanFlags& flags);
// Adds --vram, --batch, --seq and --device.
void add_request_flags(CLI::App& command, PlanFlags& flags);
// Adds the other flags that `plan` and `train` share.
void add_numerics_flags(CLI::App& command, PlanFlags& flags);

// Whether a plan has an input with the positions of tokens in their documents.
bool has_documents(std::string_view plan_json);
// The preference loss of a plan: "dpo", …, or "none".
std::string preference_of(std::string_view plan_json);
bool has_reference(const std::string& preference);  // whether the loss compares with a reference model

// The library's number for "fp16", …, and the name for such a number.
uint32_t precision_of(const std::string& name);
const char* precision_name(uint32_t precision);

bool is_preset(const std::string& model);
// The names of the presets, for the end of a help text.
std::string presets_text();

Model open_model(const ModelFlags& flags);
// The library's number for a value of --task; STW_TASK_AUTOMATIC for an empty one.
uint32_t task_number(const std::string& word);
std::string name_of_task(uint32_t number);  // the value of --task; empty: a language model
// Throws a Failure if the weights are random although neither a preset nor --from-scratch asks for that.
void require_weights(const ModelFlags& flags, const stw_model_info& about);
// Throws a Failure if nothing can be computed with the model but an encoder's activations.
void require_head(const ModelFlags& flags, const stw_model_info& about);
std::vector<std::string> labels_of(const Model& model);  // names of the labels; empty for a language model

// The device that --device chooses. It is either present on this machine or known only as a profile.
struct DeviceChoice {
  std::string name;  // the planner's name for it
  uint32_t backend = STW_BACKEND_AUTO;
  bool present = false;                      // false: only a profile, for planning
  uint64_t total_bytes = 0, free_bytes = 0;  // 0: unknown. Of a profile, total_bytes is known
  uint32_t threads = 0;
  std::string profile;  // text of a calibrated profile; empty: the built-in one
};
// `name` may also be the file of a calibrated profile, which selects the profile's device.
DeviceChoice choose_device(const std::string& name);
Device open_device(const DeviceChoice& choice, uint32_t threads);
// Throws a Failure if `what` needs more bytes than are free on the device. The message says how many are
// missing and, if known, which processes hold the rest.
void require_free(const DeviceChoice& choice, const std::string& what, uint64_t bytes);
// The same for the memory of a training plan. On a CPU, offloaded data counts too, because it lies in the
// same memory.
void require_free(const DeviceChoice& choice, const stw_plan_info& plan);
// Fills in the free memory of a CUDA device. Opens the device, because only an open device reports it.
void ask_memory_free(int32_t ordinal, stw_device_info& info);

// Throws a Failure if --seq exceeds the number of the model's positions.
void check_sequence(const std::optional<uint64_t>& sequence, uint64_t positions);
// The default of --texts for encoders that label texts: enough for texts of eight tokens.
uint64_t default_texts(uint64_t sequence);
// --texts, or its default.
uint64_t texts_of(const stw_model_info& model, const PlanFlags& flags, uint64_t sequence);
// Tokens of a sample: --seq, or its default. Throws as check_sequence does.
uint64_t sequence_of(const ModelFlags& model_flags, const stw_model_info& model, const PlanFlags& flags);
// Fills in the options that were not given. Throws a usage Failure if that is impossible.
stw_plan_options plan_options(const ModelFlags& model_flags, const stw_model_info& model,
                              const PlanFlags& flags, const DeviceChoice& device);

// A plan that does not fit is also an answer. Then `shortfall` is the line that says so, and `advice` says
// what would help; otherwise both are empty.
struct PlanAnswer {
  Plan plan;
  std::string shortfall;
  std::vector<std::string> advice;  // lines with the flags that would help
};
PlanAnswer create_plan(const Model& model, const std::string& model_name, const stw_plan_options& options);
// Returns the plan. Throws a Failure if it does not fit.
Plan require_plan(PlanAnswer answer);
// Reads a plan that `stowage plan --json` wrote. Throws a Failure if the file was edited, or if the model has
// no program for it.
Plan load_plan(const Model& model, const std::string& path);

}  // namespace command
