// The state on which all parts of a trainer work: its memory, its stream, the scalars of a step, and the
// condition of its tensors. The parts are functions and classes of their own: step.h, evaluate.h, texts.h,
// checkpoint.h, export.h, replan.h, calibrate.h, tensors.h. Only the thread that calls the trainer uses it,
// except `progress` and `cancels`, which any thread may use.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "src/base/watch.h"
#include "src/data/dataset.h"
#include "src/device/device.h"
#include "src/execute/execute.h"
#include "src/execute/sample_inputs.h"
#include "src/trainer/options.h"
#include "src/trainer/planned.h"
#include "src/trainer/progress.h"
#include "src/trainer/trainer_memory.h"
#include "src/weights/filling.h"

namespace stw {

// Numbers that a step hands on to the next one, in addition to the arena. Every checkpoint has them.
struct CarriedState {
  double loss_scale = 1;
  uint64_t good_steps = 0, observed = 0;
  double loss_mean = 0, loss_variance = 0, norm_mean = 0, norm_variance = 0;
};

// Whether the tensors can be used. `broken`: a call that failed had begun to overwrite them. `arena_lost`: a
// re-plan lost the memory, which must be taken and filled again as on creation.
enum class Condition : uint8_t { ready, broken, arena_lost };

class TrainerCore {
 public:
  TrainerCore(const Device& device, std::shared_ptr<const Model> model,
              std::shared_ptr<const Planned> planned, TrainerOptions options);
  ~TrainerCore();
  TrainerCore(const TrainerCore&) = delete;

  // Allocates the memory and fills it. Call once. Errors: out_of_memory, those of reading the model.
  Status create();
  // Takes and fills the arena again after it was lost. The condition is then `broken`, as the trained values
  // are gone.
  Status reallocate();
  // Switches to this plan, whose arena is the current one.
  void use(std::shared_ptr<const Planned> planned);
  // Prepares all programs on the device, so that training allocates nothing.
  Status prepare();
  Filling filling_of_all() const {
    return Filling::of_all(device, *model, execution, *stream, plan().numerics);
  }
  // Writes the whole arena and host memory, as on creation.
  Status fill(Filling& filling);

  // Errors: bad_state while a computation runs; the caller is then one of its callbacks.
  Status check_free() const;
  // Errors: bad_state after a step, restore, calibration or re-plan that failed halfway, and those of
  // check_free().
  Status check_ready() const;
  // Errors: bad_state where the dataset does not suit the model or the plan, corrupt where it is too short.
  Status check_dataset(const Dataset& dataset, Dataset::Part part, bool with_reference = true) const;

  // While the returned object lives, the work of the calling thread can be cancelled like a step. `unit`: the
  // unit that check_in() counts.
  LongCall long_call(Work work, WorkUnit unit, uint64_t total, EarlierCancel earlier = EarlierCancel::stops);
  // Runs `body` as a long call. If it is cancelled, returns the error `cancelled`.
  template <class Body>
  auto watched(Work work, WorkUnit unit, uint64_t total, const Body& body,
               EarlierCancel earlier = EarlierCancel::stops) -> decltype(body()) {
    const LongCall call = long_call(work, unit, total, earlier);
    try {
      return body();
    } catch (const Cancelled& cancelled) { return Error{Code::cancelled, cancelled.message}; }
  }

  // Runs the program of ops on tables (Graph::table_ops) or of their gradients, if there is one.
  Status run_on_tables(const Program& program);
  // Computes the tables that ops on samples read, for a step or for an evaluation. Call it once in each call
  // of the API: between two calls, the host may change parameters in place.
  Status compute_tables(bool for_evaluation);

  // Sets the scalars of a step, on the host and on the device.
  void begin_state(double learning_rate = 0);
  void push_state() { stream->upload(execution.state, &state, sizeof state); }
  Status pull_state() { return stream->download(&state, execution.state, sizeof state); }
  // Loads the inputs of a program from consecutive samples, as SampleInputs::load does.
  Status load(const Program& program, const SampleSource& source, uint64_t first, uint64_t samples) {
    return inputs.load(program, execution, *stream, source, first, samples);
  }
  // Reads device memory in pieces that the host can access.
  Status read_memory(std::byte* from, uint64_t bytes,
                     const std::function<Status(std::span<const std::byte>)>& piece);

  const Plan& plan() const { return planned->plan; }
  const Programs& programs() const { return planned->programs; }
  const Graph& graph() const { return planned->graph; }
  int64_t sequence() const { return plan().request.sequence; }
  uint64_t global_batch() const { return static_cast<uint64_t>(plan().request.global_batch); }

  const Device& device;
  const std::shared_ptr<const Model> model;
  std::shared_ptr<const Planned> planned;
  TrainerOptions options;
  TrainerMemory memory;
  std::unique_ptr<Stream> stream;  // works in `memory`, and is destroyed before it
  Execution execution;
  kernels::StepState state{};  // the host's copy
  SampleInputs inputs;
  CarriedState carried;
  CancelFlag cancels;
  ProgressBoard progress;
  Condition condition = Condition::ready;
  bool is_untouched = true;  // the tensors still have the values that fill() wrote
  bool computes = false;     // a Computing object exists
  double step_seconds = 0;   // of the last step; 0: no step yet
};

// The trainer computes for the lifetime of the object: no callback may start another computation.
struct Computing {
  explicit Computing(TrainerCore& core) : core_(core) { core_.computes = true; }
  ~Computing() { core_.computes = false; }
  Computing(const Computing&) = delete;

 private:
  TrainerCore& core_;
};

}  // namespace stw
