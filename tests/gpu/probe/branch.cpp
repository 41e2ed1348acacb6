// Whole steps of GPT-2 124M, with weight gradients in line and on a branch of the recorded program
// (src/cuda/branch.h). A weight gradient has too few tiles for all multiprocessors; on the branch, other ops
// fill the idle ones. The gain can only be measured on a card.
#include <stdexcept>

#include "kernels/cuda/developer.h"
#include "src/trainer/trainer.h"
#include "tests/gpu/probe/parts.h"

namespace stw::probe {

namespace {

// Loss and norm of the last step. `seconds`: the time of the fastest step after the first.
struct Steps {
  double loss = 0, norm = 0, seconds = 0;
};

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

Steps train(const Device& device, const std::shared_ptr<const Model>& model,
            const std::shared_ptr<const Planned>& planned, int64_t vocabulary, bool branch) {
  kernels::cuda::developer_switches().weight_gradient_branch = branch;
  const std::unique_ptr<Trainer> trainer = value_of(Trainer::create(device, model, planned, {}));
  kernels::cuda::developer_switches() = {};
  const int64_t sequence = planned->graph.sequence;
  const auto samples = static_cast<uint64_t>(planned->plan.request.global_batch);
  const SampleSource source = [&](uint64_t sample, const SampleRows& rows) -> Status {
    uint64_t state = sample + 1;
    const auto tokens = rows.integers(Input::tokens), targets = rows.integers(Input::targets);
    for (int64_t i = 0; i < sequence; ++i)
      tokens[i] = static_cast<int32_t>(random_bits(state) % static_cast<uint64_t>(vocabulary));
    for (int64_t i = 0; i < sequence; ++i)
      targets[i] = i + 1 < sequence ? tokens[i + 1] : kernels::ignored_target;
    return ok();
  };
  Steps steps;
  for (int i = 0; i < 4; ++i) {
    const StepResult result = value_of(trainer->step(source, samples, 1e-3));
    steps = {result.loss, result.grad_norm,
             i > 0 && (i == 1 || result.seconds < steps.seconds) ? result.seconds : steps.seconds};
  }
  return steps;
}

constexpr char tiny[] =
    R"({"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 1,
                            "embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})";

}  // namespace

void check_branch(Report& report, const Options& options, Peaks&) {
  DeviceOptions opened;
  opened.backend = Backend::cuda;
  const std::unique_ptr<Device> device = value_of(Device::open(opened));
  ModelSource source;
  (options.small ? source.config_json : source.source) = options.small ? tiny : "gpt2";
  const std::shared_ptr<const Model> model = value_of(Model::open(source));
  Request request;
  request.device = has_warpgroups() ? "h100" : "a100-80gb";
  request.memory_bytes = options.small ? uint64_t{1} << 30 : uint64_t{40} << 30;
  request.reserve_bytes = 0;
  request.global_batch = options.small ? 4 : 64;
  request.sequence = options.small ? 64 : 1024;
  request.micro_batch = request.global_batch / 2;
  request.state_bits = 32;
  request.precision = Precision::bf16;
  request.kernels = has_warpgroups() ? Kernels::wgmma : Kernels::tensor;
  const std::shared_ptr<const Planned> planned = value_of(Planned::make(*model, request));
  if (!planned->plan.fits) throw std::runtime_error("GPT-2 does not fit into 40 GiB");
  const double tokens = static_cast<double>(request.global_batch * request.sequence);
  const int64_t vocabulary = options.small ? 256 : 50257;
  report.uses_warpgroups(has_warpgroups());
  const Steps serial = train(*device, model, planned, vocabulary, false);
  report.note("steps of GPT-2", text_of("%.0f tokens/s", tokens / serial.seconds));
  const Steps parallel = train(*device, model, planned, vocabulary, true);
  report.uses_warpgroups(false);
  const bool same = serial.loss == parallel.loss && serial.norm == parallel.norm;
  report.figure("gain of the branch", serial.seconds / parallel.seconds);
  report.figure("bits of the branch", same ? 1 : 0);
  report.row(same, "steps of GPT-2, weight gradients on a branch",
             text_of("%.0f tokens/s, %.3f of the time; loss %.9g and %.9g", tokens / parallel.seconds,
                     parallel.seconds / serial.seconds, serial.loss, parallel.loss));
}

}  // namespace stw::probe
