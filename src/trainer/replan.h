// Re-planning: a trainer goes on under another plan of the same model, batch and numerics.
#pragma once
#include <memory>

#include "src/trainer/core.h"

namespace stw {

// Bytes that a plan for this trainer may use: the bytes free on the device now, the trainer's own arena,
// which it would give back, and the memory outside of the arena that is already taken, which counts as part
// of the reserve (at most three quarters of it). If the host owns the arena: the host's bytes and the
// reserve. 0: unknown.
uint64_t memory_of_device(const TrainerCore& core);
// Errors: bad_state where no other plan may be taken now.
Status check_replan(const TrainerCore& core);
// Errors: bad_state (another model, batch or numerics; a gradient hook where gradients are offloaded),
// out_of_memory. Nothing has changed after an error, unless the arena was lost.
Status replan(TrainerCore& core, std::shared_ptr<const Planned> planned);

}  // namespace stw
