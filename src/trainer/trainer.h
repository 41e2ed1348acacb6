// A trainer: one arena, filled with a model, and the loop over the plan's programs.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/data/dataset.h"
#include "src/device/device.h"
#include "src/execute/execute.h"
#include "src/weights/filling.h"
#include "src/trainer/planned.h"
#include "src/trainer/preference.h"
#include "src/execute/sample_inputs.h"
#include "src/trainer/sampling.h"
#include "src/trainer/schedule.h"
#include "src/trainer/timed_step.h"
#include "src/trainer/trainer_memory.h"
#include "src/base/watch.h"

namespace stw {

enum class TrainerPhase : uint8_t { idle, train, evaluate, generate, save, calibrate };

struct Progress {
  TrainerPhase phase = TrainerPhase::idle;
  uint64_t step = 0, batches = 0, skipped = 0, tokens = 0;
  uint64_t samples = 0;                // of all batches: the place in a dataset that is gone over
  double loss = 0, grad_norm = 0, learning_rate = 0, seconds = 0, tokens_per_second = 0, evaluation_loss = 0, evaluation_accuracy = 0;
  double accuracy = 0;                 // of preferences: share of the last step's pairs that were in order
  uint64_t evaluation_samples = 0, evaluated_samples = 0;   // of the evaluation under way or the last one: in all, and given to the device
  uint64_t evaluation_targets = 0;   // of the last evaluation
  uint64_t micro_steps = 0, micro_steps_done = 0;   // of the step under way or the last one: in all, and done
  double loss_scale = 1;               // for the next step
  kernels::Skip skip = kernels::skip_none;   // of the last step
};

// What a step hands on to the next one, beside the arena: part of every checkpoint.
struct CarriedState {
  double loss_scale = 1;
  uint64_t good_steps = 0, observed = 0;
  double loss_mean = 0, loss_variance = 0, norm_mean = 0, norm_variance = 0;
};

struct StepResult {
  kernels::Skip skip = kernels::skip_none;
  uint64_t step = 0, targets = 0;
  double loss = 0, grad_norm = 0, seconds = 0;
  double loss_scale = 1;               // of this step
  double accuracy = 0;                 // as Progress has it
};

// A text for a classifier. `token_types`: one a token, or null where all are 0.
struct Text {
  const int32_t* tokens;
  uint64_t count;
  const int32_t* token_types;
};

struct GradientView {
  float* data;
  uint64_t count;
  double* loss_sum;
  uint64_t* target_count;
  uint32_t* in_order;                  // of preferences: pairs
  double scale;                        // that the gradients carry
  void* stream;                        // a cudaStream_t; null on the CPU
};

enum class NonFinite : uint8_t { skip, stop };

struct TrainerOptions {
  uint64_t seed = 1337;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, clip_norm = 1;
  double momentum = 0.9;
  bool nesterov = false;
  double label_smoothing = 0, z_loss = 0;   // of tokens; with a preference label_smoothing is of pairs
  PreferenceOptions preference;
  double outlier_limit = 0;            // standard deviations; 0: no step is skipped for being one
  NonFinite non_finite = NonFinite::skip;
  double loss_scale = 65536;           // fp16: of the first step
  uint32_t growth_interval = 2000;     // fp16
  void* arena = nullptr;               // the host's, or null
  uint64_t arena_bytes = 0;
  std::function<bool(const GradientView&)> gradient_hook;   // false: the step fails
  Watch* watch = nullptr;              // of its creation and of all that it does; the host's, or null
};

struct GenerateOptions {
  const int32_t* prompt = nullptr;
  uint64_t prompt_count = 0;
  int32_t* out = nullptr;
  uint64_t out_capacity = 0;
  Sampling sampling = {};
  std::span<const int32_t> stop = {};  // tokens that end the answer
};

enum class TensorView : uint8_t { parameter, gradient, first_moment, second_moment };
struct TensorMemory { void* data; Format format; Shape shape; bool on_host; };   // on_host: offloaded

class Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> create(const Device& device, std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Planned> planned, TrainerOptions options);
  ~Trainer();

