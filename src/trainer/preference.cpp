#include "src/trainer/preference.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/data/batch.h"
#include "src/data/reference_file.h"
#include "src/trainer/trainer.h"

namespace stw {

constexpr bool agree(kernels::PairLoss a, Preference b) { return static_cast<int>(a) == static_cast<int>(b); }
static_assert(agree(kernels::PairLoss::none, Preference::none) && agree(kernels::PairLoss::dpo, Preference::dpo) && agree(kernels::PairLoss::ipo, Preference::ipo) &&
              agree(kernels::PairLoss::simpo, Preference::simpo) && agree(kernels::PairLoss::orpo, Preference::orpo));

Result<kernels::PairTerms> pair_terms(Preference preference, const PreferenceOptions& o, double label_smoothing, double z_loss) {
  const auto wrong = [&](const std::string& what) { return Error{Code::bad_argument, "trainer: " + what}; };
  const std::string name = name_of(preference);
  kernels::PairTerms terms{};
  terms.kind = static_cast<kernels::PairLoss>(preference);
  if (preference == Preference::none) {
    if (o.beta || o.margin || o.answer_share != 0) return wrong("beta, margin and answer_share are for preferences, the plan was made without one");
    return terms;
  }
  const bool is_simpo = preference == Preference::simpo;
  if (o.margin && !is_simpo) return wrong("margin is for the preference simpo, not for " + name);
  if (z_loss != 0) return wrong("z_loss is of tokens by themselves, and the plan's preference of pairs; leave it 0");
  if (label_smoothing != 0 && preference != Preference::dpo && !is_simpo) return wrong("label_smoothing is for the preferences dpo and simpo, not for " + name);
  if (label_smoothing >= 0.5) return wrong("label_smoothing of pairs must lie in [0, 0.5): half of them the wrong way round would say nothing");
  terms.beta = o.beta.value_or(is_simpo ? 2 : 0.1);
  terms.margin = o.margin.value_or(terms.beta / 2);
  terms.smoothing = label_smoothing;
  terms.answer_share = o.answer_share;
  if (!(terms.beta > 0 && terms.beta <= 1e6)) return wrong("beta must be above 0, at most 1e6");
  if (!(terms.margin >= 0 && terms.margin <= 1e6) || !(terms.answer_share >= 0 && terms.answer_share <= 1e6)) return wrong("margin and answer_share must lie in [0, 1e6]");
  return terms;
}

// The losses of the loaded rows, after the program has run.
Status Trainer::read_losses(const Program& program, float* losses) {
  const auto bytes = static_cast<uint64_t>(program.samples * sequence()) * sizeof(float);
  return stream_->download(losses, execution_.rows<std::byte>(program, program.losses), bytes);
}

Status Trainer::log_probabilities(const SampleSource& source, uint64_t samples, const UseLosses& use) {
  STW_TRY(check_ready());
  if (has_values(graph().task))
    return Error{Code::unsupported, std::string("log-probabilities: the model's task is ") + task_row(graph().task).name + ", of which a target has no probability"};
  begin_evaluation(samples);
  return watched(Work::evaluate, WorkUnit::samples, samples, [&] { return each_log_probability(source, samples, use); });
}

Status Trainer::each_log_probability(const SampleSource& source, uint64_t samples, const UseLosses& use) {
  const Computing computing(*this);
  const InPhase phase(*this, TrainerPhase::evaluate);
  const Program& program = planned_->programs.evaluate;
  const auto m = static_cast<uint64_t>(program.samples), length = static_cast<uint64_t>(sequence());
  std::vector<float> losses(m * length);
  check_in();
  begin_state();
  for (uint64_t first = 0; first < samples; first += m) {
    STW_TRY(load(program, source, first, samples));
    STW_TRY(stream_->run(execution_, program));
    STW_TRY(read_losses(program, losses.data()));
    count_evaluated(std::min(m, samples - first));
    if (!std::all_of(losses.begin(), losses.end(), [](float x) { return std::isfinite(x); })) return Error{Code::non_finite, "log-probabilities: the model's loss is not finite"};
    for (uint64_t s = 0; s < m && first + s < samples; ++s) STW_TRY(use(first + s, losses.data() + s * length));
  }
  return ok();
}

Status Trainer::write_reference(const Dataset& dataset, const std::string& path) {
  STW_TRY(check_ready());
  for (const Dataset::Part part : {Dataset::Part::training, Dataset::Part::evaluation})
    if (dataset.tokens(part) > 0) STW_TRY(check_dataset(dataset, part, false));
  if (!dataset.has_pairs()) return Error{Code::bad_state, "reference: expected a dataset of pairs"};
  begin_evaluation(dataset.training_windows() + dataset.evaluation_windows());
  return watched(Work::evaluate, WorkUnit::samples, progress().evaluation_samples, [&] { return write_all_reference(dataset, path); });
}

Status Trainer::write_all_reference(const Dataset& dataset, const std::string& path) {
  STW_ASSIGN(writer, ReferenceWriter::create(path, dataset.content_hash()));
  for (const Dataset::Part part : {Dataset::Part::training, Dataset::Part::evaluation}) {
    const uint64_t windows = part == Dataset::Part::training ? dataset.training_windows() : dataset.evaluation_windows();
    const auto source = [&](uint64_t window, const SampleRows& rows) { return dataset.read(part, dataset.window(part, window).first, sequence(), rows); };
    // The windows together hold every token. The loss of token i stands at i - 1; a window's first token has
    // none.
    const auto write = [&](uint64_t window, const float* losses) -> Status {
      const uint64_t in_window = dataset.window(part, window).count;
      for (uint64_t i = 0; i < in_window; ++i) STW_TRY(writer.write(i == 0 ? 0 : 0 - losses[i - 1]));
      return ok();
    };
    STW_TRY(each_log_probability(source, windows, write));
  }
  return writer.finish();
}

}  // namespace stw
