// Evaluation: the loss of a dataset, and the log-probability of each target.
#pragma once
#include <functional>
#include <string>

#include "src/trainer/core.h"

namespace stw {

// The mean loss over the targets of `batches` batches of the evaluation part, or of all its windows if these
// are fewer; NaN without targets. Errors: those of check_dataset(), cancelled.
Result<double> evaluate(TrainerCore& core, const Dataset& dataset, uint64_t batches);

using UseLosses = std::function<Status(uint64_t sample, const float* losses)>;
// Calls use(sample, losses) for each sample. `losses` has a number for each row, 0 where there is no target.
// Errors: unsupported (a task without probabilities), non_finite, those of `use`.
Status log_probabilities(TrainerCore& core, const SampleSource& source, uint64_t samples,
                         const UseLosses& use);
// Writes a file with the log-probability of every target of a dataset of pairs: a float for each of its
// tokens, 0 for tokens that are no target. Errors: bad_state (another dataset), io_error.
Status write_reference(TrainerCore& core, const Dataset& dataset, const std::string& path);

}  // namespace stw
