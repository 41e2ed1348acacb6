#include "src/trainer/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/contract/sizes.h"
#include "planner/base/check_in.h"
#include "src/data/reference_file.h"

namespace stw {

namespace {

Result<double> make_evaluation(TrainerCore& core, const Dataset& dataset, uint64_t batches) {
  const Computing computing(core);
  const InPhase phase(core.progress, TrainerPhase::evaluate);
  const Program& program = core.programs().evaluate;
  check_in();
  core.begin_state();
  STW_TRY(core.compute_tables(true));
  const uint64_t most = dataset.evaluation_windows();
  uint64_t tokens = 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    auto source = [&](uint64_t sample, const SampleRows& rows) -> Status {
      const uint64_t start = dataset.evaluation_start(batch, core.global_batch(),
                                                      static_cast<uint32_t>(sample), core.sequence());
      if (most == 0 || batch * core.global_batch() + sample < most)
        tokens += dataset.sample_tokens(Dataset::Part::evaluation, start, core.sequence());
      STW_TRY(dataset.read(Dataset::Part::evaluation, start, rows, Dataset::evaluation_mask(start)));
      const auto targets = rows.integers(Input::targets);
      if (most > 0 && batch * core.global_batch() + sample >= most)
        std::fill(targets.begin(), targets.end(), kernels::ignored_target);
      return ok();
    };
    for (uint64_t first = 0; first < core.global_batch(); first += static_cast<uint64_t>(program.samples)) {
      STW_TRY(core.load(program, std::ref(source), first, core.global_batch()));
      STW_TRY(core.stream->run(core.execution, program));
      core.progress.count_evaluated(
          std::min(static_cast<uint64_t>(program.samples), core.global_batch() - first));
    }
  }
  STW_TRY(core.pull_state());
  const double loss = core.state.target_count > 0
                          ? core.state.loss_sum / static_cast<double>(core.state.target_count)
                          : std::numeric_limits<double>::quiet_NaN();
  const bool has_accuracy = core.state.target_count > 0 &&
                            (core.graph().head.row().counts_hits || !core.graph().head.row().has_values());
  const double accuracy = has_accuracy ? core.state.hits / static_cast<double>(core.state.target_count)
                                       : std::numeric_limits<double>::quiet_NaN();
  core.progress.end_evaluation(core.state.target_count, tokens, loss, accuracy);
  return loss;
}

// The losses of the loaded rows, after the program has run. Rows without logits have the loss 0.
Status read_losses(TrainerCore& core, const Program& program, std::vector<float>& losses) {
  const auto samples = static_cast<uint64_t>(program.samples),
             length = static_cast<uint64_t>(core.sequence()),
             texts = static_cast<uint64_t>(core.graph().texts);
  STW_TRY(core.stream->download(losses.data(), core.execution.rows<std::byte>(program, program.losses),
                                samples * (texts > 0 ? texts : length) * sizeof(float)));
  if (texts == 0) return ok();
  const std::vector<float> of_texts(losses.begin(),
                                    losses.begin() + static_cast<std::ptrdiff_t>(samples * texts));
  std::fill(losses.begin(), losses.end(), 0.0f);
  for (uint64_t s = 0; s < samples; ++s)
    for (uint64_t text = 0; text < texts; ++text)
      if (const int32_t row = core.inputs.text_rows(s, core.graph())[text]; row >= 0)
        losses[s * length + static_cast<uint64_t>(row)] = of_texts[s * texts + text];
  return ok();
}

Status each_log_probability(TrainerCore& core, const SampleSource& source, uint64_t samples,
                            const UseLosses& use) {
  const Computing computing(core);
  const InPhase phase(core.progress, TrainerPhase::evaluate);
  const Program& program = core.programs().evaluate;
  const auto m = static_cast<uint64_t>(program.samples), length = static_cast<uint64_t>(core.sequence());
  std::vector<float> losses(m * length);
  check_in();
  core.begin_state();
  STW_TRY(core.compute_tables(true));
  for (uint64_t first = 0; first < samples; first += m) {
    STW_TRY(core.load(program, source, first, samples));
    STW_TRY(core.stream->run(core.execution, program));
    STW_TRY(read_losses(core, program, losses));
    core.progress.count_evaluated(std::min(m, samples - first));
    if (!std::all_of(losses.begin(), losses.end(), [](float x) { return std::isfinite(x); }))
      return Error{Code::non_finite, "log-probabilities: the model's loss is not finite"};
    for (uint64_t s = 0; s < m && first + s < samples; ++s)
      STW_TRY(use(first + s, losses.data() + s * length));
  }
  return ok();
}

Status write_all_reference(TrainerCore& core, const Dataset& dataset, const std::string& path) {
  STW_ASSIGN(writer, ReferenceWriter::create(path, dataset.content_hash()));
  for (const Dataset::Part part : {Dataset::Part::training, Dataset::Part::evaluation}) {
    const uint64_t windows =
        part == Dataset::Part::training ? dataset.training_windows() : dataset.evaluation_windows();
    const auto source = [&](uint64_t window, const SampleRows& rows) {
      return dataset.read(part, dataset.window(part, window).first, rows);
    };
    // The windows together hold every token. The loss of token i stands at i - 1; a window's first token has
    // none.
    const auto write = [&](uint64_t window, const float* losses) -> Status {
      const uint64_t in_window = dataset.window(part, window).count;
      for (uint64_t i = 0; i < in_window; ++i) STW_TRY(writer.write(i == 0 ? 0 : 0 - losses[i - 1]));
      return ok();
    };
    STW_TRY(each_log_probability(core, source, windows, write));
  }
  return writer.finish();
}

}  // namespace

