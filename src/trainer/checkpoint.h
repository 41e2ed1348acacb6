// Checkpoints hold everything that decides the next step.
#pragma once
#include <string>

#include "src/trainer/core.h"

namespace stw {

// Replaces the file only when it is complete. Errors: bad_state, io_error, cancelled.
Status save_checkpoint(TrainerCore& core, const std::string& path);
// Errors: bad_state (another model or other numerics; the message names the first field that differs),
// corrupt, io_error, cancelled. The trainer is unchanged after an error, except after one of the device.
Status restore_checkpoint(TrainerCore& core, const std::string& path);

}  // namespace stw
