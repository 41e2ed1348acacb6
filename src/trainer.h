// A trainer: one arena, filled with a model, and the loop over the plan's programs.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "src/dataset.h"
#include "src/device.h"
#include "src/execute.h"
#include "src/planned.h"
#include "src/schedule.h"

namespace stw {

enum class TrainerPhase : uint8_t { idle, train, evaluate, generate, save, calibrate };

struct Progress {
  TrainerPhase phase = TrainerPhase::idle;
  uint64_t step = 0, batches = 0, skipped = 0, tokens = 0;
  double loss = 0, grad_norm = 0, learning_rate = 0, seconds = 0, tokens_per_second = 0, evaluation_loss = 0;
};

struct StepResult {
  bool skipped = false;
  uint64_t step = 0, targets = 0;
  double loss = 0, grad_norm = 0, seconds = 0;
};

struct GradientView {
  float* data;
  uint64_t count;
  double* loss_sum;
  uint64_t* target_count;
};

struct TrainerOptions {
  uint64_t seed = 1337;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, clip_norm = 1;
  void* arena = nullptr;               // the host's, or null
  uint64_t arena_bytes = 0;
  std::function<bool(const GradientView&)> gradient_hook;   // false: the step fails
};

// Writes the tokens and targets of one sample of the global batch: `sequence` each.
using SampleSource = std::function<Status(uint64_t sample, int32_t* tokens, int32_t* targets)>;

struct GenerateOptions {
  const int32_t* prompt = nullptr;
  uint64_t prompt_count = 0;
  int32_t* out = nullptr;
  uint64_t out_capacity = 0;
  double temperature = 0;              // 0: the most probable token
  uint32_t top_k = 0;                  // 0: all
  uint64_t seed = 1337;
};

enum class TensorView : uint8_t { parameter, gradient, first_moment, second_moment };
struct TensorMemory { void* data; Format format; Shape shape; };

class Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> create(const Device& device, std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Planned> planned, TrainerOptions options);
  ~Trainer();

  // One optimizer step; `samples` of the global batch have data, the rest count as ignored.
  Result<StepResult> step(const SampleSource& source, uint64_t samples, double learning_rate);
  // Steps until `until` batches are consumed; `after` returns false to stop (cancelled).
  Status run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
             const std::function<bool(const Progress&)>& after);
  Result<double> evaluate(const Dataset& dataset, uint64_t batches);
  Result<uint64_t> generate(const GenerateOptions& options);
  // Logits (vocabulary) of the token after `count` tokens; fp32, valid until the next call that computes.
  Result<const float*> logits(const int32_t* tokens, uint64_t count);

  Status save(const std::string& path);
  Status restore(const std::string& path);
  Status export_model(const std::string& folder);
  Result<TensorMemory> view(size_t parameter, TensorView kind);
  // Overwrites a parameter from fp32 values.
  void write_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count);

  // Times the instructions of a step of made-up tokens: the plan's profile with the figures of this device. Only while the
  // trainer is as it was created; however it ends, every byte is so again, unless the weights can no longer be read.
  Result<DeviceProfile> calibrate();

  void cancel() { cancelled_ = true; }
  Progress progress() const;
  const Plan& plan() const { return planned_->plan; }
  const Graph& graph() const { return planned_->graph; }
  const Model& model() const { return *model_; }
  const Device& device() const { return device_; }
  int64_t sequence() const { return plan().request.sequence; }
  uint64_t global_batch() const { return static_cast<uint64_t>(plan().request.global_batch); }

 private:
  friend class CheckpointOfTrainer;
  Trainer(const Device& device, std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned, TrainerOptions options);
  Status allocate();
  Status fill();
  void put_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count);
  void fill_tables();
  void begin_state();
  std::byte* address(int tensor) const;
  int32_t* input(const Program& program, int buffer) const;
  // Fills the inputs of a program from consecutive samples; those past `samples` are ignored ones.
  Status load(const Program& program, const SampleSource& source, uint64_t first, uint64_t samples) const;
  Status check_cancelled();
  // Errors: bad_state where the dataset has tokens that the model does not know, corrupt where it is too short.
  Status check_dataset(const Dataset& dataset, Dataset::Part part) const;
  Result<const float*> feed(const int32_t* tokens, uint64_t count);
  void enter(TrainerPhase phase);
  // Errors: bad_state after a restore or calibration that failed halfway.
  Status check_whole() const;
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
  std::unique_ptr<ThreadPool> pool_;
  std::byte *arena_ = nullptr, *host_ = nullptr;   // host_: memory of what is offloaded
  bool owns_arena_ = false;
  Execution execution_;
  kernels::StepState* state_ = nullptr;
  std::atomic<bool> cancelled_ = false;
  bool broken_ = false;   // a restore or calibration failed after it had begun to overwrite
  bool as_created_ = true;   // nothing has changed what fill() wrote
  mutable std::mutex progress_mutex_;
  Progress progress_;
};

}  // namespace stw
