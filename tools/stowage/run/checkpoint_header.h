// Reads the description of a checkpoint without restoring it. Use it only to show values and to suggest
// defaults: stw_trainer_restore checks whether the file is intact.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace command {

// The JSON at the beginning of the file. Empty if the file is not a checkpoint.
std::optional<std::string> checkpoint_header(const std::string& path);
// The part of the file at a byte: the name of a tensor, or "the header".
std::string checkpoint_section(const std::string& path, uint64_t byte);

}  // namespace command
