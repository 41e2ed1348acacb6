// A trainer owns one arena, fills it with a model, and runs the plan's programs in a loop.
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
  uint64_t samples = 0;   // samples of all batches consumed: the position in a dataset that is read in order
  double loss = 0, grad_norm = 0, learning_rate = 0, seconds = 0, tokens_per_second = 0, evaluation_loss = 0, evaluation_accuracy = 0;
  double accuracy = 0;   // preferences: share of the last step's pairs whose chosen text the model prefers
  // Samples of the current or last evaluation: their number, and how many were given to the device.
  uint64_t evaluation_samples = 0, evaluated_samples = 0;
  uint64_t evaluation_targets = 0;   // targets of the last evaluation
  // Micro-steps of the current or last step: their number, and how many are done.
  uint64_t micro_steps = 0, micro_steps_done = 0;
  double loss_scale = 1;               // for the next step
  kernels::Skip skip = kernels::skip_none;   // of the last step
};

// The state that a step hands on to the next one, in addition to the arena. Every checkpoint holds it.
struct CarriedState {
  double loss_scale = 1;
  uint64_t good_steps = 0, observed = 0;
  double loss_mean = 0, loss_variance = 0, norm_mean = 0, norm_variance = 0;
};

struct StepResult {
  kernels::Skip skip = kernels::skip_none;
  uint64_t step = 0, targets = 0;
  double loss = 0, grad_norm = 0, seconds = 0;
  double loss_scale = 1;               // scale of this step
  double accuracy = 0;                 // as in Progress
};

// A text for a classifier. `token_types`: one a token; null means that all are 0.
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
  uint32_t* in_order;                  // preferences: pairs whose chosen text the model prefers
  double scale;                        // factor by which the gradients are multiplied
  void* stream;                        // a cudaStream_t; null on the CPU
};

enum class NonFinite : uint8_t { skip, stop };

struct TrainerOptions {
  uint64_t seed = 1337;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, clip_norm = 1;
  double momentum = 0.9;
  bool nesterov = false;
  // Both apply to the loss of each token. With a preference, label_smoothing applies to pairs instead.
  double label_smoothing = 0, z_loss = 0;
  PreferenceOptions preference;
  double outlier_limit = 0;            // in standard deviations; 0: outliers are not skipped
  NonFinite non_finite = NonFinite::skip;
  double loss_scale = 65536;           // fp16: the first step's
  uint32_t growth_interval = 2000;     // fp16
  void* arena = nullptr;               // the host's memory, or null: the trainer allocates its arena
  uint64_t arena_bytes = 0;
  std::function<bool(const GradientView&)> gradient_hook;   // false makes the step fail
  Watch* watch = nullptr;   // Watches the creation and all later calls. Owned by the host; may be null.
};

struct GenerateOptions {
  const int32_t* prompt = nullptr;
  uint64_t prompt_count = 0;
  int32_t* out = nullptr;
  uint64_t out_capacity = 0;
  Sampling sampling = {};
  std::span<const int32_t> stop = {};  // tokens that end the text
};

enum class TensorView : uint8_t { parameter, gradient, first_moment, second_moment };
// on_host: the tensor is offloaded to host memory
struct TensorMemory { void* data; Format format; Shape shape; bool on_host; };

class Trainer {
 public:
  // Takes memory, loads or draws the model's weights, and is then ready for the first step. `device` must
  // outlive the trainer. Errors: bad_state (the plan is for another device or does not fit), bad_argument
  // (options), out_of_memory, those of reading weights, cancelled.
  static Result<std::unique_ptr<Trainer>> create(const Device& device, std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Planned> planned, TrainerOptions options);
  ~Trainer();

