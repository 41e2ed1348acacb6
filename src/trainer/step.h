// One optimizer step: the micro-steps of a global batch, then the update.
#pragma once
#include "src/trainer/core.h"

namespace stw {

// Ignores the samples of the global batch whose numbers are `samples` or more. A cancelled step has changed
// no parameter. Errors: bad_state, cancelled, callback_failed, non_finite, numeric, those of `source`.
Result<StepResult> train_step(TrainerCore& core, const SampleSource& source, uint64_t samples,
                              double learning_rate);

// Errors: bad_state where the options have a gradient hook and the plan offloads gradients, or forms one at
// the update (kept_rows.h).
Status check_hook(const TrainerOptions& options, const Planned& planned);
// Refuses options that the plan's loss or gradients do not allow. Errors: bad_argument, bad_state.
Status check_options(const TrainerCore& core);

}  // namespace stw
