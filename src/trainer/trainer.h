// A trainer: one arena, filled with a model, and the loop over the plan's programs. Its parts do the work on
// a common state (core.h); this class is how the rest of the library uses them.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "src/trainer/calibrate.h"
#include "src/trainer/checkpoint.h"
#include "src/trainer/core.h"
#include "src/trainer/evaluate.h"
#include "src/trainer/export.h"
#include "src/trainer/replan.h"
#include "src/trainer/schedule.h"
#include "src/trainer/step.h"
#include "src/trainer/tensors.h"
#include "src/trainer/texts.h"

namespace stw {

class Trainer {
 public:
  // Takes memory, loads or draws the model's weights, and is then ready for the first step. `device` must
  // outlive the trainer. Errors: bad_state (the plan is for another device or does not fit), bad_argument
  // (options), out_of_memory, those of reading weights, cancelled.
  static Result<std::unique_ptr<Trainer>> create(const Device& device, std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Planned> planned,
                                                 TrainerOptions options);

  Result<StepResult> step(const SampleSource& source, uint64_t samples, double learning_rate) {
    return train_step(core_, source, samples, learning_rate);
  }
  // Steps until `until` batches are consumed. Calls `after` after each step; false stops the run (cancelled).
  // `after` may call everything except replan.
  Status run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
             const std::function<bool(const StepResult&, const Progress&)>& after);

  Result<double> evaluate(const Dataset& dataset, uint64_t batches) {
    return stw::evaluate(core_, dataset, batches);
  }
  Status log_probabilities(const SampleSource& source, uint64_t samples, const UseLosses& use) {
    return stw::log_probabilities(core_, source, samples, use);
  }
  Status write_reference(const Dataset& dataset, const std::string& path) {
    return stw::write_reference(core_, dataset, path);
  }

  Result<uint64_t> generate(const GenerateOptions& options) { return texts_.generate(options); }
  Result<const float*> logits(const int32_t* tokens, uint64_t count) { return texts_.logits(tokens, count); }
  Status classify(std::span<const Text> texts, float* out) { return texts_.classify(texts, out); }
  Status check_length(const std::string& what, uint64_t tokens) const {
    return texts_.check_length(what, tokens);
  }

  Status save(const std::string& path) { return save_checkpoint(core_, path); }
  Status restore(const std::string& path) { return restore_checkpoint(core_, path); }
  Status export_model(const std::string& folder) { return stw::export_model(core_, folder); }
  Result<TensorMemory> view(size_t parameter, TensorView kind) { return stw::view(core_, parameter, kind); }
  void write_parameter(size_t parameter, uint64_t first, const float* values, uint64_t count) {
    stw::write_parameter(core_, parameter, first, values, count);
  }

  bool has_gradient_hook() const { return core_.options.gradient_hook != nullptr; }
  uint64_t memory_of_device() const { return stw::memory_of_device(core_); }
  Status check_replan() const { return stw::check_replan(core_); }
  Status replan(std::shared_ptr<const Planned> planned) { return stw::replan(core_, std::move(planned)); }

  Result<DeviceProfile> calibrate() { return stw::calibrate(core_); }
  Status write_timeline(const std::string& path) { return stw::write_timeline(core_, path); }

  Status check_free() const { return core_.check_free(); }
  Status check_ready() const { return core_.check_ready(); }
  // May be called from any thread, and from a signal handler.
  void cancel() noexcept { core_.cancels.request(); }
  LongCall long_call(Work work, WorkUnit unit, uint64_t total, EarlierCancel earlier = EarlierCancel::stops) {
    return core_.long_call(work, unit, total, earlier);
  }
  Progress progress() const { return core_.progress.read(); }

  const std::shared_ptr<const Planned>& planned() const { return core_.planned; }
  const Plan& plan() const { return core_.plan(); }
  const Graph& graph() const { return core_.graph(); }
  const Model& model() const { return *core_.model; }
  const Device& device() const { return core_.device; }
  void* stream() const { return core_.execution.stream; }  // a cudaStream_t; null on the CPU
  int64_t sequence() const { return core_.sequence(); }
  uint64_t global_batch() const { return core_.global_batch(); }

 private:
  Trainer(const Device& device, std::shared_ptr<const Model> model, std::shared_ptr<const Planned> planned,
          TrainerOptions options)
      : core_(device, std::move(model), std::move(planned), std::move(options)), texts_(core_) {}

  TrainerCore core_;
  TextRunner texts_;
};

}  // namespace stw