Result<double> evaluate(TrainerCore& core, const Dataset& dataset, uint64_t batches) {
  STW_TRY(core.check_ready());
  STW_TRY(core.check_dataset(dataset, Dataset::Part::evaluation));
  // The number of windows, of which each is read at most once. 0: the dataset repeats, and `batches` alone
  // decides.
  const uint64_t most = dataset.evaluation_windows();
  if (most > 0) batches = std::min(batches, ceil_div(most, core.global_batch()));
  const uint64_t requested = size_mul(batches, core.global_batch()),
                 samples = most > 0 ? std::min(most, requested) : requested;
  core.progress.begin_evaluation(samples);
  return core.watched(Work::evaluate, WorkUnit::samples, samples,
                      [&] { return make_evaluation(core, dataset, batches); });
}

Status log_probabilities(TrainerCore& core, const SampleSource& source, uint64_t samples,
                         const UseLosses& use) {
  STW_TRY(core.check_ready());
  if (core.graph().head.row().has_values())
    return Error{Code::unsupported, std::string("log-probabilities: the model's task is ") +
                                        core.graph().head.row().name +
                                        ", of which a target has no probability"};
  core.progress.begin_evaluation(samples);
  return core.watched(Work::evaluate, WorkUnit::samples, samples,
                      [&] { return each_log_probability(core, source, samples, use); });
}

Status write_reference(TrainerCore& core, const Dataset& dataset, const std::string& path) {
  STW_TRY(core.check_ready());
  for (const Dataset::Part part : {Dataset::Part::training, Dataset::Part::evaluation})
    if (dataset.tokens(part) > 0) STW_TRY(core.check_dataset(dataset, part, false));
  if (!dataset.has_pairs()) return Error{Code::bad_state, "reference: expected a dataset of pairs"};
  core.progress.begin_evaluation(dataset.training_windows() + dataset.evaluation_windows());
  return core.watched(Work::evaluate, WorkUnit::samples, core.progress.read().evaluation_samples,
                      [&] { return write_all_reference(core, dataset, path); });
}

}  // namespace stw
