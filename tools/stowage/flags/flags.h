// The flags that several subcommands share: which model, and everything that affects memory or bits.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/handles.h"

namespace CLI {   // its headers cost more to compile than all else here
class App;
class Option;
class Validator;
}

namespace command {

struct ModelFlags {
  std::string source;
  std::string weights;           // empty: those of the source, else random ones
  std::optional<float> dropout;  // of all rates; unset: those of the config
  uint64_t seed = 1337;
  std::string adapter;           // a folder of low-rank adapters
  uint32_t adapter_rank = 0;     // or new ones; 0: none
  std::optional<float> adapter_alpha;
  float adapter_dropout = 0;
  std::string adapter_targets;   // empty: all matrices of blocks
  bool adapter_stabilised = false;
  uint64_t label_count = 0;      // of a classifier; 0: as the config says
  std::vector<std::string> labels;   // their names; empty: the model's own
  bool from_scratch = false;     // random weights, whatever lies beside the config
  std::string task;              // of --task; empty: as the config says, or with labels a label of a text
};

// What a preference weighs a pair by; unset: the library's defaults.
struct PreferenceFlags {
  std::optional<float> beta, margin, answer_share;
};

// Where a run may have left its settings: with the adapters, where these are of a run.
const std::string& run_of(const ModelFlags& flags);

struct PlanFlags {
  std::optional<uint64_t> memory_bytes, host_bytes, reserve_bytes;
  std::optional<uint64_t> batch, sequence;
  std::string device;  // empty: CUDA where there is one, else the CPU
  std::string precision, optimizer, master, gradients, attention;   // empty: the default, or on --resume what the run has
  std::string kernels = "auto", states = "auto", recompute = "auto";
  std::string quantize = "auto", quantize_embeddings = "auto";   // of a run's adapters: as in the run
  std::string preference = "auto";                               // none; where the data has pairs dpo, or what the run had that it comes from
  std::vector<stw_parameter_group> groups;                      // frozen ones first
  std::vector<std::shared_ptr<const std::string>> patterns;     // that they point to
  std::optional<uint32_t> document_end;   // the token that ends a document; unset: there are none
  bool examples = false;                  // the data is prompts and answers, each a document
  uint32_t micro_batch = 0;  // 0: chosen
  uint32_t threads = 0;      // 0: one for each processor
  std::optional<float> clip;  // unset: 1, or none where updates are fused
  bool exact = false, fast = false, fused_update = false;
  bool keeps_documents() const { return document_end || examples; }
};

// A byte count such as 8GiB as the value of an option.
CLI::Option* add_bytes(CLI::App& command, const std::string& names, std::optional<uint64_t>& out,
                       const std::string& description);
CLI::Validator not_empty();
CLI::Option* add_seed(CLI::App& command, uint64_t& seed, const std::string& description);

void add_model_flags(CLI::App& command, ModelFlags& flags);
// --lora and its settings: new adapters.
void add_adapter_flags(CLI::App& command, ModelFlags& flags);
// Behind those of add_model_flags.
CLI::Option* add_from_scratch_flag(CLI::App& command, ModelFlags& flags);
void add_labels_flag(CLI::App& command, ModelFlags& flags);
void add_task_flag(CLI::App& command, ModelFlags& flags);
void add_threads_flag(CLI::App& command, PlanFlags& flags);
void add_quantize_flags(CLI::App& command, PlanFlags& flags);
void add_preference_flag(CLI::App& command, PlanFlags& flags);
// --beta, --margin and --answer-share.
void add_preference_flags(CLI::App& command, PreferenceFlags& flags);
void set_preference(stw_trainer_options& options, const PreferenceFlags& flags);
void add_document_flag(CLI::App& command, PlanFlags& flags);
// --vram, --batch, --seq and --device.
void add_request_flags(CLI::App& command, PlanFlags& flags);
// The rest of what `plan` and `train` take.
void add_numerics_flags(CLI::App& command, PlanFlags& flags);

// Whether a plan's text asks for positions of tokens in their documents.
bool has_documents(std::string_view plan_json);
// What a plan's text says is learned of pairs: "dpo", …, or "none".
std::string preference_of(std::string_view plan_json);
bool has_reference(const std::string& preference);   // whether it is against another model

// The library's number for "fp16", …; the name of such a number.
uint32_t precision_of(const std::string& name);
const char* precision_name(uint32_t precision);

bool is_preset(const std::string& model);
// The names of the presets, for the end of a help text.
std::string presets_text();

Model open_model(const ModelFlags& flags);
// The library's number for a word of --task; STW_TASK_AUTOMATIC for none.
uint32_t task_number(const std::string& word);
// Throws where the weights are random ones, and neither a preset nor --from-scratch says that they are to be.
void require_weights(const ModelFlags& flags, const stw_model_info& about);
std::vector<std::string> labels_of(const Model& model);   // their names; none of a language model

// The --device that is meant, found on this machine or only known as a profile.
struct DeviceChoice {
  std::string name;  // as the planner wants it
  uint32_t backend = STW_BACKEND_AUTO;
  bool present = false;                      // false: a profile, for planning only
  uint64_t total_bytes = 0, free_bytes = 0;  // 0: not known
  uint32_t threads = 0;
  std::string profile;  // a calibrated one, as text; empty: the embedded one
};
// `name` may also be the file of a calibrated profile, which stands for its device.
DeviceChoice choose_device(const std::string& name);
Device open_device(const DeviceChoice& choice, uint32_t threads);
// Fails where `what` takes more than is free on the device: by how much, and who holds the rest, as far as that is known.
void require_free(const DeviceChoice& choice, const std::string& what, uint64_t bytes);
// Of a plan to train by. On a CPU what it offloads lies in the same memory.
void require_free(const DeviceChoice& choice, const stw_plan_info& plan);
// Fills in what is free on a CUDA device, which only one that is open knows.
void ask_memory_free(int32_t ordinal, stw_device_info& info);

// Throws where a --seq is longer than the model's positions.
void check_sequence(const std::optional<uint64_t>& sequence, uint64_t positions);
// Tokens of a sample: --seq, or its default. Throws as check_sequence does.
uint64_t sequence_of(const ModelFlags& model_flags, const stw_model_info& model, const PlanFlags& flags);
// Fills in what was not said. Throws a usage failure where that is not possible.
stw_plan_options plan_options(const ModelFlags& model_flags, const stw_model_info& model, const PlanFlags& flags,
                              const DeviceChoice& device);

// A plan that does not fit is an answer too: then `shortfall` is the line that says so, else it is empty.
struct PlanAnswer {
  Plan plan;
  std::string shortfall;
};
PlanAnswer create_plan(const Model& model, const std::string& model_name, const stw_plan_options& options);
// The same for those who need one that fits.
Plan require_plan(PlanAnswer answer);
// The plan in a file of `stowage plan --json`. Throws where it was edited, or no program of that model does what it says.
Plan load_plan(const Model& model, const std::string& path);

}  // namespace command