  // One optimizer step; `samples` of the global batch have data, the rest count as ignored.
  Result<StepResult> step(const SampleSource& source, uint64_t samples, double learning_rate);
  // Steps until `until` batches are consumed; `after` returns false to stop (cancelled). Between two steps anything but
  // replan may be called from there.
  Status run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
             const std::function<bool(const StepResult&, const Progress&)>& after);
  Result<double> evaluate(const Dataset& dataset, uint64_t batches);
  Result<uint64_t> generate(const GenerateOptions& options);
  using UseLosses = std::function<Status(uint64_t sample, const float* losses)>;
  // The loss of every target of so many samples: use(sample, losses), `sequence` of them, 0 where there is no target.
  // Errors: non_finite; what `use` answers.
  Status log_probabilities(const SampleSource& source, uint64_t samples, const UseLosses& use);
  // A file with the log-probability of every target of a dataset of pairs, a float for each of its tokens; 0 for the others. Errors: bad_state
  // (other datasets), io_error.
  Status write_reference(const Dataset& dataset, const std::string& path);
  // Logits of the token after `count` tokens (vocabulary), or of a classifier's labels; fp32, valid until the next call that computes.
  // Errors: unsupported where each token has a label.
  Result<const float*> logits(const int32_t* tokens, uint64_t count);
  // Whether a text of so many tokens fits a sample. Errors: unsupported_shape, which begin with `what`.
  Status check_length(const std::string& what, uint64_t tokens) const;
  // Writes all labels' logits for each text in turn, texts·labels numbers; where tokens have labels, for each token of each text. Errors: unsupported if the model is no classifier; else as logits().
  Status classify(std::span<const Text> texts, float* out);

  Status save(const std::string& path);
  Status restore(const std::string& path);
  Status export_model(const std::string& folder);
  Result<TensorMemory> view(size_t parameter, TensorView kind);
  // Overwrites a parameter from fp32 values.
  void write_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count);

  // Bytes that a plan for this trainer may take: what is free on the device now, and its own arena, which it gives back; of a host's arena,
  // that. 0: unknown.
  uint64_t memory_of_device() const;
  // Errors: bad_state where no other plan may be taken now.
  Status check_replan() const;
  // Goes on under another plan of the same model, batch and numerics. Errors: bad_state (another one; a gradient hook where
  // gradients are offloaded), out_of_memory; nothing has changed then.
  Status replan(std::shared_ptr<const Planned> planned);

  // Times the instructions of a step of made-up tokens: the plan's profile with the figures of this device. Only while the
  // trainer is as it was created; however it ends, every byte is so again, unless the weights can no longer be read.
  Result<DeviceProfile> calibrate();
  // The same times, of every instruction of a step beside what the plan expected of it, as a trace in a file.
  Status write_timeline(const std::string& path);

  // Errors: bad_state in the middle of what computes, where its callbacks are called from: nothing may then read, change or
  // compute with what is in the arena.
  Status check_free() const;
  // Errors: bad_state after a step, restore, calibration or re-plan that failed halfway, and those of check_free.
  Status check_ready() const;

  // Any thread, also a signal handler.
  void cancel() noexcept { cancels_.ask(); }
  // What the calling thread does while it lives can be cancelled like a step. `unit`: what check_in() counts.
  LongCall long_call(Work work, WorkUnit unit, uint64_t total, EarlierCancel earlier = EarlierCancel::stops);
  Progress progress() const;
  const std::shared_ptr<const Planned>& planned() const { return planned_; }
  const Plan& plan() const { return planned_->plan; }
  const Graph& graph() const { return planned_->graph; }
  const Model& model() const { return *model_; }
  const Device& device() const { return device_; }
  void* stream() const { return execution_.stream; }   // a cudaStream_t; null on the CPU
  int64_t sequence() const { return plan().request.sequence; }
  uint64_t global_batch() const { return static_cast<uint64_t>(plan().request.global_batch); }

 private:
  Trainer(const Device& device, std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned, TrainerOptions options);
  Status prepare();
  Status take_all();   // what creation takes and fills
  Status check_offload(const Plan& plan) const;
  Status check_loss() const;
  Status check_gradients() const;
  void use(std::shared_ptr<const Planned> planned);
  // The arena's size, of which so many first bytes are kept.
  Status grow(uint64_t bytes, uint64_t kept);
  void shrink(uint64_t bytes, uint64_t kept);
  void follow_arena(const std::byte* before);   // where it has moved
  Status take_again();   // the arena, which a re-plan has lost, filled as on creation
  Filling filling_of_all() const { return Filling::of_all(device_, *model_, execution_, *stream_, plan().numerics); }
  Status fill(Filling& filling);   // everything, as on creation
  // The scalars of a step; those that steps hand on are `carried_`.
  void begin_state(double learning_rate = 0);
  void push_state() { stream_->upload(execution_.state, &state_, sizeof state_); }
  Status pull_state() { return stream_->download(&state_, execution_.state, sizeof state_); }
  // Takes back what `finish_step` hands on to the next step.
  void carry_state();
  // Why a step was not finite, for people: the loss, or the first parameter whose gradient is not.
  std::string non_finite_reason();
  // The stages of a step behind its last micro-step. Shows the gradients to the host. Errors: callback_failed.
  Status show_gradients() const;
  // What the update has found, before it is carried on. Errors: non_finite, numeric.
  Status check_result(const StepResult& result);
  // Counts the step, and tells its number.
  void count_step(StepResult& result, double learning_rate);
  // Fills the inputs of a program from consecutive samples; those past `samples` are ignored ones.
  Status load(const Program& program, const SampleSource& source, uint64_t first, uint64_t samples) {
    return inputs_.load(program, execution_, *stream_, source, first, samples);
  }
  Status each_log_probability(const SampleSource& source, uint64_t samples, const UseLosses& use);   // of a part of an evaluation
  Status read_losses(const Program& program, float* losses);   // of an evaluation's samples
  Status export_adapters(const std::string& folder);
  Status export_weights(const std::string& folder);
  Status write_parameters(const std::string& path, const std::vector<std::pair<int, std::string>>& named);
  // Of the parameters below adapters; empty without adapters.
  Result<std::string> hash_of_base();
  // Bytes of the device's memory in pieces that the host can read.
  Status read_memory(std::byte* from, uint64_t bytes, const std::function<Status(std::span<const std::byte>)>& piece);
  std::vector<TimedProgram> programs_of_step() const;
  // Times every instruction in rounds, whose number it returns. However it ends, every byte is as fill() wrote it, unless
  // weights can no longer be read. Errors, which begin with `what`: bad_state where the trainer is not as it was created;
  // non_finite.
  Result<size_t> time_programs(std::vector<TimedProgram>& timed, const std::string& what);
  // Runs `body` as a long call; a cancel is an error of its.
  template <class Body>
  auto watched(Work work, WorkUnit unit, uint64_t total, const Body& body, EarlierCancel earlier = EarlierCancel::stops) -> decltype(body()) {
    const LongCall call = long_call(work, unit, total, earlier);
    try {
      return body();
    } catch (const Cancelled& cancelled) {
      return Error{Code::cancelled, cancelled.message};
    }
  }
  Result<StepResult> make_step(const SampleSource& source, uint64_t samples, double learning_rate);
  Result<double> make_evaluation(const Dataset& dataset, uint64_t batches);
  Status write_all_reference(const Dataset& dataset, const std::string& path);
  Result<uint64_t> make_text(const GenerateOptions& options);
  Result<const float*> make_logits(const Text& text);
  Status classify_all(std::span<const Text> texts, float* out);
  Status write_checkpoint(const std::string& path);
  Status read_checkpoint(const std::string& path);
  void count_micro_step();
  uint64_t saved_bytes() const;   // of a checkpoint's tensors
  // Errors: bad_state where the dataset has tokens that the model does not know, corrupt where it is too short.
  Status check_dataset(const Dataset& dataset, Dataset::Part part, bool with_reference = true) const;
  Status check_tokens(const char* what, const int32_t* tokens, uint64_t count) const;   // Errors: bad_argument
  bool are_finite(const float* logits) const;
  Result<const float*> feed(const int32_t* tokens, uint64_t count);
  Status check_text(const std::string& what, const Text& text) const;   // Errors: unsupported_shape, bad_argument
  Status run_logits(std::span<const Text> texts, std::span<const uint64_t> begins);   // of a model that does not generate; errors: cancelled
  Result<const float*> read_logits(const Program& program, uint64_t row);   // the logits of this row, after `program` has run
  Status take_logits(const Program& program, uint64_t first, uint64_t rows, std::vector<std::byte>& raw, float* out);   // of several, one after the other
  void enter(TrainerPhase phase);
  void begin_evaluation(uint64_t samples);
  void count_evaluated(uint64_t samples);   // more of them
  // What computes, while it lives.
  struct Computing {
    Trainer& trainer;
    explicit Computing(Trainer& of) : trainer(of) { trainer.computes_ = true; }
    ~Computing() { trainer.computes_ = false; }
    Computing(const Computing&) = delete;
  };
  // A phase that ends with the scope, however that ends; the one around it then goes on.
  struct InPhase {
    Trainer& trainer;
    TrainerPhase before;
    InPhase(Trainer& of, TrainerPhase phase) : trainer(of), before(of.progress().phase) { trainer.enter(phase); }
    ~InPhase() { trainer.enter(before); }
    InPhase(const InPhase&) = delete;
  };

  const Device& device_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Planned> planned_;
  TrainerOptions options_;
  TrainerMemory memory_;
  std::unique_ptr<Stream> stream_;     // works in memory_, and goes before it
  Execution execution_;
  kernels::StepState state_{};         // as the host knows it
  SampleInputs inputs_;
  std::vector<int32_t> fed_;           // of a prompt
  std::vector<float> logits_;          // where the host cannot read them in the arena, or not as fp32
  std::vector<uint16_t> short_logits_; // as they are in 16 bits
  CarriedState carried_;
  CancelFlag cancels_;
  bool broken_ = false;   // what failed had begun to overwrite, or has lost the arena
  bool lost_arena_ = false;   // by a re-plan; what creation puts there is to be put there again
  bool as_created_ = true;   // nothing has changed what fill() wrote
  bool computes_ = false;    // set by Computing
  mutable std::mutex progress_mutex_;
  Progress progress_;
};

}  // namespace stw
