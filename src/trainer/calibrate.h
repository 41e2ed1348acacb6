// Measurements of a step, instruction by instruction.
#pragma once
#include <string>

#include "src/trainer/core.h"

namespace stw {

// Times the instructions of a step on made-up tokens. Returns the plan's profile with the figures of this
// device. Afterwards every byte is as before, unless the weights can no longer be read. Errors: bad_state
// unless the trainer is as it was created; non_finite, cancelled.
Result<DeviceProfile> calibrate(TrainerCore& core);
// Writes the same times to a trace file, and the time that the plan predicts for each instruction.
Status write_timeline(TrainerCore& core, const std::string& path);

}  // namespace stw
