// Re-planning: a trainer goes on under another plan of the same model, batch and numerics.
#pragma once
#include <memory>

#include "src/trainer/core.h"

namespace stw {

// Bytes that a plan for this trainer may use. They are the sum of three numbers: the bytes that are free on
// the device now; the bytes of the trainer's own arena, which it would give back; and the bytes already taken
// outside of the arena. The last number counts as part of the reserve, and is limited to three quarters of
// it. If the host owns the arena: the host's bytes and the reserve. 0: unknown.
uint64_t memory_of_device(const TrainerCore& core);
// Errors: bad_state where no other plan may be taken now.
Status check_replan(const TrainerCore& core);
// Errors: bad_state (another model, batch or numerics; a gradient hook where gradients are offloaded or
// formed at the update), out_of_memory. Nothing has changed after an error, unless the arena was lost.
Status replan(TrainerCore& core, std::shared_ptr<const Planned> planned);

}  // namespace stw
