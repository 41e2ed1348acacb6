#include "src/trainer/trainer.h"

#include <functional>

#include "kernels/contract/sizes.h"

namespace stw {

Result<std::unique_ptr<Trainer>> Trainer::create(const Device& device, std::shared_ptr<const Model> model,
                                                 std::shared_ptr<const Planned> planned,
                                                 TrainerOptions options) {
  const Plan& plan = planned->plan;
  if (!plan.fits) return Error{Code::bad_state, "trainer: the plan does not fit its budget"};
  if (profile_of(plan.request).cuda != device.is_cuda())
    return Error{Code::bad_state, "trainer: the plan was made for device '" + plan.request.device +
                                      "', this one is a " + (device.is_cuda() ? "GPU" : "CPU")};
  std::unique_ptr<Trainer> t(new Trainer(device, std::move(model), std::move(planned), std::move(options)));
  STW_TRY(check_options(t->core_));
  uint64_t bytes = plan.bytes.arena;  // bytes written: zeros, then parameters
  for (const int p : t->model().parameters())
    bytes = size_add(bytes, t->graph().at(p).shape.elements() * sizeof(float));
  STW_TRY(t->core_.watched(Work::create_trainer, WorkUnit::bytes, bytes, [&] { return t->core_.create(); }));
  t->texts_.reserve();
  return t;
}

Status Trainer::run(const Dataset& dataset, uint64_t data_seed, uint64_t until, const Schedule& schedule,
                    const std::function<bool(const StepResult&, const Progress&)>& after) {
  STW_TRY(check_ready());
  STW_TRY(core_.check_dataset(dataset, Dataset::Part::training));
  const InPhase phase(core_.progress, TrainerPhase::train);
  for (Progress now = progress(); now.batches < until; now = progress()) {
    uint64_t tokens = 0;
    auto source = [&](uint64_t sample, const SampleRows& rows) {
      const uint64_t start = dataset.training_start(data_seed, now.batches, now.samples,
                                                    static_cast<uint32_t>(sample), sequence());
      tokens += dataset.sample_tokens(Dataset::Part::training, start, sequence());
      return dataset.read(Dataset::Part::training, start, rows,
                          Dataset::training_mask(data_seed, now.batches, static_cast<uint32_t>(sample)));
    };
    // std::ref: the function object would allocate for a copy.
    STW_ASSIGN(result, step(std::ref(source), global_batch(), schedule.at(now.step)));
    core_.progress.set_sample_tokens(tokens);
    if (after && !after(result, progress()))
      return Error{Code::cancelled, "trainer: stopped by the progress callback"};
  }
  return ok();
}

}  // namespace stw