  // One optimizer step. The first `samples` samples of the global batch have data; the others are ignored.
  Result<StepResult> step(const SampleSource& source, uint64_t samples, double learning_rate);
  // Steps until `until` batches are consumed. Calls `after` after each step; false stops the run (cancelled).
  // `after` may call everything except replan.
  Status run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
             const std::function<bool(const StepResult&, const Progress&)>& after);
  // The mean loss over the targets of `batches` batches of the evaluation part, or of all its windows if these
  // are fewer; NaN without targets. Errors: those of check_dataset.
  Result<double> evaluate(const Dataset& dataset, uint64_t batches);
  // Samples tokens after the prompt into `out` and returns their number: out_capacity, or up to and including
  // the first stop token. Errors: unsupported (the model does not generate), unsupported_shape, bad_argument.
  Result<uint64_t> generate(const GenerateOptions& options);
  using UseLosses = std::function<Status(uint64_t sample, const float* losses)>;
  // Computes the loss of every target of `samples` samples and calls use(sample, losses) for each sample,
  // with `sequence` losses; 0 where there is no target. Errors: non_finite, and the errors of `use`.
  Status log_probabilities(const SampleSource& source, uint64_t samples, const UseLosses& use);
  // Writes a file with the log-probability of every token of a dataset of pairs: one float a token, 0 where
  // the token is no target. Errors: bad_state where the dataset has no pairs or does not suit the model;
  // io_error.
  Status write_reference(const Dataset& dataset, const std::string& path);
  // The fp32 logits of the token after the first `count` tokens (vocabulary numbers), or of a classifier's
  // labels. Valid until the next call that computes. Errors: unsupported where each token has a label.
  Result<const float*> logits(const int32_t* tokens, uint64_t count);
  // Checks that a text of `tokens` tokens fits a sample. Errors: unsupported_shape; its message begins with
  // `what`.
  Status check_length(const std::string& what, uint64_t tokens) const;
  // Writes the logits of all labels for each text in turn (texts·labels numbers). Where tokens have labels,
  // it writes them for each token of each text. Errors: unsupported if the model is no classifier; otherwise
  // as logits().
  Status classify(std::span<const Text> texts, float* out);

  // Checkpoints. A failed save leaves the old file. A failed restore changes nothing, unless reading the file
  // fails halfway (check_ready).
  Status save(const std::string& path);
  Status restore(const std::string& path);
  // Writes the folder of a model, or of its adapters.
  Status export_model(const std::string& folder);
  // The memory of a parameter, or of its gradient or a moment. Errors: unsupported where that is no tensor of
  // plain numbers.
  Result<TensorMemory> view(size_t parameter, TensorView kind);
  // Overwrites a parameter from fp32 values.
  void write_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count);

  // Bytes that another plan for this trainer may take: the device's free memory plus the trainer's own arena.
  // If the host owns the arena: its size. 0: unknown.
  uint64_t memory_of_device() const;
  // Errors: bad_state where a re-plan is not possible now.
  Status check_replan() const;
  // Continues under another plan of the same model, batch and numerics. Errors: bad_state (these differ, or a
  // gradient hook where gradients are offloaded), out_of_memory. After these errors nothing has changed, unless
  // the device lost the arena (check_ready).
  Status replan(std::shared_ptr<const Planned> planned);

  // Times the instructions of a step on made-up tokens and returns the plan's device profile with the
  // measured figures. Only for a new trainer, before its first step or restore. Afterwards every byte is as
  // before, also after an error, unless the weights can no longer be read.
  Result<DeviceProfile> calibrate();
  // Writes a trace with the measured and the predicted time of every instruction of a step.
  Status write_timeline(const std::string& path);

  // Errors: bad_state during a computation, that is, in a call from one of its callbacks. The arena must then
  // not be read, changed or used.
  Status check_free() const;
  // Errors: bad_state after a step, restore, calibration or re-plan failed halfway; also those of check_free.
  Status check_ready() const;

  // From any thread, also from a signal handler.
  void cancel() noexcept { cancels_.ask(); }
  // While the result lives, the calling thread's work can be cancelled like a step. `unit`: the unit that
  // check_in() counts.
  LongCall long_call(Work work, WorkUnit unit, uint64_t total, EarlierCancel earlier = EarlierCancel::stops);
  // A snapshot, from any thread.
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
  Status take_all();   // takes memory and a stream, and fills the arena
  Status check_offload(const Plan& plan) const;
  Status check_loss() const;
  Status check_gradients() const;
  void use(std::shared_ptr<const Planned> planned);
  // Change the size of the arena and keep its first `kept` bytes.
  Status grow(uint64_t bytes, uint64_t kept);
  void shrink(uint64_t bytes, uint64_t kept);
  void follow_arena(const std::byte* before);   // after the arena may have moved
  Status take_again();   // takes an arena that a re-plan has lost, and fills it as on creation
  Filling filling_of_all() const { return Filling::of_all(device_, *model_, execution_, *stream_, plan().numerics); }
  Status fill(Filling& filling);   // fills everything, as on creation
  // Sets the scalars of a step. Those that one step hands on to the next come from `carried_`.
  void begin_state(double learning_rate = 0);
  void push_state() { stream_->upload(execution_.state, &state_, sizeof state_); }
  Status pull_state() { return stream_->download(&state_, execution_.state, sizeof state_); }
  // Copies the scalars that `finish_step` computed for the next step into `carried_`.
  void carry_state();
  // The reason that a step was not finite, for a message: the loss, or the first parameter with a non-finite
  // gradient.
  std::string non_finite_reason();
  // The next functions are the stages of a step after its last micro-step. This one shows the gradients to
  // the host. Errors: callback_failed.
  Status show_gradients() const;
  // Checks the outcome of the update before progress counts it. Errors: non_finite, numeric.
  Status check_result(const StepResult& result);
  // Counts the step and writes its number into `result`.
  void count_step(StepResult& result, double learning_rate);
  // Fills the inputs of a program from consecutive samples. Samples from number `samples` on are ignored
  // ones.
  Status load(const Program& program, const SampleSource& source, uint64_t first, uint64_t samples) {
    return inputs_.load(program, execution_, *stream_, source, first, samples);
  }
  // For one part of an evaluation.
  Status each_log_probability(const SampleSource& source, uint64_t samples, const UseLosses& use);
  Status read_losses(const Program& program, float* losses);   // of the samples of an evaluation program
  Status export_adapters(const std::string& folder);
  Status export_weights(const std::string& folder);
  Status write_parameters(const std::string& path, const std::vector<std::pair<int, std::string>>& named);
  // A hash of the parameters below adapters; empty without adapters.
  Result<std::string> hash_of_base();
  // Hands on bytes of the device's memory in pieces that the host can read.
  Status read_memory(std::byte* from, uint64_t bytes, const std::function<Status(std::span<const std::byte>)>& piece);
  std::vector<TimedProgram> programs_of_step() const;
  // Times every instruction in rounds and returns the number of rounds. Afterwards every byte is as fill()
  // wrote it, also after an error, unless the weights can no longer be read. Errors, whose messages begin
  // with `what`: bad_state where something has changed the new trainer; non_finite.
  Result<size_t> time_programs(std::vector<TimedProgram>& timed, const std::string& what);
  // Runs `body` as a long call. A cancel becomes an error.
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
  uint64_t saved_bytes() const;   // bytes of a checkpoint's tensors and of the weights that it hashes
  // Errors: bad_state where the dataset does not suit the model or the plan; those of Dataset::check_windows.
  Status check_dataset(const Dataset& dataset, Dataset::Part part, bool with_reference = true) const;
  Status check_tokens(const char* what, const int32_t* tokens, uint64_t count) const;   // Errors: bad_argument
  bool are_finite(const float* logits) const;
  Result<const float*> feed(const int32_t* tokens, uint64_t count);
  Status check_text(const std::string& what, const Text& text) const;   // Errors: unsupported_shape, bad_argument
  // For models that do not generate. Errors: cancelled.
  Status run_logits(std::span<const Text> texts, std::span<const uint64_t> begins);
  // The logits of this row, after `program` has run.
  Result<const float*> read_logits(const Program& program, uint64_t row);
  // Copies the logits of consecutive rows to `out`. `raw`: a buffer for 16-bit logits.
  Status take_logits(const Program& program, uint64_t first, uint64_t rows, std::vector<std::byte>& raw, float* out);
  void enter(TrainerPhase phase);
  void begin_evaluation(uint64_t samples);
  void count_evaluated(uint64_t samples);   // adds samples
  // Marks that a computation is under way, until the end of the scope.
  struct Computing {
    Trainer& trainer;
    explicit Computing(Trainer& of) : trainer(of) { trainer.computes_ = true; }
    ~Computing() { trainer.computes_ = false; }
    Computing(const Computing&) = delete;
  };
  // Enters a phase until the scope ends, also by an exception. The enclosing phase then continues.
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
  std::unique_ptr<Stream> stream_;     // uses memory_, and is destroyed before it
  Execution execution_;
  kernels::StepState state_{};         // the host's copy
  SampleInputs inputs_;
  std::vector<int32_t> fed_;           // tokens of a prompt
  std::vector<float> logits_;          // where the host cannot read them in the arena, or not as fp32
  std::vector<uint16_t> short_logits_; // 16-bit logits before their conversion
  CarriedState carried_;
  CancelFlag cancels_;
  bool broken_ = false;   // a failed call had begun to overwrite the arena, or the arena is lost
  bool lost_arena_ = false;   // a re-plan lost the arena; the next one must be filled as on creation
  bool as_created_ = true;   // the arena still is as fill() wrote it
  bool computes_ = false;    // set by Computing
  mutable std::mutex progress_mutex_;
  Progress progress_;
};

}  // namespace stw
