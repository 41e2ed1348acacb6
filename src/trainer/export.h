// Export of trained models in the formats of other libraries.
#pragma once
#include <string>

#include "src/trainer/core.h"

namespace stw {

// Writes a folder with the trained model, or with its adapters alone. Errors: bad_state, io_error, cancelled.
Status export_model(TrainerCore& core, const std::string& folder);

}  // namespace stw
